"""Penstock over HTTP: an application to serve, or to mount in one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.http.auth import Admin, Anyone, AnyoneSubmitting, SignedIn, Submitting, count_less
    from penstock.http.bodies import limit_body
    from penstock.http.errors import documented
    from penstock.http.forms import FormField, StartForm
    from penstock.http.pagination import link_to_next, read_cursor, written_cursor
    from penstock.http.responses import Json
    from penstock.http.routing import Router, add_routes
    from penstock.http.tokens import Identity
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.http.auth": "Admin Anyone AnyoneSubmitting SignedIn Submitting count_less",
            "penstock.http.bodies": "limit_body",
            "penstock.http.errors": "documented",
            "penstock.http.forms": "FormField StartForm",
            "penstock.http.pagination": "link_to_next read_cursor written_cursor",
            "penstock.http.responses": "Json",
            "penstock.http.routing": "Router add_routes",
            "penstock.http.tokens": "Identity",
        },
    )

__all__ = [
    "Admin", "Anyone", "AnyoneSubmitting", "FormField", "Identity", "Json", "Router", "SignedIn", "StartForm",
    "Submitting", "add_routes", "count_less", "documented", "limit_body", "link_to_next", "read_cursor",
    "written_cursor",
]  # fmt: skip
