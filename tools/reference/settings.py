"""The page of settings, from :class:`penstock.settings.Settings` and the apps' own variables."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType
from typing import Any, get_args

from penstock.settings import Settings
from penstock_apps.documents.service import Limits
from penstock_apps.variables import VARIABLES, Variable
from tools.reference import meanings
from tools.reference.markdown import code, document, fenced, matched, table

_SIGNS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
_PREFIX = "DOCUMENTS_"


def page() -> str:
    """docs/reference/settings.md."""
    check_documents()
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
        "## The applications",
        "Read when `penstock_apps:app` is put together. They are not part of `Settings`: each app reads its own. "
        "A duration "
        "is written like `90s` or `5m`, a size like `512MiB` or `20MB`; a number without a unit is refused.",
        *(part for name, variables in VARIABLES.items() for part in (f"### {name.capitalize()}", _of_app(variables))),
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
                code(_shown(field.default)),
                _bounds(field.metadata),
                field.description or "",
            )
        )
    return table(("variable", "field", "type", "default", "bounds", "meaning"), rows)


def _type(annotation: Any) -> str:
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


def _of_app(variables: tuple[Variable, ...]) -> str:
    rows = ((code(one.name), code(one.default) if one.default else "", one.meaning) for one in variables)
    return table(("variable", "default", "meaning"), rows)


def check_documents() -> None:
    """Each of the documents app's is tried, so that the field and the default it changes are seen and not believed."""
    defaults = Limits()
    said = {one.name.removeprefix(_PREFIX): one.default for one in VARIABLES["documents"]}
    matched("the documents app's variables", said, meanings.DOCUMENT_SAMPLES)
    changed: dict[str, str] = {}
    for name, sample in meanings.DOCUMENT_SAMPLES.items():
        other = Limits.from_environment({_PREFIX + name: sample})
        names = [one.name for one in fields(Limits) if getattr(other, one.name) != getattr(defaults, one.name)]
        if len(names) != 1:
            raise SystemExit(f"{_PREFIX}{name}={sample} changes {names or 'nothing'}; one field was expected")
        changed[names[0]] = said[name]
        if _measure(names[0], getattr(defaults, names[0])) != said[name]:
            raise SystemExit(f"{_PREFIX}{name} is {_measure(names[0], getattr(defaults, names[0]))}, not {said[name]}")
    matched("the documents app's limits", changed, [one.name for one in fields(Limits)])


def _measure(field: str, value: object) -> str:
    """A default as it would be written in the environment."""
    if isinstance(value, int) and field.endswith("bytes"):
        return f"{value // 1024**2}MiB"
    return f"{value:g}s" if isinstance(value, float) else str(value)
