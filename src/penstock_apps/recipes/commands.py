"""``penstock import-recipe-jobs``."""

from __future__ import annotations

from typing import Annotated

import typer


def import_recipe_jobs(
    source: Annotated[str, typer.Argument(metavar="URL", help="The database with the table recipe_parse_jobs.")],
    owner: Annotated[str | None, typer.Option(help="Whose the jobs are of which the table does not say it.")] = None,
    owner_column: Annotated[str, typer.Option(help="The column that says whose a job is.")] = "user_id",
) -> None:
    """Bring the jobs of an old recipe queue over, with their ids.

    What is over keeps its times and its result; what waits is worked on here. Jobs that nobody owns are shown to admins
    alone. It can be run again without harm.

    \b
    penstock import-recipe-jobs postgresql://old.example/recipes
    penstock import-recipe-jobs sqlite:///old.db --owner alice
    """
    from penstock import Penstock
    from penstock_apps.recipes.application import recipes
    from penstock_apps.recipes.importing import OwnerRule, bring_over

    app = Penstock()
    try:
        app.install(recipes)
        done = bring_over(app, source, OwnerRule(owner_column, owner))
    finally:
        app.close()
    print(f"{done.read:,} read: {done.brought:,} brought over, {done.known:,} were here already")
    for old_id, why in done.refused.items():
        print(f"left behind: {old_id}: {why}")
    if done.refused:
        raise typer.Exit(1)


commands = (import_recipe_jobs,)
