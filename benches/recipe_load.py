"""The load of ``benches.load`` as posts: the same program and connections, with a body."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from benches.load import CONNECTIONS, Load, require_wrk

_SCRIPT = """
wrk.method = "POST"
wrk.body = %s
wrk.headers["Content-Type"] = "application/json"
done = function(summary, latency)
  local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write
    + summary.errors.timeout
  io.stderr:write(string.format("%%d %%d %%d %%d %%d\\n", summary.requests, summary.duration, wrong,
    latency:percentile(50), latency:percentile(99)))
end
"""


def post(url: str, body: dict[str, str], *, seconds: int, token: str) -> Load:
    """Post one body as fast as it is answered; any answer but a good one is an error here."""
    text = json.dumps(body)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "posts.lua"
        script.write_text(_SCRIPT % json.dumps(text))  # a text of JSON is one of Lua as well, without odd characters
        ran = subprocess.run(
            [require_wrk(), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}",
             "-s", str(script), url],
            capture_output=True, text=True, check=True, timeout=seconds + 30,
        )  # fmt: skip
    requests, microseconds, wrong, p50, p99 = (int(one) for one in ran.stderr.split())
    assert requests, f"{url} answered nothing:\n{ran.stdout}"
    assert not wrong, f"{wrong} of {requests} answers of {url} were errors:\n{ran.stdout}"
    return Load(requests / microseconds * 1e6, p50 / 1e3, p99 / 1e3)


def posted(url: str, body: dict[str, str], *, token: str) -> Any:
    """One answer's content, to see that it is the one that is meant."""
    answer = httpx2.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, f"{url} answers {answer.status_code}: {answer.text[:500]}"
    return answer.json()
