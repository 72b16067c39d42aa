"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path


def facts() -> dict[str, str]:
    """The machine and the code."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "load_before": f"{os.getloadavg()[0]:.2f}",
        "fdatasync": f"{_fdatasync_ms():.2f} ms for 4 KiB (median of 50)",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit() -> str:
    root = Path(__file__).parent
    asked = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain"]]
    answers = [subprocess.run(one, cwd=root, capture_output=True, text=True, check=False) for one in asked]
    if answers[0].returncode:
        return "none"
    return answers[0].stdout.strip() + (" with changes" if answers[1].stdout.strip() else "")


def _fdatasync_ms() -> float:
    seen = []
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            seen.append((time.perf_counter() - begun) * 1000.0)
    return statistics.median(seen)
