"""What is kept of pages, of recipes parsed from them, and of recipes people saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, bindparam, create_engine, delete, insert, select, text, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from penstock import ConfigurationError, FileNotFound, Penstock
from penstock_apps.recipes.tables import parse_result, recipe, resource, saved_recipe


@dataclass(frozen=True, slots=True)
class KnownRecipe:
    """What was parsed last of a page, as clients are shown it."""

    title: str | None
    ingredients: list[dict[str, Any]]
    parsed_at: datetime


@dataclass(frozen=True, slots=True)
class SavedRecipe:
    """A recipe somebody keeps."""

    id: UUID
    user_id: str
    title: str
    body: dict[str, Any]
    parse_job_id: UUID | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Word:
    """What a parser elsewhere has said of a request."""

    success: bool
    error_message: str | None


# Built once, and without the whole result: a recipe that is known is what is asked for most.
_LATEST = select(recipe.c.title, recipe.c.ingredients, recipe.c.parsed_at).where(
    recipe.c.url_hash == bindparam("asked_for")
)
_FRESH = _LATEST.where(recipe.c.parsed_at > bindparam("since"))


class RecipeRepository:
    """The recipes of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    # Pages and what was parsed of them ----------------------------------------------------------------------------

    def fresh(self, url_hash: str, days: float) -> KnownRecipe | None:
        """What was parsed of a page, unless that is too long ago."""
        given = {"asked_for": url_hash, "since": datetime.now(UTC) - timedelta(days=days)}
        return self._known(_FRESH, given)

    def latest(self, url_hash: str) -> KnownRecipe | None:
        """What was parsed of a page last, however long ago."""
        return self._known(_LATEST, {"asked_for": url_hash})

    def result(self, url_hash: str) -> dict[str, Any] | None:
        """The whole result of that, as a job has it."""
        asked = select(recipe.c.result).where(recipe.c.url_hash == url_hash)
        found: dict[str, Any] | None = self._app.in_transaction(
            lambda link: link.execute(asked).scalar_one_or_none(), reads=True, single_statement=True
        )
        return found

    def _known(self, statement: Any, given: dict[str, Any]) -> KnownRecipe | None:
        row = self._app.in_transaction(
            lambda link: link.execute(statement, given).one_or_none(), reads=True, single_statement=True
        )
        return None if row is None else KnownRecipe(row[0], row[1], _aware(row[2]))

    def note_page(self, link: Connection, url_hash: str, url: str) -> None:
        """Record a page, unless it is known."""
        row = {"url_hash": url_hash, "url": url, "created_at": datetime.now(UTC)}
        link.execute(_insert(link, resource).values(row).on_conflict_do_nothing())

    def keep(self, link: Connection, url_hash: str, result: Mapping[str, Any]) -> None:
        """Keep what was parsed of a page, in place of what was known."""
        found = result["recipe"]
        row = {
            "title": found["title"],
            "ingredients": found["ingredients"],
            "result": dict(result),
            "parsed_at": datetime.now(UTC),
        }
        statement = _insert(link, recipe).values(url_hash=url_hash, **row)
        link.execute(statement.on_conflict_do_update(index_elements=["url_hash"], set_=row))

    # What parsers elsewhere say -----------------------------------------------------------------------------------

    def hear(self, link: Connection, request_id: UUID, *, success: bool, error_message: str | None) -> bool:
        """Record a parser's word; False when there was one already."""
        row = {
            "request_id": request_id,
            "success": success,
            "error_message": error_message,
            "received_at": datetime.now(UTC),
        }
        inserted = _insert(link, parse_result).values(row).on_conflict_do_nothing().returning(parse_result.c.request_id)
        return link.execute(inserted).one_or_none() is not None

    def heard(self, request_id: UUID) -> Word | None:
        """What a parser elsewhere has said of a request."""
        asked = select(parse_result).where(parse_result.c.request_id == request_id)
        row = self._app.in_transaction(lambda link: link.execute(asked).one_or_none(), reads=True)
        return None if row is None else Word(row.success, row.error_message)

    # What people saved --------------------------------------------------------------------------------------------

    def save(self, link: Connection, user: str, title: str, body: dict[str, Any], parse_job_id: UUID | None) -> UUID:
        """Keep a recipe for somebody, inside of a transaction."""
        now = datetime.now(UTC)
        row = {"id": uuid4(), "user_id": user, "title": title, "body": body, "parse_job_id": parse_job_id}
        link.execute(insert(saved_recipe).values(**row, created_at=now, updated_at=now))
        made: UUID = row["id"]  # type: ignore[assignment]
        return made

    def saved(self, recipe_id: UUID, user: str) -> SavedRecipe:
        """One of somebody's recipes."""
        asked = select(saved_recipe).where(_theirs(recipe_id, user))
        row = self._app.in_transaction(lambda link: link.execute(asked).one_or_none(), reads=True)
        if row is None:
            raise _not_there(recipe_id)
        return _saved(row)

    def all_saved(self, user: str, *, after: tuple[datetime, UUID] | None, limit: int) -> Sequence[SavedRecipe]:
        """Somebody's recipes, newest first."""
        asked = select(saved_recipe).where(saved_recipe.c.user_id == user)
        if after is not None:
            asked = asked.where(tuple_(saved_recipe.c.created_at, saved_recipe.c.id) < tuple_(*after))
        asked = asked.order_by(saved_recipe.c.created_at.desc(), saved_recipe.c.id.desc()).limit(limit)
        return [_saved(row) for row in self._app.in_transaction(lambda link: link.execute(asked).all(), reads=True)]

    def change(self, recipe_id: UUID, user: str, title: str, body: dict[str, Any]) -> None:
        """Write over one of somebody's recipes."""
        statement = update(saved_recipe).where(_theirs(recipe_id, user))
        values = {"title": title, "body": body, "updated_at": datetime.now(UTC)}
        changed = self._app.in_transaction(lambda link: link.execute(statement.values(values)).rowcount)
        if not changed:
            raise _not_there(recipe_id)

    def remove(self, recipe_id: UUID, user: str) -> None:
        """Forget one of somebody's recipes."""
        statement = delete(saved_recipe).where(_theirs(recipe_id, user))
        if not self._app.in_transaction(lambda link: link.execute(statement).rowcount):
            raise _not_there(recipe_id)


