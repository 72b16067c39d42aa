"""Which sessions were ended, known without asking the database for every request.

A token proves itself; that it was ended is the exception, and exceptions are few. So they are kept here in memory, and
what was ended since the last look is read every few seconds (PENSTOCK_SESSION_CHECK_SECONDS), by the first request that
comes after that: so late another server may notice, and after a quiet night no later. The server that ended a session
knows at once. While the database does not answer, nobody is let in whose session might have been ended: 503.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from penstock.app import Penstock
from penstock.errors import NotSignedIn
from penstock.http.tokens import Identity
from penstock.operations.ended_sessions import EVERYBODY, session_subject, user_subject
from penstock.store.queries.ended_sessions import EndedSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OVERLAP = timedelta(minutes=5)
"""A transaction may commit long after the moment that its row names: what is younger than this is read again."""
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


class EndedSessions:
    """What a server knows of sessions that were ended."""

    def __init__(self, app: Penstock, *, every: float, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._every = every
        self._now = now
        self._due = now()
        self._newest = _EPOCH + _OVERLAP
        self._issued_before: dict[str, float] = {}
        self._forget_at: dict[str, float] = {}
        self._reading = threading.Lock()

    async def require_open(self, identity: Identity) -> None:
        """Refuse somebody whose session was ended; who does not say when it began has none of ours."""
        if identity.issued_at is None or identity.user is None:
            return
        if self._now() >= self._due:
            await run_in_threadpool(self.read_if_due)
        moments = self._issued_before
        if moments and identity.issued_at <= max(
            moments.get(EVERYBODY, -1.0),
            moments.get(user_subject(identity.user), -1.0),
            moments.get(session_subject(identity.session or ""), -1.0),
        ):
            raise NotSignedIn("this session was ended; sign in again", code="SESSION_ENDED")

    def end_all_of(self, user: str | None) -> datetime:
        """End a user's sessions, or everybody's."""
        moment = self._app.system.end_sessions(user)
        self._read_now()
        return moment

    def end(self, identity: Identity) -> None:
        """End this one session; one that nobody can tell from others stays as it is."""
        if identity.session is None or identity.expires_at is None:
            return
        until = datetime.fromtimestamp(min(identity.expires_at, _LATEST), UTC) + timedelta(minutes=1)
        self._app.system.end_session(identity.session, expires_at=until)
        self._read_now()

    def read_if_due(self) -> None:
        """Ask the database what was ended, unless somebody just has."""
        with self._reading:
            if self._now() >= self._due:
                self._read_news()

    def _read_now(self) -> None:
        with self._reading:
            self._read_news()

    def _read_news(self) -> None:
        began_at = self._now()
        for row in self._app.system.ended_sessions(self._newest - _OVERLAP):
            self._note(row)
        now = time.time()
        for subject in [subject for subject, moment in self._forget_at.items() if moment < now]:
            del self._forget_at[subject], self._issued_before[subject]
        self._due = began_at + self._every

    def _note(self, row: EndedSession) -> None:
        self._newest = max(self._newest, row.ended_at)
        self._issued_before[row.subject] = row.issued_before.timestamp()
        if row.forget_at is not None:
            self._forget_at[row.subject] = row.forget_at.timestamp()
