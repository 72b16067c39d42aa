"""``penstock catalogs``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from penstock_apps.plurals import pluralize

if TYPE_CHECKING:
    from penstock import Caller
    from penstock_apps.catalogs.repository import Catalog
    from penstock_apps.catalogs.service import Catalogs

_PAGE = 500
CatalogId = Annotated[UUID, typer.Argument(metavar="ID", help="The catalog's id, as `penstock catalogs list` has it.")]
AsUser = Annotated[
    str | None,
    typer.Option("--as", metavar="USER", help="Ask as this user, who has only their own; without it, as the system."),
]

catalogs_group = typer.Typer(name="catalogs", no_args_is_help=True, rich_markup_mode=None)


@catalogs_group.callback()
def catalogs_commands() -> None:
    """Catalogs of photos: list, scan, change and delete them.

    \b
    penstock catalogs list
    penstock catalogs scan 0198c0de-0000-4000-8000-000000000000
    """


@catalogs_group.command("list")
def list_catalogs(user: AsUser = None) -> None:
    """List the catalogs, with what their last scans found and what they ask."""
    with _open_catalogs() as catalogs:
        after = None
        while page := catalogs.repository.all(by=_caller(user), after=after, limit=_PAGE):
            for catalog in page:
                print(f"{catalog.id}  {catalog.name}  ({', '.join(catalog.source_directories)})")
                print(f"  {_last_scan(catalog)}")
            after = page[-1].id


@catalogs_group.command()
def scan(
    catalog: CatalogId,
    max_removed: Annotated[
        int | None,
        typer.Option(min=1, metavar="COUNT", help="So many photos that are not there any more may be forgotten."),
    ] = None,
    user: AsUser = None,
) -> None:
    """Scan a catalog, and print the job's id.

    A scan that would forget a large part of a folder keeps the photos, and `penstock catalogs list` says how many they
    are: that number is the answer to give.

    \b
    penstock catalogs scan 0198c0de-0000-4000-8000-000000000000
    penstock catalogs scan 0198c0de-0000-4000-8000-000000000000 --max-removed 120
    """
    with _open_catalogs() as catalogs:
        print(catalogs.start_scan(catalog, max_removed, by=_caller(user)).id)


@catalogs_group.command()
def change(
    catalog: CatalogId,
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    folder: Annotated[
        list[str] | None, typer.Option(help="A folder, whole; repeat it for several. They replace those of before.")
    ] = None,
    user: AsUser = None,
) -> None:
    """Give a catalog another name, or other folders.

    The next scan forgets the photos that are in none of its folders any more.
    """
    from penstock.errors import InvalidInput

    if name is None and not folder:
        raise InvalidInput("say what is to be different: --name or --folder", code="USAGE")
    if name is not None and not 1 <= len(name) <= 255:
        raise InvalidInput("a name has 1 to 255 characters", field="name", code="USAGE")
    with _open_catalogs() as catalogs:
        catalogs.change(catalog, name=name, source_directories=folder or None, by=_caller(user))


@catalogs_group.command()
def delete(catalog: CatalogId, user: AsUser = None) -> None:
    """Forget a catalog and what is known of its photos; jobs that work on it are canceled. The files stay."""
    with _open_catalogs() as catalogs:
        catalogs.remove(catalog, by=_caller(user))


def _last_scan(catalog: Catalog) -> str:
    last = catalog.last_scan
    if last is None:
        return "not scanned yet"
    texts = [pluralize(last["photos"], "photo")]
    if last["unreadable"]:
        texts.append(f"{last['unreadable']:,} could not be read")
    if last["out_of_sight"]:
        texts.append(f"{last['out_of_sight']:,} in folders that could not be read")
    if last["missing"]:
        texts.append(
            f"{last['missing']:,} are not there any more; is a disk missing? "
            f"Forget them with: penstock catalogs scan {catalog.id} --max-removed {last['missing']}"
        )
    return ", ".join(texts)


def _caller(user: str | None) -> Caller:
    from penstock import SYSTEM, owner

    return SYSTEM if user is None else owner(user)


@contextmanager
def _open_catalogs() -> Iterator[Catalogs]:
    from penstock import Penstock
    from penstock_apps.catalogs.application import catalogs

    app = Penstock()
    try:
        yield app.install(catalogs)
    finally:
        app.close()


commands = (catalogs_group,)
