"""How retailers are described in a file, checked before anybody is asked.

``PRODUCT_PROVIDERS`` is the path of a JSON file with a list of them. The addresses are the operator's own, so they may
be on this machine; values from rows only ever go into them quoted, behind the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from penstock.errors import ConfigurationError
from penstock_apps.products.strategies import Strategy

ADDRESSES = {
    Strategy.SKU: "sku", Strategy.GTIN: "gtin", Strategy.BRAND_AND_TITLE: "text", Strategy.TITLE: "text",
}  # fmt: skip
PLACE = re.compile(r"\{([^{}]*)\}")
_VALUES = ("sku", "gtin", "brand", "title", "text")
_FIELDS = ("title", "brand", "sku", "gtin", "price", "currency", "availability", "url", "image")
_KEYS = frozenset(
    ("name", "priority", "url", "headers", "items", "fields", "calls_per_second", "concurrency", "timeout_seconds")
)
_SECRET = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class HttpJsonSettings:
    """How one retailer is asked. Headers may hold keys, so they are never shown."""

    name: str
    url: Mapping[str, str]
    fields: Mapping[str, str]
    priority: int = 100
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    items: str = ""
    calls_per_second: float = 5.0
    concurrency: int = 4
    timeout_seconds: float = 10.0


def described_in(path: str, environment: Mapping[str, str]) -> list[HttpJsonSettings]:
    """Read the file at ``path`` and check it."""
    try:
        described = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"PRODUCT_PROVIDERS: {path} cannot be read ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"PRODUCT_PROVIDERS: {path} is not JSON ({error})") from error
    return settings_from(described, environment)


def settings_from(described: object, environment: Mapping[str, str]) -> list[HttpJsonSettings]:
    """Check a list of descriptions; what is wrong is said with the retailer's name and the key."""
    if not isinstance(described, list):
        raise ConfigurationError(f"PRODUCT_PROVIDERS: a list of retailers is wanted, not {type(described).__name__}")
    found = [_settings(one, at, environment) for at, one in enumerate(described, start=1)]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"PRODUCT_PROVIDERS: two retailers are called {name!r}: names must differ")
    return found


def _settings(one: object, at: int, environment: Mapping[str, str]) -> HttpJsonSettings:
    if not isinstance(one, dict):
        raise ConfigurationError(f"PRODUCT_PROVIDERS: retailer {at} is not an object")
    name = one.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _wrong(f"number {at}", "name", "is missing: give it a name people know")
    for key in one:
        if key not in _KEYS:
            raise _wrong(name, key, f"is not known; known are {', '.join(sorted(_KEYS))}")
    items = one.get("items", "")
    if not isinstance(items, str):
        raise _wrong(name, "items", "is a path such as data.items")
    return HttpJsonSettings(
        name=name.strip(),
        url=_addresses(name, one.get("url")),
        fields=_paths(name, one.get("fields")),
        priority=int(_number(name, one, "priority", 100, -1_000_000, 1_000_000)),
        headers=_headers(name, one.get("headers", {}), environment),
        items=items,
        calls_per_second=_number(name, one, "calls_per_second", 5, 0.001, 10_000),
        concurrency=int(_number(name, one, "concurrency", 4, 1, 1_000)),
        timeout_seconds=_number(name, one, "timeout_seconds", 10, 0.01, 300),
    )


def _wrong(name: str, key: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"PRODUCT_PROVIDERS: retailer {name}: {key!r} {why}")


def _texts(name: str, key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise _wrong(name, key, "is missing, or is not an object whose values are texts")
    return value


def _addresses(name: str, value: object) -> dict[str, str]:
    urls = _texts(name, "url", value)
    if not urls:
        raise _wrong(name, "url", "is empty: give an address for gtin, sku or text")
    for strategy, url in urls.items():
        key = f"url.{strategy}"
        if strategy not in ADDRESSES.values():
            raise _wrong(name, key, "is not known; known are gtin, sku, text")
        try:
            parts = urlsplit(url)
            _ = parts.port  # a port that is no number is found only when it is asked for
        except ValueError as error:
            raise _wrong(name, key, f"is not an address ({error})") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _wrong(name, key, "must start with http:// or https:// and a host")
        if "{" in parts.netloc or "@" in parts.netloc:
            raise _wrong(name, key, "may have neither {…} nor a password in its host: use headers for a key")
        places = PLACE.findall(url)
        if not places:
            raise _wrong(name, key, "has no {…}, so every row would ask the same")
        for place in places:
            if place not in _VALUES:
                raise _wrong(name, key, f"has {{{place}}}; known are {', '.join(_VALUES)}")
    return urls


def _paths(name: str, value: object) -> dict[str, str]:
    paths = _texts(name, "fields", value)
    for known in paths:
        if known not in _FIELDS:
            raise _wrong(name, f"fields.{known}", f"is not known; known are {', '.join(_FIELDS)}")
    if not paths.keys() & {"title", "sku", "gtin"}:
        raise _wrong(name, "fields", "needs title, sku or gtin: without one no answer can be checked")
    return paths


def _headers(name: str, value: object, environment: Mapping[str, str]) -> dict[str, str]:
    def secret(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise _wrong(name, f"headers.{header}", f"needs the environment variable {match[1]}, which is not set")
        return environment[match[1]]

    headers = {}
    for header, text in _texts(name, "headers", value).items():
        filled = _SECRET.sub(secret, text)
        if not filled.isascii() or not filled.isprintable() or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", header):
            raise _wrong(name, f"headers.{header}", "is not a header: letters, digits and signs on one line are")
        headers[header] = filled
    return headers


def _number(name: str, one: Mapping[str, Any], key: str, default: float, least: float, most: float) -> float:
    value = one.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _wrong(name, key, f"is {value!r}; a number from {least:g} to {most:g} is wanted")
    return float(value)
