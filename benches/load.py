"""Load on an HTTP server from a program made for it: wrk, one thread, connections that stay open."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benches.plan import LeftOut

CONNECTIONS = 8
_POSTING = """
wrk.method = "POST"
wrk.body = %s
wrk.headers["Content-Type"] = "application/json"
"""
_SCRIPT = """
done = function(summary, latency, requests)
  local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write
    + summary.errors.timeout
  io.stderr:write(string.format("%d %d %d %d %d\\n", summary.requests, summary.duration, wrong,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What a server did under load."""

    rate: float
    """Requests a second."""
    p50: float
    p99: float
    """Milliseconds."""


def require_wrk() -> str:
    """Where the program is; what to do if it is nowhere."""
    found = shutil.which("wrk")
    if found is None:
        raise LeftOut("wrk makes the load and is not installed: apt-get install wrk (Debian, Ubuntu)")
    return found


def load(url: str, *, seconds: int, token: str, body: dict[str, str] | None = None) -> Load:
    """Ask for one address as fast as it is answered, or post a body there; any answer but a good one is an error."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "figures.lua"
        # A text of JSON is one of Lua as well, without odd characters.
        script.write_text(_SCRIPT if body is None else _POSTING % json.dumps(json.dumps(body)) + _SCRIPT)
        ran = subprocess.run(
            [require_wrk(), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}",
             "-s", str(script), url],
            capture_output=True, text=True, check=True, timeout=seconds + 30,
        )  # fmt: skip
    requests, microseconds, wrong, p50, p99 = (int(one) for one in ran.stderr.split())
    assert requests, f"{url} answered nothing:\n{ran.stdout}"
    assert not wrong, f"{wrong} of {requests} answers of {url} were errors:\n{ran.stdout}"
    return Load(requests / microseconds * 1e6, p50 / 1e3, p99 / 1e3)
