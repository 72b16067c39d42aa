"""``penstock serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    worker: Annotated[bool, typer.Option(help="Also run the jobs, in this process.")] = True,
    app: AppOption = None,
) -> None:
    """Serve the API, and run the jobs beside it.

    Stops on SIGTERM or Ctrl-C, as a worker does.

    \b
    penstock serve
    penstock serve --no-worker --port 9000
    """
    from penstock.cli.application import loaded
    from penstock.errors import ConfigurationError
    from penstock.settings import load_settings

    settings = load_settings()
    try:
        from penstock.http.application import create_app
        from penstock.http.server import Server, refuse_open_door
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"what the server stands on is not installed ({error}); install penstock[server]"
        ) from error
    refuse_open_door(settings, host)
    with loaded(app, log_level=settings.log_level) as one:
        api = create_app(one.app, worker=worker, more=getattr(one.module, "routes", ()))
        server = Server(api, host=host, port=port, grace=settings.stop_grace_seconds, started=_say)
        one.app.store  # noqa: B018 - what is wrong with the database is said here, in one line
        try:
            server.run()
        except SystemExit as error:
            raise ConfigurationError(
                f"cannot serve on {host}:{port}; is something else there?", code="ADDRESS_IN_USE"
            ) from error


def _say(address: str) -> None:
    print(f"serving on {address}; its reference is {address}/docs", flush=True)
