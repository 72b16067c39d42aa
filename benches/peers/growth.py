"""Tables that grow: how long a claim of a hundred units and a page of a hundred take, the more units wait."""

from __future__ import annotations

from statistics import median

import psycopg

from benches.peers.driving import Client, NotOffered, PeerFailed, running
from benches.peers.roster import Peer
from benches.peers.servers import Servers
from benches.peers.size import Figures, Size

AT_ONCE = 100
TIMES = 30
WARM_UP = 5
STEP = 1_000_000
MOST_SECONDS = 30.0
"""A page that takes a second need not be read thirty times."""


def growth(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Milliseconds, for each size of the table; nothing from peers whose queue is no table that can be filled."""
    if not peer.in_tables:
        return {}
    figures: Figures = {}
    url = servers.fresh(peer.server)
    with running(peer, url) as one:
        there = 0
        for rows in size.tables:
            while there < rows:
                more = min(rows - there, STEP)
                one.client.ask("grow", there, more)
                there += more
            if peer.server == "postgresql":
                _as_autovacuum_would(url)
            figures[f"claim_ms_{rows}"] = _claims(one.client)
            figures[f"page_ms_{rows}"] = _pages(one.client, rows)
    return figures


def _claims(client: Client) -> float:
    seen = []
    for _ in range(WARM_UP + TIMES):
        answer = client.ask("claim", 0, AT_ONCE)
        if answer["answer"] != AT_ONCE:
            raise PeerFailed(f"a claim of {AT_ONCE} units took {answer['answer']}")
        seen.append(_milliseconds(answer))
    return median(seen[WARM_UP:])


def _pages(client: Client, rows: int) -> float | None:
    """Pages from the middle of the table."""
    seen: list[float] = []
    try:
        while len(seen) < TIMES and sum(seen) < MOST_SECONDS * 1000.0:
            seen.append(_milliseconds(client.ask("page", rows // 2 + len(seen) * AT_ONCE, AT_ONCE)))
    except NotOffered:
        return None
    return median(seen)


def _milliseconds(answer: dict[str, int]) -> float:
    return (answer["ended"] - answer["begun"]) / 1e6


def _as_autovacuum_would(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("VACUUM (ANALYZE)")
        link.execute("CHECKPOINT")
