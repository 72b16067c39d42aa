"""The peer of a recipe that is known: Starlette and one route that reads one row, without tokens, logs or words.

``python -m benches.recipe_peer URL`` prints its address and ends on SIGTERM. It has the same engine with the same pool
of connections, the same uvicorn, and reads in a thread as ours does; the statement is built once and the answer written
by orjson, as ours are.
"""

from __future__ import annotations

import hashlib
import socket
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import uvicorn
from sqlalchemy import bindparam, select
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock import Penstock
from penstock_apps.recipes.tables import recipe

DAYS = 30


def main(url: str) -> None:
    """Serve until told to end."""
    engine = Penstock(url).store.engine
    fresh = select(recipe.c.title, recipe.c.ingredients, recipe.c.parsed_at).where(
        recipe.c.url_hash == bindparam("the_hash"), recipe.c.parsed_at > bindparam("since")
    )

    def read(url_hash: str) -> Any:
        given = {"the_hash": url_hash, "since": datetime.now(UTC) - timedelta(days=DAYS)}
        with engine.connect().execution_options(penstock_begins="BEGIN") as link:
            return link.execute(fresh, given).one_or_none()

    async def ask(request: Request) -> Response:
        address = orjson.loads(await request.body())["url"]
        row = await run_in_threadpool(read, hashlib.sha256(address.encode()).hexdigest())
        if row is None:
            return Response(status_code=404)
        shown = {"title": row.title, "ingredients": row.ingredients, "parsedAt": row.parsed_at}
        return Response(orjson.dumps({"recipe": shown}), media_type="application/json")

    door = socket.create_server(("127.0.0.1", 0))
    print(f"serving on http://127.0.0.1:{door.getsockname()[1]};", flush=True)
    api = Starlette(routes=[Route("/parse-requests", ask, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(api, log_config=None, access_log=False, server_header=False))
    server.run(sockets=[door])


if __name__ == "__main__":
    main(sys.argv[1])
