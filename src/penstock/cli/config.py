"""``penstock config``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption, AsJson
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock.settings.environment import SettingShown


def config(
    check: Annotated[
        bool, typer.Option("--check", help="Look whether it all works, changing nothing; exit 2 if it does not.")
    ] = False,
    as_json: AsJson = False,
    app: AppOption = None,
) -> None:
    """Print each setting with its value, source and meaning.

    \b
    penstock config
    PENSTOCK_DATABASE_URL=postgresql://penstock@db.example/penstock penstock config --check
    """
    from penstock.cli.application import open_app
    from penstock.cli.as_json import print_lines

    with open_app(app) as penstock:
        if check:
            _check(penstock)
            return
        settings_shown = _every_setting(penstock)
        if as_json:
            print_lines(settings_shown)
        else:
            _print_settings(settings_shown)


def _every_setting(app: Penstock) -> list[SettingShown]:
    """Those of the engine, of the sources that files are fetched from, and of each application that is here."""
    from penstock.ingest.sources.settings import SourceSettings
    from penstock.settings.environment import read_settings, show_settings

    groups = [app.settings, read_settings(SourceSettings)]
    groups += [guest.settings for guest in app.applications if guest.settings is not None]
    return [setting for settings in groups for setting in show_settings(settings)]


def _print_settings(settings_shown: list[SettingShown]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from penstock.cli.screen import print_out

    for setting in settings_shown:
        line = Text(setting.variable, style="bold")
        line.append(f" = {setting.value}", style="not bold")
        line.append(f"  ({setting.source})", style="dim not bold")
        print_out(line, Padding(Text(setting.meaning), (0, 0, 0, 4)))


def _check(app: Penstock) -> None:
    """Say everything that is wrong, not only the first."""
    problems: list[PenstockError] = []
    remarks: list[str] = []
    connection: list[str] = []
    questions: tuple[Callable[[], object], ...] = (
        lambda: remarks.extend(app.system.check_database()),
        lambda: connection.extend(app.system.describe_connection()),
        lambda: remarks.extend(app.messages.check_transport()),
        lambda: _require_writable(app.settings.files_directory),
    )
    for question in questions:
        try:
            question()
        except PenstockError as error:
            problems.append(error)
    # A database that cannot be reached answers neither of the first two, in the same words.
    problems = list({problem.message: problem for problem in problems}.values())
    for problem in problems[:-1]:
        print(f"penstock: {problem.message} ({problem.code})", file=sys.stderr)
    if problems:
        raise problems[-1]
    broker = ", the broker" if app.settings.transport == "kafka" else ""
    print(f"all is well: the settings, the app, the database{broker} and the files directory")
    for line in connection:
        print(line)
    for remark in remarks:
        print(f"to know: {remark}")
    for unknown in _unknown_variables(app):
        print(f"to know: {unknown.message} ({unknown.code})")
    for lacking in _left_out():
        print(f"left out: {lacking}")


def _require_writable(directory: Path) -> None:
    """It is made when it is first needed: then the nearest folder above it counts."""
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"files cannot be kept in {directory} (PENSTOCK_FILES_DIRECTORY): {there} is not a folder we may write in",
            code="FILES_NOT_WRITABLE",
        )


def _unknown_variables(app: Penstock) -> list[ConfigurationError]:
    """Variables of the environment that look like settings and are none."""
    known_variables = {setting.variable for setting in _every_setting(app)} | _variables_of_applications()
    unknown_variables = [
        name for name in sorted(os.environ) if name.startswith("PENSTOCK_") and name not in known_variables
    ]
    remarks = []
    for name in unknown_variables:
        similar = get_close_matches(name, known_variables, n=1)
        question = f"; did you mean {similar[0]}?" if similar else ""
        message = f"{name} is set, and no setting has that name{question}"
        remarks.append(ConfigurationError(message, code="SETTING_UNKNOWN"))
    return remarks


def _variables_of_applications() -> set[str]:
    """Those of every application that is installed, whether this app has it or not."""
    from penstock.application import resolve
    from penstock.applications import find_applications

    variables: set[str] = set()
    for application in find_applications().values():
        with suppress(ImportError):  # one that lacks a library
            settings_type = resolve(application.settings)
            if settings_type is not None:
                variables.update(str(field.validation_alias) for field in settings_type.model_fields.values())
    return variables


def _left_out() -> list[str]:
    """The applications that lack a library, and which extra brings it."""
    from penstock.applications import find_applications

    return [lacking for application in find_applications().values() if (lacking := application.why_missing())]
