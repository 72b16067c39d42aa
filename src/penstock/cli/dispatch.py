"""``penstock dispatch``."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.options import AppOption


def dispatch(
    celery: Annotated[bool, typer.Option("--celery", help="Tell the Celery cluster of run_on_celery.")] = False,
    app: AppOption = None,
) -> None:
    """Tell an engine of work, until SIGTERM or Ctrl-C: its machines run the handlers.

    It also does what workers do beside that: it sweeps, relays messages and takes over from the dead. Run one or more;
    nothing is lost while none runs, and two of them do no harm. Exit codes and signals are those of penstock worker.

    \b
    penstock dispatch --celery
    penstock dispatch --celery --app shop.jobs:app
    """
    from penstock.cli.application import open_app
    from penstock.cli.process_exit import leave_threads_behind
    from penstock.cli.worker import run_until_told
    from penstock.settings import load_settings

    if not celery:
        raise typer.BadParameter("name the engine: --celery")
    with open_app(app, log_level=load_settings().log_level) as penstock:
        dispatcher = penstock.dispatcher("celery")
        code = run_until_told(
            dispatcher, f"dispatcher {dispatcher.name} tells Celery of work", penstock.settings.stop_grace_seconds
        )
    leave_threads_behind(code)
    raise typer.Exit(code)
