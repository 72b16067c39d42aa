"""The demonstration from beginning to end: a real server with its worker, a visitor, and how it went."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import owner
from penstock.cli.demonstration import kinds
from penstock.cli.demonstration.sample_jobs import USER, SampleJobs
from penstock.cli.demonstration.summary import told
from penstock.cli.demonstration.visitor import Visitor
from penstock.cli.following import follow
from penstock.cli.screen import console
from penstock.cli.serving import greeting, run
from penstock.http.uvicorn_server import Server
from penstock.server import create_app
from penstock_apps import assemble, missing_libraries, routes_of_all

if TYPE_CHECKING:
    from penstock import Penstock, Settings
    from penstock_apps import Built

_TIMEOUT = 120.0
_ALLOWED = "PENSTOCK_FETCH_ALLOW_HOSTS"
_PROVIDERS = "PRODUCT_PROVIDERS"


class Stage:
    """All applications behind one server; sample jobs begin once it is there."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], samples: Path) -> None:
        self._settings = settings
        with ExitStack() as stack:  # what cannot be put together leaves no site and no shop open behind it
            self._site = stack.enter_context(_allowed_site()) if "recipes" not in missing_libraries() else None
            shop = stack.enter_context(_open_shop(environment, samples))
            self._shop_is_ours = bool(shop)
            self._built = _assembled(settings, {**environment, **shop}, samples)
            self._stack = stack.pop_all()
        self._samples = samples
        self._stopping = threading.Event()
        self._well = True
        self._over = False

    def perform(self, *, host: str, port: int, stay: bool) -> bool:
        """Serve until told to stop, or until the samples have ended; did everything go as it should?"""
        api = create_app(self._built.app, worker=True, more=routes_of_all(self._built))
        shows: list[threading.Thread] = []

        def started(address: str) -> None:
            token = api.state.penstock.tokens.issue(USER)
            told = greeting(api, address, USER) if stay else [f"serving on {address}"]
            show = threading.Thread(target=self._show, args=(Visitor(address, token), told, server, stay))
            shows.append(show)
            show.start()

        server = Server(api, host=host, port=port, grace=self._settings.stop_grace_seconds, started=started)
        try:
            run(server, self._built.app, host, port)
        finally:
            self._stopping.set()
            for show in shows:
                show.join()
            self._built.app.close()
            self._stack.close()
        if not stay and not self._over:
            raise KeyboardInterrupt
        return self._well

    def _show(self, visitor: Visitor, told: list[str], server: Server, stay: bool) -> None:
        print("\n".join(told), flush=True)
        try:
            if self._built.app.jobs(limit=1):
                print("The database has jobs already: no samples are made.", flush=True)
            else:
                print("The database is empty. Sample jobs, for you to look at:\n", flush=True)
                jobs = SampleJobs(self._built.app, self._samples, self._site, visitor, shop_is_ours=self._shop_is_ours)
                self._well = _play(self._built.app, jobs, self._stopping)
            self._over = not self._stopping.is_set()
            if stay and not self._stopping.is_set():
                # Again, because the jobs have pushed the first lines out of sight.
                print("", *told[1:], f"a token for the API: {sys.argv[0]} token --user {USER}", sep="\n")
                print("Ctrl-C stops the server.", flush=True)
        except OSError:
            if not server.should_exit:  # a server that is being stopped answers nobody
                raise
        finally:
            if not stay and not server.should_exit:
                server.handle_exit(signal.SIGTERM, None)


def _play(app: Penstock, jobs: SampleJobs, stopping: threading.Event) -> bool:
    """Run the sample jobs; when the server is stopped before their end, they are left to whoever works next."""
    jobs.submit()
    ended = follow(app, jobs.rows, by=owner(USER), look=jobs.look, timeout=_TIMEOUT, hint=False, until=stopping)
    if stopping.is_set():
        return True
    unexpected = [job for act, job in zip(jobs.acts, ended, strict=True) if not act.went_well(job)]
    print()
    for line in told(app, {row.id: row.name for row in jobs.rows}, ended, unexpected):
        console().print(line, overflow="fold")
    return not unexpected


@contextmanager
def _allowed_site() -> Iterator[str]:
    """The sample pages, on a port of this machine which this program's own processes may fetch from."""
    from penstock_apps.recipes.samples import sample_site

    with sample_site() as host:
        before = os.environ.get(_ALLOWED)
        os.environ[_ALLOWED] = ",".join(filter(None, (before, host)))
        try:
            yield host
        finally:
            os.environ.pop(_ALLOWED) if before is None else os.environ.update({_ALLOWED: before})


@contextmanager
def _open_shop(environment: Mapping[str, str], samples: Path) -> Iterator[dict[str, str]]:
    """A shop on this machine to look products up at, as settings; nothing where the user has retailers already."""
    if "products" in missing_libraries() or environment.get(_PROVIDERS, "").strip():
        yield {}
        return
    from penstock_apps.products.retailer import demo_retailer
    from penstock_apps.products.samples import write_retailers

    with demo_retailer() as shop:
        yield {_PROVIDERS: str(write_retailers(samples.absolute() / "products", shop))}


def _assembled(settings: Settings, environment: Mapping[str, str], samples: Path) -> Built:
    """All applications on one database, with the demonstration's kinds, and catalogs allowed where its photos are."""
    roots = [one for one in (environment.get("PENSTOCK_CATALOG_ROOTS"), str(samples.absolute())) if one]
    built = assemble(settings, {**environment, "PENSTOCK_CATALOG_ROOTS": os.pathsep.join(roots)})
    kinds.register(built.app)
    return built
