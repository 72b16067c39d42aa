"""``penstock demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Work in this folder and leave everything there to look into."),
    ] = None,
) -> None:
    """See it work in a minute, then exit.

    Documents are read, 2,000 lines are counted and a slow job is stopped half way; all of it for real, with a worker
    in this process and an embedded database in a temporary folder.

    \b
    penstock demo
    penstock demo --keep demo && cd demo && penstock jobs
    """
    print("Seven documents, 2,000 lines, a slow job; one worker, an embedded database:\n", flush=True)

    import tempfile

    from penstock.cli.demonstration.play import play
    from penstock.errors import ConfigurationError
    from penstock.telemetry.logs import configure_logs

    configure_logs("WARNING")
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True) as directory:
            well = play(Path(directory), kept=False)
    else:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{keep} cannot be used: {error.strerror}", code="FILES_NOT_WRITABLE") from None
        well = play(keep, kept=True)
    if not well:
        raise typer.Exit(1)
