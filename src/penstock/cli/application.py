"""Finding the Penstock object a command works with."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from penstock.cli.callers import caller
from penstock.errors import ConfigurationError, KindUnknown

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock.app import BoundApp

_CODE = "APP_NOT_LOADED"


@dataclass(frozen=True, slots=True)
class LoadedApp:
    """A Penstock object and the module it was found in."""

    app: Penstock
    module: ModuleType


@contextmanager
def open_app(name: str | None, *, log_level: str | None = None) -> Iterator[Penstock]:
    """The Penstock object of ``--app``, closed at the end; log lines below ``log_level`` are not shown."""
    with open_module(name, log_level=log_level) as loaded_app:
        yield loaded_app.app


@contextmanager
def open_app_as(name: str | None, user: str | None, *, is_program: bool = False) -> Iterator[BoundApp]:
    """The same in the name of the user of ``--as``, of an administrator, or of a program of theirs."""
    by = caller(user, is_program=is_program)
    with open_app(name) as app:
        yield app.acting_as(by)


@contextmanager
def open_module(name: str | None, *, log_level: str | None = None) -> Iterator[LoadedApp]:
    """The same, with its module."""
    from penstock.logs import configure_logs
    from penstock.settings import load_settings

    settings = load_settings()
    # Only a worker's own progress is worth a line; other commands speak up when something is wrong.
    configure_logs(log_level or ("ERROR" if settings.log_level.upper() == "ERROR" else "WARNING"))
    loaded_app = load(name or settings.app)
    try:
        yield loaded_app
    except KindUnknown as error:
        if name is not None or "app" in settings.model_fields_set:
            raise
        raise KindUnknown(
            f"{error.message}; these are the kinds of the installed applications: name your own app with --app "
            "module:attribute, or in PENSTOCK_APP"
        ) from None
    finally:
        loaded_app.app.close()


def load(name: str) -> LoadedApp:
    """Import ``module:attribute``, the working directory's modules included."""
    from penstock import Penstock

    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigurationError(
            f"{name!r} does not name an app; write module:attribute, like shop.jobs:app", code=_CODE
        )
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        raise ConfigurationError(
            "the working directory was removed: change into another one", code="DIRECTORY_GONE"
        ) from None
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name)
    value: object = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise ConfigurationError(f"module {module_name!r} has no {attribute!r}", code=_CODE) from None
    if not isinstance(value, Penstock):
        raise ConfigurationError(f"{name} is {_kind_of(value)}, not a Penstock object", code=_CODE)
    return LoadedApp(value, module)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise ConfigurationError(
                f"there is no module {error.name!r}, neither in this directory nor installed", code=_CODE
            ) from None
        raise ConfigurationError(f"{name} cannot be imported: {_describe(error)}", code=_CODE) from error
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"{name} cannot be imported: {_describe(error)}", code=_CODE) from error


def _describe(error: BaseException) -> str:
    """What was raised, and the last line of the app's own code that it passed."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename}, line {last.lineno}"
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    return f"{type(error).__name__}: {getattr(error, 'msg', None) or error} ({place})"


def _kind_of(value: object) -> str:
    return f"an object of type {type(value).__name__}"
