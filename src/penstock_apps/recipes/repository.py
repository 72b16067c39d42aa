"""What is kept of pages, of recipes parsed from them, and of recipes people saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    create_engine,
    delete,
    insert,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from penstock import Penstock
from penstock.errors import ConfigurationError, FileNotFound
from penstock.lifecycle import JSON
from penstock_apps.recipes.payloads import IngredientData, RecipeResult
from penstock_apps.recipes.tables import parse_result, recipe, resource, saved_recipe

RecipeId = int | UUID
"""A saved recipe by its number, or by the id that no other database gives."""


@dataclass(frozen=True, slots=True)
class KnownRecipe:
    """What was parsed last of a page, as clients are shown it."""

    url_hash: str
    title: str | None
    ingredients: list[IngredientData]
    parsed_at: datetime


@dataclass(frozen=True, slots=True)
class SavedRecipe:
    """A recipe somebody keeps."""

    id: int
    uuid: UUID
    user_id: str
    title: str
    body: dict[str, JSON]
    parse_job_id: UUID | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ParserAnswer:
    """How a parser elsewhere answered a request."""

    success: bool
    error_message: str | None


# Built once, and without the whole result: a recipe that is known is what is asked for most.
_LATEST = select(recipe.c.title, recipe.c.ingredients, recipe.c.parsed_at).where(
    recipe.c.url_hash == bindparam("url_hash")
)
_FRESH = _LATEST.where(recipe.c.parsed_at > bindparam("since"))


class RecipeRepository:
    """The recipes of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    # Pages and what was parsed of them ----------------------------------------------------------------------------

    def fresh(self, url_hash: str, days: float) -> KnownRecipe | None:
        """What was parsed of a page, unless that is too long ago."""
        return self._find_known(_FRESH, {"url_hash": url_hash, "since": datetime.now(UTC) - timedelta(days=days)})

    def latest(self, url_hash: str) -> KnownRecipe | None:
        """What was parsed of a page last, however long ago."""
        return self._find_known(_LATEST, {"url_hash": url_hash})

    def result(self, url_hash: str) -> RecipeResult | None:
        """The whole result of that, as a job has it."""
        query = select(recipe.c.result).where(recipe.c.url_hash == url_hash)
        result: RecipeResult | None = self._app.in_transaction(
            lambda connection: connection.execute(query).scalar_one_or_none(), reads=True, single_statement=True
        )
        return result

    def _find_known(self, query: Select[Any], parameters: dict[str, object]) -> KnownRecipe | None:
        row = self._app.in_transaction(
            lambda connection: connection.execute(query, parameters).one_or_none(), reads=True, single_statement=True
        )
        return None if row is None else KnownRecipe(str(parameters["url_hash"]), row[0], row[1], _aware(row[2]))

    def note_page(self, connection: Connection, url_hash: str, url: str) -> None:
        """Record a page, unless it is known."""
        row = {"url_hash": url_hash, "url": url, "created_at": datetime.now(UTC)}
        connection.execute(_insert(connection, resource).values(row).on_conflict_do_nothing())

    def keep(self, connection: Connection, url_hash: str, result: RecipeResult) -> None:
        """Keep what was parsed of a page, in place of what was known."""
        recipe_data = result["recipe"]
        row = {
            "title": recipe_data["title"],
            "ingredients": recipe_data["ingredients"],
            "result": result,
            "parsed_at": datetime.now(UTC),
        }
        statement = _insert(connection, recipe).values(url_hash=url_hash, **row)
        connection.execute(statement.on_conflict_do_update(index_elements=["url_hash"], set_=row))

    # What parsers elsewhere answer --------------------------------------------------------------------------------

    def keep_parser_answer(
        self, connection: Connection, request_id: UUID, *, success: bool, error_message: str | None
    ) -> bool:
        """Record a parser's answer; False when there was one already."""
        row = {
            "request_id": request_id,
            "success": success,
            "error_message": error_message,
            "received_at": datetime.now(UTC),
        }
        statement = _insert(connection, parse_result).values(row).on_conflict_do_nothing()
        return connection.execute(statement.returning(parse_result.c.request_id)).one_or_none() is not None

    def parser_answer(self, request_id: UUID) -> ParserAnswer | None:
        """How a parser elsewhere answered a request; None until it did."""
        query = select(parse_result).where(parse_result.c.request_id == request_id)
        row = self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True)
        return None if row is None else ParserAnswer(row.success, row.error_message)

    # What people saved --------------------------------------------------------------------------------------------

    def save(
        self, connection: Connection, user: str, title: str, body: dict[str, JSON], parse_job_id: UUID | None
    ) -> int:
        """Keep a recipe for somebody, inside of a transaction; the answer is its number."""
        now = datetime.now(UTC)
        row = {"uuid": uuid4(), "user_id": user, "title": title, "body": body, "parse_job_id": parse_job_id}
        statement = insert(saved_recipe).values(**row, created_at=now, updated_at=now)
        return int(connection.execute(statement.returning(saved_recipe.c.id)).scalar_one())

    def get_saved(self, recipe_id: RecipeId, user: str) -> SavedRecipe:
        """One of somebody's recipes."""
        query = select(saved_recipe).where(_theirs(recipe_id, user))
        row = self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True)
        if row is None:
            raise _not_there(recipe_id)
        return _saved_recipe(row)

    def all_saved(self, user: str, *, after: tuple[datetime, UUID] | None, limit: int) -> Sequence[SavedRecipe]:
        """Somebody's recipes, newest first."""
        query = select(saved_recipe).where(saved_recipe.c.user_id == user)
        if after is not None:
            query = query.where(tuple_(saved_recipe.c.created_at, saved_recipe.c.uuid) < tuple_(*after))
        query = query.order_by(saved_recipe.c.created_at.desc(), saved_recipe.c.uuid.desc()).limit(limit)
        return [
            _saved_recipe(row)
            for row in self._app.in_transaction(lambda connection: connection.execute(query).all(), reads=True)
        ]

    def change(self, recipe_id: RecipeId, user: str, title: str, body: dict[str, JSON]) -> None:
        """Write over one of somebody's recipes."""
        statement = update(saved_recipe).where(_theirs(recipe_id, user))
        values = {"title": title, "body": body, "updated_at": datetime.now(UTC)}
        count = self._app.in_transaction(lambda connection: connection.execute(statement.values(values)).rowcount)
        if not count:
            raise _not_there(recipe_id)

    def remove(self, recipe_id: RecipeId, user: str) -> None:
        """Forget one of somebody's recipes."""
        statement = delete(saved_recipe).where(_theirs(recipe_id, user))
        if not self._app.in_transaction(lambda connection: connection.execute(statement).rowcount):
            raise _not_there(recipe_id)


