"""A hostile crowd, small: what is refused and how, and that the one who works meanwhile loses nothing.

How long their requests take under the whole crowd, and the server's memory, are a bench (``--only crowd``).
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benches.crowd_app import build
from benches.hostile_clients import Crowd, Size, site_without_end
from benches.hostile_crowd import User
from penstock import load_settings
from penstock.http.limits import RateLimit
from penstock.http.service import Service
from tests.http.conftest import SECRET, serving

SMALL = Size(drips=20, drip_seconds=0.05, bodies=3, body_bytes=3_000_000, bombs=3, pages=20)
GUESTS = 15
SECONDS = 3.0


def test_a_hostile_crowd_is_refused_and_nobody_else_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db",
        files_directory=tmp_path / "files",
        jwt_secret=SECRET,
        head_seconds=1.0,
    )
    sites: list[str] = []
    begun, told = threading.Event(), threading.Event()
    crowd = Crowd("", "", "", SMALL)

    async def attack() -> None:
        async with site_without_end() as site:
            sites.append(site)
            begun.set()
            assert await asyncio.to_thread(told.wait, 30)
            await crowd.attack(SECONDS)

    attacking = threading.Thread(target=lambda: asyncio.run(attack()))
    attacking.start()
    assert begun.wait(30)
    crowd.site = sites[0]
    monkeypatch.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", urlsplit(crowd.site).netloc)
    app = build(settings)
    app.system.migrate()
    with serving(app, worker=True) as served:
        service: Service = served.server.config.app.state.penstock  # type: ignore[union-attr]
        service.guest_requests = RateLimit(GUESTS, "requests", now=lambda: 0.0)
        assert service.tokens is not None
        crowd.url, crowd.token = served.url, service.tokens.issue("eve")
        with User(served.url, service.tokens.issue("ada")) as ada:
            told.set()
            while attacking.is_alive():
                ada.take_step()
            attacking.join()
            ada.require_nothing_lost()
            ada.require_answers(crowd.requests)
    app.close()
    by_kind: dict[str, Counter[str]] = {}
    for what, count in crowd.counts.items():
        kind, _, status = what.rpartition(" ")
        by_kind.setdefault(kind, Counter())[status] = count
    assert set(by_kind["drip"]) <= {"408", "closed"}
    assert by_kind["drip"].total() >= SMALL.drips, "each was ended, and those who came back too"
    assert set(by_kind["body"]) <= {"401", "429", "closed"}, "and none is taken"
    assert by_kind["body"]["401"] >= SMALL.bodies
    assert by_kind["bomb of JSON"] == {"422": 1}
    assert by_kind["bomb of a picture"] == {"202": 1}
    assert by_kind["bomb of a document"] == {"200": 1}
    assert by_kind["page"] == {"202": GUESTS, "429": SMALL.pages - GUESTS}
    assert len(crowd.requests) == GUESTS
