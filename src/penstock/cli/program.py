"""All commands in one program, and the one place where an error becomes a line and an exit code.

Exit codes: 0 all is well, 1 the work failed, 2 the question was wrong, 3 the job was canceled, 4 a worker could not
hand back what it held, 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from penstock.cli import (
    abandon,
    backfill,
    cancel,
    commit,
    config,
    dead_letters,
    demo,
    dispatch,
    end_sessions,
    export,
    history,
    items,
    jobs,
    migrate,
    pause,
    prune,
    reprocess,
    result,
    resume,
    schedules,
    serve,
    show,
    submit,
    sweep,
    token,
    watch,
    worker,
)
from penstock.errors import PenstockError

USAGE = 2
INTERRUPTED_CODE = 130
PIPE_CLOSED_CODE = 1


class Program(TyperGroup):
    """The engine's commands, and those of the applications, which are loaded when one of them is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The engine's in their own order, then the applications'."""
        return [*super().list_commands(ctx), *guest_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name."""
        return super().get_command(ctx, cmd_name) or guest_commands().get(cmd_name)


program = typer.Typer(
    cls=Program,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (
    demo.demo,
    submit.submit,
    jobs.jobs,
    show.show,
    watch.watch,
    history.history,
    items.items,
    result.result,
    export.export,
    cancel.cancel,
    pause.pause,
    resume.resume,
    reprocess.reprocess,
    commit.commit,
    abandon.abandon,
    serve.serve,
    worker.worker,
    dispatch.dispatch,
    token.token,
    end_sessions.end_sessions,
    migrate.migrate,
    schedules.schedules,
    sweep.sweep,
    prune.prune,
    backfill.backfill,
    dead_letters.dead_letters,
    config.config,
):
    program.command()(command)


@cache
def guest_commands() -> dict[str, Any]:
    """The commands that applications bring, by their names."""
    from penstock.application import resolve
    from penstock.applications import find_applications

    guests = typer.Typer(rich_markup_mode=None)
    guests.callback()(lambda: None)
    for application in find_applications().values():
        for command in resolve(application.commands):
            if isinstance(command, typer.Typer):
                guests.add_typer(command)
            else:
                guests.command()(command)
    return dict(typer.main.get_group(guests).commands)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"penstock {version('penstock')}")
        raise typer.Exit


@program.callback(invoke_without_command=True)
def penstock(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Durable jobs that people wait for: submit, watch, stop, retry and export them.

    \b
    See it work in a minute:      penstock demo
    Run the jobs:                 penstock worker
    … and submit some:            penstock submit KIND --wait
    Look at one command:          penstock watch --help

    An ID is a job's whole id, or 6 or more characters of its beginning or its end.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


# The class that typer's own errors have in common, whether typer brings its own click or uses the installed one.
_Misuse = next(error_class for error_class in typer.BadParameter.__mro__ if error_class.__name__ == "ClickException")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the answer is the exit code."""
    _open_streams()
    try:
        answer = program(args=arguments, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
    except PenstockError as error:
        return _refuse(error.message, error.code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED_CODE
    except OSError as error:
        return _give_up(error)
    except Exception as error:
        if not isinstance(error, _Misuse):
            raise
        return _refuse(_first_words(error), "USAGE")
    return answer if isinstance(answer, int) else 0


def _open_streams() -> None:
    """Let every text be printed, and print to nowhere what has no stream: a program may be started without any."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _give_up(error: OSError) -> int:
    """What the operating system refused; who reads our output and has seen enough is told nothing."""
    if error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO):
        # What is still to be written cannot be, and the interpreter would try again when it ends.
        sys.stdout = _nowhere()
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED_CODE
    where = "" if error.filename is None else f"{error.filename}: "
    return _refuse(f"{where}{error.strerror or error}", "REFUSED_BY_SYSTEM")


def _refuse(message: str, code: str) -> int:
    """One line that says what is wrong."""
    from penstock.cli.texts import on_one_line

    print(f"penstock: {on_one_line(message)} ({code})", file=sys.stderr)
    return USAGE


def _first_words(error: Exception) -> str:
    message: str = getattr(error, "format_message", error.__str__)()
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "penstock"
    return f"{message.rstrip('.')}; see '{where} --help'"