def old_rows(url: str) -> Iterator[dict[str, Any]]:
    """Every row of the old queue's table, whatever columns it has by now."""
    engine = create_engine(url)
    try:
        with engine.connect() as link:
            rows = link.execution_options(stream_results=True).execute(text("SELECT * FROM recipe_parse_jobs"))
            yield from (dict(row) for row in rows.mappings())
    except DBAPIError as error:
        raise ConfigurationError(
            f"the old queue cannot be read: {str(error.orig).strip().partition(chr(10))[0]}",
            code="OLD_QUEUE_UNREADABLE",
        ) from error
    finally:
        engine.dispose()


def _insert(link: Connection, table: Any) -> Any:
    """An insert that knows what to do when the row is there."""
    return (postgresql if link.dialect.name == "postgresql" else sqlite).insert(table)


def _theirs(recipe_id: UUID, user: str) -> Any:
    return (saved_recipe.c.id == recipe_id) & (saved_recipe.c.user_id == user)


def _not_there(recipe_id: UUID) -> FileNotFound:
    return FileNotFound(f"there is no recipe {recipe_id}", code="RECIPE_NOT_FOUND")


def _saved(row: Any) -> SavedRecipe:
    return SavedRecipe(
        row.id, row.user_id, row.title, row.body, row.parse_job_id, _aware(row.created_at), _aware(row.updated_at)
    )


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite keeps no zone
