"""How retailers are described in a file, checked before anybody is asked.

``PRODUCT_PROVIDERS`` is the path of a JSON file with a list of them. The addresses are the operator's own, so they may
be on this machine; values from rows only ever go into them quoted, behind the host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args
from urllib.parse import urlsplit

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from penstock.errors import ConfigurationError
from penstock.lifecycle import JSON
from penstock_apps.numbers import NUMBER
from penstock_apps.products.strategies import Strategy

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

AddressName = Literal["gtin", "sku", "text"]
FieldName = Literal["title", "brand", "sku", "gtin", "price", "currency", "availability", "url", "image"]
ADDRESSES: dict[Strategy, AddressName] = {
    Strategy.SKU: "sku", Strategy.GTIN: "gtin", Strategy.BRAND_AND_TITLE: "text", Strategy.TITLE: "text",
}  # fmt: skip
"""The address each question goes to."""
PLACE = re.compile(r"\{([^{}]*)\}")
_VALUES = ("sku", "gtin", "brand", "title", "text")
_SECRET = re.compile(r"\$\{([^{}]*)\}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _check_address(url: str) -> str:
    parts = urlsplit(url)
    _ = parts.port  # a port that is no number is found only when it is asked for
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must start with http:// or https:// and a host")
    if "{" in parts.netloc or "@" in parts.netloc:
        raise ValueError("may have neither {…} nor a password in its host: use headers for a key")
    places = PLACE.findall(url)
    if not places:
        raise ValueError("has no {…}, so every row would ask the same")
    for place in places:
        if place not in _VALUES:
            raise ValueError(f"has {{{place}}}; known are {', '.join(_VALUES)}")
    return url


def _check_fields(fields: dict[FieldName, str]) -> dict[FieldName, str]:
    if not fields.keys() & {"title", "sku", "gtin"}:
        raise ValueError("needs title, sku or gtin: without one no answer can be checked")
    return fields


def _fill_secrets(value: str, info: ValidationInfo) -> str:
    """A header with the secrets of the environment in place of ``${…}``."""
    environment: Mapping[str, str] = info.context or {}

    def secret(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ValueError(f"needs the environment variable {match[1]}, which is not set")
        return environment[match[1]]

    header = _SECRET.sub(secret, value)
    if not header.isascii() or not header.isprintable():
        raise ValueError("is not a header: letters, digits and signs on one line are")
    return header


def _check_header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is not the name of a header")
    return name


class HttpJsonSettings(BaseModel):
    """How one retailer is asked. Headers may hold keys, so they are never shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    url: Annotated[dict[AddressName, Annotated[str, AfterValidator(_check_address)]], Field(min_length=1)]
    fields: Annotated[dict[FieldName, str], AfterValidator(_check_fields)]
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000), NUMBER] = 100
    headers: Annotated[
        dict[Annotated[str, AfterValidator(_check_header_name)], Annotated[str, AfterValidator(_fill_secrets)]],
        Field(repr=False),
    ] = {}
    items: str = ""
    calls_per_second: Annotated[float, Field(ge=0.001, le=10_000), NUMBER] = 5.0
    concurrency: Annotated[int, Field(ge=1, le=1_000), NUMBER] = 4
    timeout_seconds: Annotated[float, Field(ge=0.01, le=300), NUMBER] = 10.0
    outage_seconds: Annotated[float, Field(ge=0, le=604_800), NUMBER] = 900.0
    """How long items wait for it while it refuses, fails or does not answer, before that uses up their tries."""


_RETAILERS = TypeAdapter(list[HttpJsonSettings])


def read_retailers(path: str, environment: Mapping[str, str]) -> list[HttpJsonSettings]:
    """Read the file at ``path`` and check it."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"PRODUCT_PROVIDERS: {path} cannot be read ({error.strerror})") from error
    return parse_retailers(content, environment)


def parse_retailers(content: bytes, environment: Mapping[str, str]) -> list[HttpJsonSettings]:
    """Check the descriptions of a file; the first thing that is wrong is said with the retailer's name and the key."""
    try:
        descriptions = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"PRODUCT_PROVIDERS: the file is not JSON ({error})") from error
    try:
        retailers = _RETAILERS.validate_python(descriptions, context=environment)
    except ValidationError as error:
        raise ConfigurationError(f"PRODUCT_PROVIDERS: {_describe(error.errors()[0], descriptions)}") from error
    for name, count in Counter(retailer.name for retailer in retailers).items():
        if count > 1:
            raise ConfigurationError(f"PRODUCT_PROVIDERS: two retailers are called {name!r}: names must differ")
    return retailers


def _describe(problem: ErrorDetails, descriptions: JSON) -> str:
    if not problem["loc"]:
        return f"a list of retailers is wanted, not {type(descriptions).__name__}"
    index, *keys = problem["loc"]
    number = int(index) + 1
    if not keys:
        return f"retailer {number} is not an object"
    name = descriptions[index].get("name")
    retailer = name.strip() if isinstance(name, str) and name.strip() else f"number {number}"
    key = ".".join(str(part) for part in keys if part != "[key]")
    return f"retailer {retailer}: {key!r} {_reason(problem)}"


def _reason(problem: ErrorDetails) -> str:
    match problem["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return f"is not known; known are {', '.join(sorted(HttpJsonSettings.model_fields))}"
        case "literal_error":
            names = get_args(AddressName if problem["loc"][1] == "url" else FieldName)
            return f"is not known; known are {', '.join(names)}"
        case "value_error":
            return str(problem["ctx"]["error"])
    return f"is wrong: {problem['msg']}"