def old_rows(url: str) -> Iterator[dict[str, JSON]]:
    """Every row of the old queue's table, whatever columns it has by now."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            rows = connection.execution_options(stream_results=True).execute(text("SELECT * FROM recipe_parse_jobs"))
            yield from (dict(row) for row in rows.mappings())
    except DBAPIError as error:
        raise ConfigurationError(
            f"the old queue cannot be read: {str(error.orig).strip().partition(chr(10))[0]}",
            code="OLD_QUEUE_UNREADABLE",
        ) from error
    finally:
        engine.dispose()


def _insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that knows what to do when the row is there."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def _theirs(recipe_id: RecipeId, user: str) -> ColumnElement[bool]:
    column = saved_recipe.c.uuid if isinstance(recipe_id, UUID) else saved_recipe.c.id
    return (column == recipe_id) & (saved_recipe.c.user_id == user)


def _not_there(recipe_id: RecipeId) -> FileNotFound:
    return FileNotFound(f"there is no recipe {recipe_id}", code="RECIPE_NOT_FOUND")


def _saved_recipe(row: Row[Any]) -> SavedRecipe:
    return SavedRecipe(
        row.id, row.uuid, row.user_id, row.title, row.body, row.parse_job_id,
        _aware(row.created_at), _aware(row.updated_at),
    )  # fmt: skip


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite keeps no zone
