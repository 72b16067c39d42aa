"""The peer of ``penstock serve``: FastAPI and one route that reads one row, without tokens, logs, metrics or words.

``python -m benches.status_peer URL`` prints its address and ends on SIGTERM. It has the same engine with the same pool
of connections, the same uvicorn and the same way to run a ``def`` route; the
statement is built once and the answer written by orjson, as ours are.
"""

from __future__ import annotations

import socket
import sys
from uuid import UUID

import orjson
import uvicorn
from fastapi import FastAPI, HTTPException, Response
from sqlalchemy import bindparam, select

from penstock import Penstock
from penstock.store.tables import jobs


def main(url: str) -> None:
    """Serve until told to end."""
    engine = Penstock(url).store.engine
    api = FastAPI()

    names = [str(column.name) for column in jobs.c]
    one_by_id = select(jobs).where(jobs.c.id == bindparam("the_job_id"))

    @api.get("/api/jobs/{job_id}")
    def get_job(job_id: UUID) -> Response:
        with engine.connect().execution_options(penstock_begins="BEGIN") as link:
            row = link.execute(one_by_id, {"the_job_id": job_id}).one_or_none()
        if row is None:
            raise HTTPException(404)
        return Response(orjson.dumps(dict(zip(names, row, strict=True))), media_type="application/json")

    door = socket.create_server(("127.0.0.1", 0))
    print(f"serving on http://127.0.0.1:{door.getsockname()[1]};", flush=True)
    server = uvicorn.Server(uvicorn.Config(api, log_config=None, access_log=False, server_header=False))
    server.run(sockets=[door])


if __name__ == "__main__":
    main(sys.argv[1])
