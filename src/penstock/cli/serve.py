"""``penstock serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import AppOption

_SAMPLES = Path("penstock-samples")


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    worker: Annotated[bool, typer.Option(help="Also run the jobs, in this process.")] = True,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples", help="On an empty database, run sample jobs of the installed applications to look at."
        ),
    ] = False,
    app: AppOption = None,
) -> None:
    """Serve the API and the pages, and run the jobs beside them.

    Stops on SIGTERM or Ctrl-C, as a worker does.

    \b
    penstock serve
    penstock serve --samples
    penstock serve --no-worker --port 9000
    """
    from penstock.cli.process_exit import leave_threads_behind
    from penstock.cli.server_process import greeting, listen, require_server, run
    from penstock.errors import InvalidInput
    from penstock.settings import load_settings

    settings = load_settings()
    require_server()
    from penstock.http.uvicorn_server import refuse_open_door

    refuse_open_door(settings, host)
    if samples and (app is not None or not worker):
        raise InvalidInput("the samples are of the installed applications, and need the worker")
    if samples:
        from penstock.cli.demonstration.stage import Stage
        from penstock.logs import configure_logs

        # What the jobs do is shown already, those that are made to fail too; a line for each would be in its way.
        configure_logs(os.environ.get("PENSTOCK_LOG_LEVEL", "CRITICAL"))
        Stage(settings, _SAMPLES).perform(host=host, port=port, stay=True)
        return
    from penstock.cli.application import open_module
    from penstock.http.uvicorn_server import Server
    from penstock.server import create_app

    with open_module(app, log_level=settings.log_level) as loaded_app:
        api = create_app(loaded_app.app, worker=worker, more=getattr(loaded_app.module, "routes", ()))

        def say(address: str) -> None:
            print("\n".join(greeting(api, address)), flush=True)

        server = Server(api, host=host, port=port, grace=settings.stop_grace_seconds, on_start=say)
        run(server, loaded_app.app, listen(host, port))
    leave_threads_behind(0)
