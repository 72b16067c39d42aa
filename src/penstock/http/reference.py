"""``/docs``: the API as a page for people, made from the OpenAPI document alone, without scripts or other hosts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import orjson
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .75rem; background: color-mix(in srgb, currentColor 7%, transparent); }
section { border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; }
td:first-child { white-space: nowrap; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_DEEPEST = 6


def operation_name(route: APIRoute) -> str:
    """What a generated client calls an operation: its function's name, as programs of many languages spell one.

    >>> from fastapi.routing import APIRoute
    >>> def get_job() -> None: ...
    >>> operation_name(APIRoute("/api/jobs/{job_id}", get_job))
    'getJob'
    """
    return to_camel(re.sub(r"\W", "_", route.name))


def describe(api: FastAPI, *, who_may: Callable[..., object]) -> None:
    """Add the page at ``/docs`` and the document at ``/openapi.json``, for those whom a dependency lets through."""
    dependencies = [Depends(who_may)]

    @api.get("/docs", include_in_schema=False, dependencies=dependencies)
    def docs(request: Request) -> HTMLResponse:
        return HTMLResponse("".join(_page(api.openapi(), _root(request))), headers=_HEADERS)

    @api.get("/openapi.json", include_in_schema=False, dependencies=dependencies)
    def document(request: Request) -> JSONResponse:
        root = str(request.scope.get("root_path", "")).rstrip("/")
        return JSONResponse({**api.openapi(), **({"servers": [{"url": root}]} if root else {})})


def _root(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _page(document: dict[str, Any], root: str) -> Iterator[str]:
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
    yield from (f"<p>{_mark_up(part)}</p>" for part in info["description"].strip().split("\n\n"))
    yield f'<p>The same for programs: <a href="{escape(root)}/openapi.json">openapi.json</a>.</p>'
    for tag, operations in _by_tag(document).items():
        yield f"<section><h2>{escape(tag)}</h2>"
        for method, path, operation in operations:
            yield from _operation(document, root, method, path, operation)
        yield "</section>"
    yield "</main></body></html>"


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    operations = defaultdict(list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            operations[operation.get("tags", ["other"])[0]].append((method.upper(), path, operation))
    return operations


def _operation(document: dict[str, Any], root: str, method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h3>{escape(operation['summary'])}</h3><p><code>{method} {escape(path)}</code></p>"
    yield f"<p>{_mark_up(operation.get('description', ''))}</p>"
    if operation.get("parameters"):
        yield "<table><tr><th>parameter<th>in<th>meaning</tr>"
        for parameter in operation["parameters"]:
            yield f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']}<td>{_meaning(parameter)}"
        yield "</table>"
    yield f"<pre>{escape(_curl(document, root, method, path, operation))}</pre>"
    yield "<table><tr><th>status<th>meaning</tr>"
    for status, answer in operation["responses"].items():
        yield f"<tr><td>{status}<td>{_mark_up(answer['description'])}"
    yield "</table>"


def _meaning(parameter: dict[str, Any]) -> str:
    """What a parameter is for; where nobody says so, what it may be."""
    schema = parameter.get("schema", {})
    if parameter.get("description"):
        return _mark_up(parameter["description"])
    if "minimum" in schema and "maximum" in schema:
        otherwise = f", {schema['default']} unless given" if "default" in schema else ""
        return f"{schema['minimum']} to {schema['maximum']}{otherwise}"
    return escape(str(schema.get("format", "")))


def _curl(document: dict[str, Any], root: str, method: str, path: str, operation: dict[str, Any]) -> str:
    parts = ["curl" if method == "GET" else f"curl -X {method}"]
    if "security" in operation:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        if media == "application/json":
            body = orjson.dumps(_example(document, content.get("schema", {}), 0)).decode()
            parts += ["-H 'Content-Type: application/json'", f"-d '{body}'"]
        else:
            parts.append("-F file=@FILE")
    return " \\\n  ".join([*parts, f'"{root}{path}"'])


def _example(document: dict[str, Any], schema: dict[str, Any], depth: int) -> Any:
    """A value the schema allows: its own example where it has one."""
    if depth > _DEEPEST:
        return None
    if "$ref" in schema:
        return _example(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth + 1)
    if schema.get("examples"):
        return schema["examples"][0]
    if "default" in schema:
        return schema["default"]
    if schema.get("anyOf"):
        return _example(document, schema["anyOf"][0], depth + 1)
    if schema.get("type") == "object":
        required = schema.get("required") or schema.get("properties", {})
        return {name: _example(document, schema["properties"][name], depth + 1) for name in required}
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": []}.get(schema.get("type", ""))


def _mark_up(text: str) -> str:
    """Text in which backquotes mark code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
