"""An application: one value that says what a guest brings, and nothing that is loaded before it is needed.

::

    notes = Application(
        name="notes",
        settings="notes.settings:NoteSettings",
        migrations=Migrations("notes", head="0001"),
        install="notes.service:Notes",
        routes="notes.routes:routes_of",
    )

A field is the thing itself, or the place where it is (``module:attribute``), which is imported when somebody asks for
it: a worker never loads pages, and the command line loads an application's commands only when they are wanted.
``install`` is called with the :class:`~penstock.app.Penstock` and the settings; what it answers is the application's
own object, which its routes and pages are made of.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar, cast

from pydantic import BeforeValidator
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.errors import ConfigurationError
from penstock.lifecycle.quantities import seconds, size_in_bytes
from penstock.settings.types import Folders, Names, WrittenAs
from penstock.store.migrations.revision import Revision

if TYPE_CHECKING:
    from fastapi import APIRouter

    from penstock.app import Penstock
    from penstock.samples import Samples

__all__ = [
    "Application", "ApplicationSettings", "Bytes", "Folders", "Installed", "Migrations", "Names", "Page", "Pages",
    "Revision", "Seconds", "resolve",
]  # fmt: skip

Value = TypeVar("Value")
Service = TypeVar("Service")
Routes: TypeAlias = "Callable[[Any], APIRouter]"


@dataclass(frozen=True, slots=True)
class Migrations:
    """Where an application's tables come from."""

    package: str = ""
    """The package whose folder ``migrations/versions`` holds the revisions."""
    head: str = ""
    """The newest of them."""
    revisions: tuple[Revision, ...] = ()
    """The revisions themselves, oldest first, for an application without a folder of them."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of an application, below ``/ui/``: a frame that its modules fill from the API."""

    name: str
    """Its entry in the navigation."""
    address: str
    """``notes`` is served at ``/ui/notes``."""
    template: str = ""
    """A file in the folder ``templates``; it extends ``layout.html``."""
    source: str = ""
    """The template itself, of a page that is too small for a file."""
    results_of: tuple[str, ...] = ()
    """The kinds whose results wait here for their owners: the page of such a job leads here."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of an application, and the folder with what they are made of: ``templates`` and ``static``."""

    pages: tuple[Page, ...]
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(Generic[Service]):
    """What an application brings; every field but its name may be left out."""

    name: str
    install: str | Callable[[Penstock, Any], Service]
    """Called with the Penstock and the settings: registers the kinds, and answers the application's own object."""
    settings: str | type[BaseSettings] | None = None
    """Read from the environment, checked when it is installed, and shown by ``penstock config``."""
    migrations: Migrations | None = None
    routes: str | Routes | None = None
    """Called with the application's own object."""
    pages: str | Pages | None = None
    commands: str | Sequence[Callable[..., None]] = ()
    """Functions that become commands of ``penstock``, as typer reads them, or a ``typer.Typer`` of several."""
    samples: str | type[Samples] | None = None
    """What ``penstock demo`` and ``penstock serve --samples`` show of it."""
    kinds: tuple[str, ...] = ()
    """The kinds it registers, so that who submits one is told why where it could not be installed."""
    addresses: tuple[str, ...] = ()
    """Where its routes and pages begin (``/api/notes``, ``/ui/notes``), for the same reason."""
    needs: tuple[str, ...] = ()
    """The modules it needs."""
    extra: str = ""
    """What to install to have them, like ``notes[server]``."""

    def missing(self) -> list[str]:
        """The modules it needs and does not find."""
        return [module for module in self.needs if importlib.util.find_spec(module) is None]

    def why_missing(self) -> str | None:
        """Why it cannot be installed, and what to do; None if it can."""
        missing = self.missing()
        if not missing:
            return None
        remedy = f"install {self.extra}" if self.extra else "install them"
        return f"the application {self.name} needs {', '.join(missing)}, not installed here: {remedy}"


@dataclass(frozen=True, slots=True)
class Installed:
    """An application on a Penstock: the value, its settings, and its own object."""

    application: Application[Any]
    settings: BaseSettings | None
    service: object = field(repr=False)

    def routes(self) -> list[APIRouter]:
        """Its addresses."""
        make = resolve(self.application.routes)
        return [] if make is None else [make(self.service)]

    def pages(self) -> Pages | None:
        """Its pages."""
        return resolve(self.application.pages)


def resolve(value: str | Value) -> Value:
    """What a field says: the thing itself, or what is at ``module:attribute``."""
    if not isinstance(value, str):
        return value
    module, _, attribute = value.partition(":")
    return cast("Value", getattr(importlib.import_module(module), attribute))


class ApplicationSettings(BaseSettings):
    """The settings of an application: each field names its environment variable, and says what it means.

    ::

        class NoteSettings(ApplicationSettings):
            longest: Annotated[int, Field(validation_alias="NOTES_LONGEST", ge=1, description="…")] = 1_000
    """

    model_config = SettingsConfigDict(frozen=True, populate_by_name=True, extra="ignore")


def _quantity(read: Callable[[str], Value]) -> Callable[[object], object]:
    def validate(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return read(value)
        except ConfigurationError as error:
            raise ValueError(error.message) from None

    return validate


Seconds = Annotated[float, BeforeValidator(_quantity(seconds)), WrittenAs(lambda value: f"{value:g}s")]
"""A setting that is a time: ``90s`` or ``5m`` in the environment, seconds in a program."""
Bytes = Annotated[int, BeforeValidator(_quantity(size_in_bytes)), WrittenAs(lambda value: f"{value / 1024**2:g}MiB")]
"""A setting that is a size: ``512MiB`` or ``20MB`` in the environment, bytes in a program."""
