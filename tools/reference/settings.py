"""The page of settings, from :class:`penstock.settings.Settings` and the apps' own variables."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_origin

from pydantic_settings import BaseSettings

from penstock.application import resolve
from penstock.applications import find_applications
from penstock.ingest import SourceSettings
from penstock.settings import Settings
from penstock.settings.environment import environment_text
from tools.reference import meanings
from tools.reference.markdown import code, document, fenced, table

_SIGNS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))


def page() -> str:
    """docs/reference/settings.md."""
    return document(
        "Settings",
        "Settings are environment variables. They are read once, when a `Penstock` first needs one, and checked "
        "then: a "
        "wrong value is a `ConfigurationError` that names the variable. `penstock config` prints each with its "
        "value and where it comes from.",
        "## Penstock",
        _settings(),
        "Some are checked together: `CLAIM_MIN` may not be above `CLAIM_MAX`, nor `LOCK_FLOOR_MS` above "
        "`LOCK_CAP_MS`, `INGEST_MIN_ROWS` above `INGEST_MAX_ROWS`, or `DB_P50_MS` not below `DB_P95_MS`.",
        "A program may give them instead of the environment:",
        fenced(
            "from penstock import Penstock, load_settings\n\napp = Penstock(settings=load_settings(poll_seconds=1.0))",
            "python",
        ),
        "## Files from elsewhere",
        _variables(SourceSettings),
        "## The applications",
        "Each application has its own, which are read and checked when it is installed. A duration is written like "
        "`90s` or `5m`, a size like `512MiB` or `20MB`; a number without a unit is refused.",
        *(
            part
            for name, settings in settings_of_applications().items()
            for part in (f"### {name.capitalize()}", _variables(settings))
        ),
        "## Others",
        table(
            ("variable", "meaning"),
            ((code(name), meaning) for name, meaning in meanings.OTHER_VARIABLES.items()),
        ),
    )


def _settings() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        rows.append(
            (
                code(field.validation_alias),
                code(name),
                _type(field.annotation),
                "" if field.default == () else code(_shown(field.default)),
                _bounds(field.metadata),
                field.description or "",
            )
        )
    return table(("variable", "field", "type", "default", "bounds", "meaning"), rows)


def _type(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        return "paths"
    parts = [one for one in get_args(annotation) if one is not NoneType] or [annotation]
    return " or ".join(
        {"bool": "true or false", "str": "text", "int": "whole number", "float": "number"}.get(one.__name__, "path")
        for one in parts
    )


def _shown(value: object) -> str:
    return f"{value:,}".replace(",", "_") if isinstance(value, int) and value >= 10_000 else str(value)


def _bounds(metadata: list[Any]) -> str:
    bounds = [
        f"{words} {_shown(getattr(one, sign))}"
        for one in metadata
        for sign, words in _SIGNS
        if getattr(one, sign, None) is not None
    ]
    bounds += [f"matches `{one.pattern}`" for one in metadata if getattr(one, "pattern", None) is not None]
    return ", ".join(bounds)


def _variables(settings: type[BaseSettings]) -> str:
    rows = []
    for field in settings.model_fields.values():
        default = "" if field.default in (None, "", ()) else environment_text(field, field.default)
        is_secret = "SecretStr" in str(field.annotation)
        shown = code(default) if default and not is_secret else ""
        rows.append((code(field.validation_alias), shown, field.description or ""))
    return table(("variable", "default", "meaning"), rows)


def settings_of_applications() -> dict[str, type[BaseSettings]]:
    """The settings of each application that is installed here."""
    return {
        name: settings
        for name, application in find_applications().items()
        if (settings := resolve(application.settings)) is not None
    }


def variables_of(settings: type[BaseSettings]) -> list[str]:
    """The environment variables of some settings."""
    return [str(field.validation_alias) for field in settings.model_fields.values()]
