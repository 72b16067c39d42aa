"""A real server with every application, its worker, a site to read recipes from and a shop to look products up at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock import Job, Penstock, load_settings, owner
from penstock.applications import install_applications
from penstock.http.service import Service
from penstock.http.tokens import Tokens
from penstock_apps.products.retailer import Retailer, demo_retailer
from penstock_apps.products.samples import write_retailers
from penstock_apps.recipes.samples import sample_site
from tests.browser import kinds
from tests.http.conftest import SECRET, Served, serving

_PATIENCE = 60.0
_UNLIMITED = 1_000_000


@dataclass
class WholeServer:
    """The server, and what a test wants to do behind the browser's back."""

    app: Penstock
    """The one behind the server."""
    served: Served
    site: str
    """Host and port of the site with recipes; its pages are those of penstock_apps.recipes.samples."""
    shop: Retailer
    directory: Path
    """A folder of its own, where photos may be scanned and tables taken in."""
    _people: Iterator[int]

    @property
    def url(self) -> str:
        """Where it serves."""
        return self.served.url

    @property
    def service(self) -> Service:
        """What all its routes share."""
        service: Service = self.served.server.config.app.state.penstock  # type: ignore[union-attr]
        return service

    @property
    def tokens(self) -> Tokens:
        """What makes tokens for it."""
        assert self.service.tokens is not None
        return self.service.tokens

    def somebody(self) -> str:
        """A user nobody else has: the server is shared by many tests, so jobs are told apart by whose they are."""
        return f"person-{next(self._people)}"

    def token(self, user: str, *, admin: bool = False) -> str:
        """One that is good for a day."""
        return self.tokens.issue(user, is_admin=admin)

    def link(self, user: str, *, admin: bool = False) -> str:
        """The path that signs somebody in, once."""
        return f"/ui/enter/{self.service.links.make(self.token(user, admin=admin))}"

    def hold(self, user: str, *, items: int = 3, title: str | None = None) -> kinds.Held:
        """A job whose items wait until the test lets them go, or has ended."""
        gate = kinds.Gate()
        return kinds.Held(self._submit(kinds.HOLD, user, gate, items, title), gate)

    def fail_some(self, user: str, *, items: int = 15) -> kinds.Failing:
        """A job with items that fail in two ways."""
        gate = kinds.Gate()
        return kinds.Failing(self._submit(kinds.FAIL_SOME, user, gate, items), gate)

    def many(self, user: str, *, items: int = 1_000) -> UUID:
        """A job with many items, all of which succeed."""
        return self._submit(kinds.MANY, user, kinds.Gate(), items)

    def ended(self, job_id: UUID) -> Job:
        """The job, once it is over."""
        return self.app.jobs.wait(job_id, timeout=_PATIENCE, every=0.02)

    def _submit(self, kind: str, user: str, gate: kinds.Gate, items: int, title: str | None = None) -> UUID:
        params: dict[str, Any] = {"gate": gate.number, "items": items}
        return self.app.acting_as(owner(user)).submit(kind, params, title=title).job.id


@contextmanager
def whole_server(directory: Path) -> Iterator[WholeServer]:
    """One on a fresh database, for the length of a ``with`` block."""
    settings = load_settings(
        database_url=f"sqlite:///{directory}/penstock.db",
        files_directory=directory / "files",
        ingest_roots=(directory,),
        ingest_settle_seconds=0.0,
        flush_ms=50,
        heartbeat_seconds=0.1,
        poll_seconds=0.5,
        sweep_seconds=0.5,
        stop_grace_seconds=0.5,
        pending_dashboard_enabled=True,
        guest_requests_per_minute=_UNLIMITED,
        submissions_per_minute=_UNLIMITED,
        jwt_secret=SECRET,
    )
    with sample_site() as site, demo_retailer() as shop, pytest.MonkeyPatch.context() as patch:
        # The processes that fetch pages look at their environment.
        patch.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", site)
        patch.setenv("PENSTOCK_CATALOG_ROOTS", str(directory))
        patch.setenv("PENSTOCK_THUMBNAILS_DIRECTORY", str(directory / "thumbnails"))
        patch.setenv("PRODUCT_PROVIDERS", str(write_retailers(directory / "products", shop)))
        app = install_applications(Penstock(settings=settings))
        kinds.register(app)
        try:
            with serving(app, worker=True) as served:
                yield WholeServer(app, served, site, shop, directory, count(1))
                kinds.let_everything_go()
        finally:
            app.close()
