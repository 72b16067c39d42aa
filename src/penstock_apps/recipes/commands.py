"""``penstock import-recipe-jobs``."""

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


commands = (import_recipe_jobs,)
