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

    Each application that is installed shows what it does, 2,000 lines are counted and a slow job is stopped half way;
    all of it for real, over HTTP, with a server and its worker in this process and an embedded database in a temporary
    folder. "penstock serve --samples" does the same, and stays.

    \b
    penstock demo
    penstock demo --keep demo && cd demo && penstock jobs
    """
    print("Sample jobs of every application; a server and an embedded database:\n", flush=True)

    import tempfile

    from penstock.cli.server_process import require_server
    from penstock.errors import ConfigurationError
    from penstock.logs import configure_logs
    from penstock.private_files import make_private_folder

    # Some of its jobs are made to fail, and it tells of them itself.
    configure_logs("CRITICAL")
    require_server()
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-", ignore_cleanup_errors=True) as directory:
            well = _play(Path(directory), is_kept=False)
    else:
        try:
            make_private_folder(keep)
        except OSError as error:
            raise ConfigurationError(f"{keep} cannot be used: {error.strerror}", code="FILES_NOT_WRITABLE") from None
        well = _play(keep.absolute(), is_kept=True)
    if not well:
        raise typer.Exit(1)


def _play(directory: Path, *, is_kept: bool) -> bool:
    from penstock import load_settings
    from penstock.cli.demonstration.stage import Stage
    from penstock.cli.demonstration.summary import where_to_look
    from penstock.cli.screen import console

    settings = load_settings(
        database_url=f"sqlite:///{directory}/penstock.db",
        files_directory=directory / "penstock-files",
        stop_grace_seconds=0.5,
    )
    stage = Stage(settings, directory / "penstock-samples")
    well = stage.perform(host="127.0.0.1", port=0, stay=False)
    next_steps = [line for samples in stage.samples.values() for line in samples.next_steps]
    for line in ("", *where_to_look(directory if is_kept else None, next_steps)):
        console().print(line, overflow="fold")
    return well
