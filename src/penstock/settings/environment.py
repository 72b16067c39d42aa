"""Settings read from the environment and shown again, of the engine or of an application."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from penstock.errors import ConfigurationError
from penstock.settings.types import WrittenAs

AnySettings = TypeVar("AnySettings", bound=BaseSettings)


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
        raise ConfigurationError("the settings are wrong: " + "; ".join(lines)) from error


def _describe_problem(settings: type[BaseSettings], problem: Any) -> str:
    """Which variable is wrong, and how; a secret is not repeated."""
    place = ".".join(map(str, problem["loc"]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    fields = {str(field.validation_alias): field for field in settings.model_fields.values()}
    field = settings.model_fields.get(place) or fields.get(place)
    if field is None:
        return message
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
        text = _without_password(environment_text(field, value))
        shown_settings.append(SettingShown(variable, text, source, field.description or ""))
    return shown_settings


def environment_text(field: FieldInfo, value: Any) -> str:
    """A value of a setting as it would be written in the environment."""
    return next((mark.text(value) for mark in field.metadata if isinstance(mark, WrittenAs)), str(value))


def _without_password(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not (separator and at and ":" in credentials):
        return value
    return f"{scheme}://{credentials.partition(':')[0]}:***@{host}"
