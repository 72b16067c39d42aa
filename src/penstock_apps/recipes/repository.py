"""What is kept of pages, of recipes parsed from them, and of recipes people saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    false,
    insert,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from penstock import Penstock
from penstock.errors import ConfigurationError, FileNotFound, PayloadNotStorable
from penstock.lifecycle import JSON, storable_texts
from penstock_apps.recipes.payloads import IngredientData, RecipeResult, parsed_moment
from penstock_apps.recipes.tables import llm_recipe, parse_result, parse_start, recipe, resource, saved_recipe

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


# What is known of pages ----------------------------------------------------------------------------------------------

Query = Select[Any]


def _known_answers(table: Table, columns: tuple[str, ...], *, is_fresh: bool) -> Query:
    query = select(*(table.c[name] for name in columns)).where(table.c.url_hash == bindparam("url_hash"))
    return query.where(table.c.parsed_at > bindparam("since")) if is_fresh else query


def _newest_answer(columns: tuple[str, ...], *, is_fresh: bool) -> dict[bool, Query]:
    """The newest that is known of a page, of what a person may be given: is a model allowed?

    Who refuses a model gets what pages say themselves. Who allows one gets what it made of the page, too; half a recipe
    comes last for them, and does not count as fresh: a model may find the rest.
    """
    page_alone = _known_answers(recipe, columns, is_fresh=is_fresh)
    own = page_alone.add_columns(recipe.c.llm_may_help)
    if is_fresh:
        own = own.where(~recipe.c.llm_may_help)
    by_model = _known_answers(llm_recipe, columns, is_fresh=is_fresh).add_columns(false().label("llm_may_help"))
    answers = union_all(own, by_model).subquery("answers").c
    query = select(*(answers[name] for name in columns))
    with_model = query.order_by(answers.llm_may_help, answers.parsed_at.desc()).limit(1)
    return {False: page_alone, True: with_model}


# Built once, and without the whole result: a recipe that is known is what is asked for most.
_COLUMNS = ("title", "ingredients", "parsed_at")
_FRESH = _newest_answer(_COLUMNS, is_fresh=True)
_LATEST = _newest_answer(_COLUMNS, is_fresh=False)
_RESULT = _newest_answer(("result", "parsed_at"), is_fresh=False)
_ANSWER_OF_REQUEST = select(parse_result.c.request_id).where(parse_result.c.request_id == bindparam("request_id"))
_STALE_AT_ONCE = 1_000


class RecipeRepository:
    """The recipes of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    # Pages and what was parsed of them ----------------------------------------------------------------------------

    def fresh(self, url_hash: str, days: float, *, llm_allowed: bool) -> KnownRecipe | None:
        """What was parsed of a page, unless that is too long ago or a model may find more."""
        since = datetime.now(UTC) - timedelta(days=days)
        return self._find_known(_FRESH[llm_allowed], {"url_hash": url_hash, "since": since})

    def latest(self, url_hash: str, *, llm_allowed: bool) -> KnownRecipe | None:
        """What was parsed of a page last, however long ago."""
        return self._find_known(_LATEST[llm_allowed], {"url_hash": url_hash})

    def result(self, url_hash: str, *, llm_allowed: bool) -> RecipeResult | None:
        """The whole result of that, as a job has it."""
        query = _RESULT[llm_allowed]
        result: RecipeResult | None = self._app.in_transaction(
            lambda connection: connection.execute(query, {"url_hash": url_hash}).scalar(),
            reads=True,
            single_statement=True,
        )
        return result

    def _find_known(self, query: Query, parameters: dict[str, object]) -> KnownRecipe | None:
        row = self._app.in_transaction(
            lambda connection: connection.execute(query, parameters).one_or_none(), reads=True, single_statement=True
        )
        if row is None:
            return None
        return KnownRecipe(str(parameters["url_hash"]), row.title, row.ingredients, _aware(row.parsed_at))

    def note_page(self, connection: Connection, url_hash: str, url: str) -> None:
        """Record a page, unless it is known."""
        row = {"url_hash": url_hash, "url": url, "created_at": datetime.now(UTC)}
        connection.execute(_insert(connection, resource).values(row).on_conflict_do_nothing())

    def keep(self, connection: Connection, url_hash: str, result: RecipeResult, *, llm_may_help: bool = False) -> None:
        """Keep what was parsed of a page in place of what was known; what a model made of it is kept apart."""
        recipe_data = result["recipe"]
        row: dict[str, JSON] = {
            "title": recipe_data["title"],
            "ingredients": recipe_data["ingredients"],
            "result": result,
            "parsed_at": parsed_moment(result) or datetime.now(UTC),
        }
        table = llm_recipe if result["used_llm"] else recipe
        if table is recipe:
            row["llm_may_help"] = llm_may_help
        statement = _insert(connection, table).values(url_hash=url_hash, **row)
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
        self.forget_start(connection, request_id)
        statement = _insert(connection, parse_result).values(row).on_conflict_do_nothing()
        return connection.execute(statement.returning(parse_result.c.request_id)).one_or_none() is not None

    def note_start(self, connection: Connection, request_id: UUID) -> None:
        """Record that a parser has begun, unless it has answered, or one has begun before."""
        if connection.execute(_ANSWER_OF_REQUEST, {"request_id": request_id}).one_or_none() is None:
            row = {"request_id": request_id, "started_at": datetime.now(UTC)}
            connection.execute(_insert(connection, parse_start).values(row).on_conflict_do_nothing())

    def forget_start(self, connection: Connection, request_id: UUID) -> None:
        """Nobody waits for that parser any more."""
        connection.execute(delete(parse_start).where(parse_start.c.request_id == request_id))

    def find_started(self, request_ids: Sequence[UUID]) -> set[UUID]:
        """Those of these requests that a parser has begun with, and not answered."""
        query = select(parse_start.c.request_id).where(parse_start.c.request_id.in_(request_ids))
        return set(
            self._app.in_transaction(
                lambda connection: connection.execute(query).scalars().all(), reads=True, single_statement=True
            )
        )

    def stale_starts(self, before: datetime) -> Sequence[UUID]:
        """The requests that a parser began with before then, and has not answered, the oldest first."""
        query = select(parse_start.c.request_id).where(parse_start.c.started_at < before)
        query = query.order_by(parse_start.c.started_at).limit(_STALE_AT_ONCE)
        return self._app.in_transaction(lambda connection: connection.execute(query).scalars().all(), reads=True)

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
        _require_storable(title, body)
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

    def change(
        self, recipe_id: RecipeId, user: str, change: Callable[[SavedRecipe], tuple[str, dict[str, JSON]]]
    ) -> SavedRecipe:
        """Change one of somebody's recipes into what ``change`` makes of it; of two at once the later sees both."""

        def operation(connection: Connection) -> SavedRecipe:
            before = _lock_recipe(connection, recipe_id, user)
            title, body = change(before)
            _require_storable(title, body)
            after = replace(before, title=title, body=body, updated_at=max(datetime.now(UTC), before.updated_at))
            values = {"title": title, "body": body, "updated_at": after.updated_at}
            connection.execute(update(saved_recipe).where(_theirs(recipe_id, user)).values(values))
            return after

        return self._app.in_transaction(operation)

    def remove(self, recipe_id: RecipeId, user: str, require: Callable[[SavedRecipe], None]) -> None:
        """Forget one of somebody's recipes, unless ``require`` refuses it."""

        def operation(connection: Connection) -> None:
            require(_lock_recipe(connection, recipe_id, user))
            connection.execute(delete(saved_recipe).where(_theirs(recipe_id, user)))

        self._app.in_transaction(operation)


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


