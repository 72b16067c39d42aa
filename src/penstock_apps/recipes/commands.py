"""``penstock import-recipe-jobs`` and ``penstock recipes parser``."""

from __future__ import annotations

from typing import Annotated

import typer


def import_recipe_jobs(
    source: Annotated[str, typer.Argument(metavar="URL", help="The database with the table recipe_parse_jobs.")],
    owner: Annotated[str | None, typer.Option(help="The owner of jobs for which the table names none.")] = None,
    owner_column: Annotated[str, typer.Option(help="The column that names a job's owner.")] = "user_id",
) -> None:
    """Import the jobs of an old recipe queue, with their ids.

    Finished jobs keep their times and results; jobs that wait are worked on here. Only admins see jobs without an
    owner. It can be run again without harm.

    \b
    penstock import-recipe-jobs postgresql://old.example/recipes
    penstock import-recipe-jobs sqlite:///old.db --owner alice
    """
    from penstock import Penstock
    from penstock_apps.recipes.application import recipes
    from penstock_apps.recipes.importing import OwnerRule, import_old_jobs

    app = Penstock()
    try:
        app.install(recipes)
        report = import_old_jobs(app, source, OwnerRule(owner_column, owner))
    finally:
        app.close()
    print(f"{report.read_count:,} read: {report.imported_count:,} imported, {report.known_count:,} were here already")
    for old_id, why in report.refusals.items():
        print(f"left behind: {old_id}: {why}")
    if report.refusals:
        raise typer.Exit(1)


recipes_group = typer.Typer(name="recipes", no_args_is_help=True, rich_markup_mode=None)


@recipes_group.callback()
def recipes_commands() -> None:
    """Programs of the recipes application.

    \b
    penstock recipes parser
    """


@recipes_group.command()
def parser() -> None:
    """Parse pages for a Penstock elsewhere, until SIGTERM or Ctrl-C.

    It reads requests from Kafka (KAFKA_TOPIC_PARSE_REQUEST) and answers there (KAFKA_TOPIC_PARSE_RESULT). It needs the
    broker (PENSTOCK_KAFKA_SERVERS) and no database. Start several to parse several pages at once: each takes the
    requests of some partitions.

    \b
    PENSTOCK_KAFKA_SERVERS=broker.example:9092 penstock recipes parser
    """
    from penstock.errors import LibraryMissing

    try:
        from penstock_apps.recipes.parser import run_parser
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise LibraryMissing("the parser needs confluent-kafka, not installed here: install penstock[kafka]") from None
    run_parser()


commands = (import_recipe_jobs, recipes_group)
