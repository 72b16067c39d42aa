"""The options that several commands share, each said once."""

from __future__ import annotations

from typing import Annotated

import typer

JobId = Annotated[
    str, typer.Argument(metavar="ID", help="A job's id, or at least 6 characters of its beginning or its end.")
]
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:ATTRIBUTE",
        help="The Penstock object whose kinds and database to use; PENSTOCK_APP, or else the installed applications.",
    ),
]
AsUser = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="USER", help="Ask as this user, who sees only their own jobs; without it, as an administrator."
    ),
]
AsSystem = Annotated[
    bool,
    typer.Option("--system", help="Ask as the system: for an operator's program, such as a deployment."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; the job's history keeps it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table: one object, or one on each line.")]