def _require_storable(title: str, body: dict[str, JSON]) -> None:
    """Refuse what PostgreSQL refuses and SQLite would keep: people are told the same by every database."""
    for name, value in {"title": title, **body}.items():
        if storable_texts(value) != value:
            raise PayloadNotStorable(f"{name} has characters that cannot be kept (NUL or lone surrogates)", field=name)


def _theirs(recipe_id: RecipeId, user: str) -> ColumnElement[bool]:
    column = saved_recipe.c.uuid if isinstance(recipe_id, UUID) else saved_recipe.c.id
    return (column == recipe_id) & (saved_recipe.c.user_id == user)


def _lock_recipe(connection: Connection, recipe_id: RecipeId, user: str) -> SavedRecipe:
    """One of somebody's recipes, which nobody else changes before this transaction ends."""
    query = select(saved_recipe).where(_theirs(recipe_id, user)).with_for_update()  # SQLite has one writer anyway
    row = connection.execute(query).one_or_none()
    if row is None:
        raise _not_there(recipe_id)
    return _saved_recipe(row)


def _not_there(recipe_id: RecipeId) -> FileNotFound:
    return FileNotFound(f"there is no recipe {recipe_id}", code="RECIPE_NOT_FOUND")


def _saved_recipe(row: Row[Any]) -> SavedRecipe:
    return SavedRecipe(
        row.id, row.uuid, row.user_id, row.title, row.body, row.parse_job_id,
        _aware(row.created_at), _aware(row.updated_at),
    )  # fmt: skip


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # SQLite keeps no zone
