# file: notes.py
"""Notes: a worker counts the words of each, and keeps it in a table of its own."""

from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op
from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from penstock import ItemContext, Penstock
from penstock.application import Application, ApplicationSettings, Migrations, Page, Pages, Revision
from penstock.http import Json, SignedIn
from penstock.samples import SampleJob, Samples, Visitor
from penstock.store import DatabaseConnection, own_metadata

LISTED = """{% extends "layout.html" %}{% block title %}Notes{% endblock %}
{% block main %}<h1>Notes</h1>{% endblock %}"""


def columns() -> tuple[sa.Column[Any], ...]:
    key = sa.Column("job_id", sa.Uuid, primary_key=True)
    return key, sa.Column("user_id", sa.String(255)), sa.Column("words", sa.Integer, nullable=False)


def upgrade() -> None:
    op.create_table("notes", *columns())


table = sa.Table("notes", own_metadata(), *columns())


class NoteSettings(ApplicationSettings):
    max_words: Annotated[int, Field(validation_alias="NOTES_MAX_WORDS", ge=1, description="The longest note.")] = 100


class NoteParams(BaseModel):
    text: str = Field(min_length=1, max_length=10_000)


class Notes:
    params_schema = NoteParams  # makes POST /api/kinds/note/jobs
    columns = ("words",)

    def __init__(self, app: Penstock, settings: NoteSettings) -> None:
        self._app, self._max_words = app, settings.max_words
        app.kind("note", retries=2)(self)

    def process(self, item: ItemContext) -> dict[str, int]:
        words = len(item.input["text"].split()[: self._max_words])
        self.keep(item.job_id, item.owner, words)
        return {"words": words}

    def describe(self, result: Any) -> str:
        return f"{result['words']} words"

    def keep(self, job_id: UUID, user: str | None, words: int) -> None:
        def operation(connection: DatabaseConnection) -> None:  # twice is as good as once: a worker may die after it
            connection.execute(sa.delete(table).where(table.c.job_id == job_id))
            connection.execute(sa.insert(table).values(job_id=job_id, user_id=user, words=words))

        self._app.in_transaction(operation)

    def count(self, user: str | None) -> int:
        query = sa.select(sa.func.count()).where(table.c.user_id == user)
        return int(self._app.in_transaction(lambda connection: connection.execute(query).scalar_one(), reads=True))


def routes_of(notes: Notes) -> APIRouter:
    routes = APIRouter(prefix="/api/notes", tags=["notes"])

    @routes.get("/count", summary="How many notes are yours")
    def count(who: SignedIn) -> Response:
        return Json({"count": notes.count(who.user)})

    return routes


def count_notes(user: str) -> None:
    """Print how many notes somebody has."""
    app = Penstock()
    print(app.install(notes).count(user))
    app.close()


class NoteSamples(Samples):
    def submit(self, visitor: Visitor) -> list[SampleJob]:
        job = visitor.send("/api/kinds/note/jobs", {"text": "The gate is open"})
        return [SampleJob(UUID(job["job_id"]), "note: the gate")]


notes: Application[Notes] = Application(
    name="notes", settings=NoteSettings, install=Notes, kinds=("note",), routes=routes_of, samples=NoteSamples,
    migrations=Migrations(revisions=(Revision("0001", upgrade),)),
    pages=Pages((Page("Notes", address="notes", source=LISTED),)), commands=(count_notes,),
)  # fmt: skip
