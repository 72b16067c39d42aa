"""Settings read from the environment and shown again, of the engine or of an application."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from penstock.errors import ConfigurationError
from penstock.redaction import hide_secrets
from penstock.settings.types import WrittenAs

AnySettings = TypeVar("AnySettings", bound=BaseSettings)

_CHOICES = re.compile(r"(?:\(\?i\))?\^\(([\w|-]+)\)\$")
"""A pattern that is a choice of words."""


@dataclass(frozen=True, slots=True)
class SettingShown:
    """One line of ``penstock config``."""

    variable: str
    value: str
    source: str
    meaning: str


def read_settings(settings: type[AnySettings], **overrides: Any) -> AnySettings:
    """Settings from the environment, of the engine or of an application, checked one by one; ``overrides`` win."""
    try:
        return settings(**overrides)
    except ValidationError as error:
        lines = [_describe_problem(settings, problem) for problem in error.errors()]
    # Not from the error, nor while it is handled: it repeats every value, and a traceback would show that.
    raise ConfigurationError("the settings are wrong: " + "; ".join(lines))


def _describe_problem(settings: type[BaseSettings], problem: Any) -> str:
    """Which variable is wrong, and how; a secret is not repeated."""
    place = ".".join(map(str, problem["loc"]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    pattern = problem.get("ctx", {}).get("pattern", "")
    if choices := _CHOICES.fullmatch(pattern):
        message = f"it is one of {choices[1].replace('|', ', ')}"
    fields = {str(field.validation_alias): field for field in settings.model_fields.values()}
    field = settings.model_fields.get(place) or fields.get(place)
    if field is None:
        return message
    if pattern and not choices:
        message = f"it does not fit: {(field.description or '').rstrip('.')}"
    is_secret = "SecretStr" in str(field.annotation)
    value_text = "" if is_secret or repr(problem["input"]) in message else f" (got {problem['input']!r})"
    return f"{field.validation_alias}: {message}{value_text}"


def show_settings(settings: BaseSettings) -> list[SettingShown]:
    """Each setting with its value, where it comes from and what it means; passwords are not shown."""
    shown_settings = []
    for name, field in type(settings).model_fields.items():
        variable, value = str(field.validation_alias), getattr(settings, name)
        if value == field.default:
            source = "default"
        else:
            source = "environment" if os.environ.get(variable) is not None else "program"
        text = hide_secrets(environment_text(field, value))
        shown_settings.append(SettingShown(variable, text, source, field.description or ""))
    return shown_settings


def environment_text(field: FieldInfo, value: Any) -> str:
    """A value of a setting as it would be written in the environment."""
    return next((mark.text(value) for mark in field.metadata if isinstance(mark, WrittenAs)), str(value))
