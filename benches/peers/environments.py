"""An environment for each peer, from a lock of its own: nothing of theirs enters ours, nor each other's.

``python -m benches.peers.environments lock`` resolves ``locks/*.in`` into ``locks/*.txt`` again: names, versions and
hashes, no index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent / "locks"
WHERE = ROOT / ".peers"
UV = ROOT / ".tools" / "bin" / "uv"
PYTHONS = {"oban": "3.12"}
"""Who needs a newer interpreter than ours."""


@cache
def python_of(environment: str | None) -> Path:
    """The interpreter of an environment, made or brought up to date first; None is our own."""
    if environment is None:
        return Path(sys.executable)
    lock, place = LOCKS / f"{environment}.txt", WHERE / environment
    stamp = place / ".made-from"
    if not stamp.exists() or stamp.read_text() != lock.read_text():
        _uv("venv", "--quiet", "--clear", "--python", _interpreter(environment), str(place))
        _uv("pip", "sync", "--quiet", "--python", str(place), "--require-hashes", str(lock))
        stamp.write_text(lock.read_text())
    return place / "bin" / "python"


def _interpreter(environment: str) -> str:
    """What an environment is made with: ours, or one of this machine of the version it needs."""
    if environment not in PYTHONS:
        return sys.executable
    name = f"python{PYTHONS[environment]}"
    kept_by_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for one in (name, *map(str, sorted(kept_by_pyenv.glob(f"{PYTHONS[environment]}*/bin/{name}")))):
        program = shutil.which(one)
        # A shim may stand for a version that it does not let one use.
        if program and subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0:
            return program
    raise FileNotFoundError(f"{environment} needs {name}, which is not on this machine")


def versions(environment: str | None, *packages: str) -> dict[str, str]:
    """Which versions of these packages an environment has."""
    asked = f"import importlib.metadata as m; print(*(m.version(one) for one in {packages!r}))"
    answer = subprocess.run([python_of(environment), "-c", asked], capture_output=True, text=True, check=True)
    return dict(zip(packages, answer.stdout.split(), strict=True))


def lock(*names: str) -> None:
    """Resolve what each environment asks for."""
    for source in sorted(LOCKS.glob("*.in")):
        if not names or source.stem in names:
            _uv(
                "pip", "compile", str(source), "--quiet", "--universal",
                "--python-version", PYTHONS.get(source.stem, "3.11"),
                "--generate-hashes", "--no-emit-index-url", "--custom-compile-command", "make lock-peers",
                "--output-file", str(source.with_suffix(".txt")),
            )  # fmt: skip


def _uv(*arguments: str) -> None:
    subprocess.run([UV, *arguments], check=True, env=_with_pips_index())


def _with_pips_index() -> dict[str, str]:
    """Our uv does not read pip's configuration: where pip was told of another index, tell uv the same."""
    told = dict(os.environ)
    if not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & told.keys():
        asked = ["python3", "-m", "pip", "config", "get", "global.index-url"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        index = told.get("PIP_INDEX_URL") or answer.stdout.strip()
        if index:
            told["UV_DEFAULT_INDEX"] = index
    return told


if __name__ == "__main__":
    lock(*sys.argv[2:])
