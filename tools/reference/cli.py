"""The page of commands, from the command line's own program."""

from __future__ import annotations

from typing import Any

import typer

from penstock.cli import program as commands
from tools.reference.markdown import code, document, fenced, inline, table

_HELP = "--help"


def page() -> str:
    """docs/reference/cli.md."""
    group: Any = typer.main.get_command(commands.program)
    return document(
        "Command line",
        _told(group.help),
        "Exit codes: 0 all is well, 1 the work failed, 2 the question was wrong, 3 the job was canceled, 130 "
        "Ctrl-C. An "
        "error is one line on standard error with its [code](errors.md#codes-of-the-command-line) at the end.",
        table(
            ("command", "what it does"),
            ((f"[`{name}`](#penstock-{name})", _first(one)) for name, one in group.commands.items()),
        ),
        "Every command has `-h` and `--help`; `penstock --version` prints the version.",
        *(_command(name, one) for name, one in group.commands.items()),
    )


def _command(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=f"penstock {name}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
    parts = [f"## penstock {name}", fenced(usage, "text"), _told(command.help)]
    records = [
        (record[0].partition(" <")[0] if parameter.param_type_name == "argument" else record[0], record[1])
        for parameter in command.params
        if _HELP not in parameter.opts and (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        parts.append(table(("argument or option", "meaning"), ((code(left), inline(right)) for left, right in records)))
    return "\n\n".join(part for part in parts if part)


def _first(command: Any) -> str:
    return inline(" ".join((command.help or "").partition("\n\n")[0].split()))


def _told(text: str | None) -> str:
    """The help of a command: a paragraph behind a backspace keeps its lines, the others flow."""
    parts = []
    for paragraph in (text or "").split("\n\n"):
        plain = paragraph.removeprefix("\b\n").strip("\n")
        if plain:
            parts.append(fenced(plain, "text") if plain != paragraph.strip("\n") else inline(" ".join(plain.split())))
    return "\n\n".join(parts)
