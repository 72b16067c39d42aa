"""The demonstration from beginning to end: a real server with its worker, a visitor, and how it went."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Penstock, owner
from penstock.application import resolve
from penstock.applications import choose_applications, leave_out
from penstock.cli.demonstration import kinds
from penstock.cli.demonstration.sample_jobs import USER, SampleJobs
from penstock.cli.demonstration.summary import tell_outcomes
from penstock.cli.job_follower import follow
from penstock.cli.screen import console
from penstock.cli.server_process import greeting, listen, run
from penstock.http.uvicorn_server import Server
from penstock.lifecycle.callers import SYSTEM
from penstock.samples import Samples, Visitor
from penstock.server import create_app
from penstock.settings import read_settings

if TYPE_CHECKING:
    from penstock import Settings

_TIMEOUT = 120.0


class Stage:
    """All applications behind one server; sample jobs begin once it is there."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._app = Penstock(settings=settings)
        self.samples: dict[str, Samples] = {}
        with ExitStack() as stack:  # what cannot be put together leaves no site and no shop open behind it
            for application in choose_applications(settings.applications):
                if leave_out(self._app, application):
                    print(f"left out: {application.why_missing()}\n", flush=True)
                    continue
                own: Any = application.settings and read_settings(resolve(application.settings))
                if application.samples is not None:
                    samples = resolve(application.samples)(folder / application.name, settings)
                    own = stack.enter_context(samples.set_up(own))
                    self.samples[application.name] = samples
                self._app.install(application, own)
            kinds.register(self._app)
            self._stack = stack.pop_all()
        self._stopping = threading.Event()
        self._well = True
        self._over = False

    def perform(self, *, host: str, port: int, stay: bool) -> bool:
        """Serve until told to stop, or until the samples have ended; did everything go as it should?"""
        api = create_app(self._app, worker=True)
        shows: list[threading.Thread] = []

        def on_start(address: str) -> None:
            token = api.state.penstock.tokens.issue(USER)
            lines = greeting(api, address, USER) if stay else [f"serving on {address}"]
            show = threading.Thread(target=self._show, args=(Visitor(address, token), lines, server, stay))
            shows.append(show)
            show.start()

        server = Server(api, host=host, port=port, grace=self._settings.stop_grace_seconds, on_start=on_start)
        try:
            run(server, self._app, listen(host, port))
        finally:
            self._stopping.set()
            for show in shows:
                show.join()
            self._app.close()
            self._stack.close()
        if not stay and not self._over:
            raise KeyboardInterrupt
        return self._well

    def _show(self, visitor: Visitor, greeting_lines: list[str], server: Server, stay: bool) -> None:
        print("\n".join(greeting_lines), flush=True)
        try:
            if self._app.acting_as(SYSTEM).jobs.list(limit=1):
                print("The database has jobs already: no samples are made.", flush=True)
            else:
                print("The database is empty. Sample jobs, for you to look at:\n", flush=True)
                self._well = _play(self._app, SampleJobs(self._app, self.samples, visitor), self._stopping)
            self._over = not self._stopping.is_set()
            if stay and not self._stopping.is_set():
                # Again, because the jobs have pushed the first lines out of sight.
                print("", *greeting_lines[1:], f"a token for the API: {sys.argv[0]} token --user {USER}", sep="\n")
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
    mine = app.acting_as(owner(USER)).jobs
    ended_jobs = follow(mine, jobs.rows, look=jobs.look, timeout=_TIMEOUT, hint=False, until=stopping)
    if stopping.is_set():
        return True
    unexpected_jobs = [
        job for sample, job in zip(jobs.jobs, ended_jobs, strict=True) if not sample.ended_as_expected(job)
    ]
    print()
    for line in tell_outcomes(mine, {row.id: row.name for row in jobs.rows}, ended_jobs, unexpected_jobs):
        console().print(line, overflow="fold")
    return not unexpected_jobs
