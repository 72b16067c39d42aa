"""Where output goes: tables that fit the terminal, and plain wide ones for a file or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from penstock import JobState

_WIDTH_OF_A_PIPE = 10_000
"""Wide enough for every column to be whole: who reads a pipe cuts by itself."""


def console() -> Console:
    """Standard output, as wide as the terminal is."""
    from rich.console import Console

    terminal = Console(highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal and "COLUMNS" not in os.environ:
        terminal = Console(highlight=False, markup=False, emoji=False, width=_WIDTH_OF_A_PIPE)
    return terminal


def _is_narrow() -> bool:
    """Do tables have to give way to the width? Then the columns that may be cut share what the others leave."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def is_live(terminal: Console) -> bool:
    """Can what was written be written over?"""
    return terminal.is_terminal and not terminal.is_dumb_terminal


def plain_table(*columns: str, right: Iterable[str] = (), stretch: Iterable[str] = ()) -> Table:
    """A table without lines: easy to read, easy to cut. On a terminal the last column, or ``stretch``, gives way."""
    from rich.table import Table

    stretched_columns = tuple(stretch) or columns[-1:]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=_is_narrow())
    for name in columns:
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if name in stretched_columns else None,
        )
    return table


def add_row(table: Table, cells: Sequence[RenderableType]) -> None:
    """A row whose texts are shown as they are."""
    from rich.text import Text

    table.add_row(*[Text(cell) if isinstance(cell, str) else cell for cell in cells])


def print_out(*parts: RenderableType) -> None:
    """To standard output; without the blanks that fill a line up, where it is not a terminal."""
    out = console()
    if out.is_terminal:
        out.print(*parts)
        return
    with out.capture() as capture:
        out.print(*parts)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


_STYLES = {"blue": "cyan", "green": "green", "red": "red", "orange": "yellow"}
"""A terminal's colours for those of the table of states; gray is the terminal's own."""


def in_colour(word: str, state: JobState) -> Text:
    """A state's word in the colour of the state."""
    from rich.text import Text

    return Text(word, style=_STYLES.get(state.look.colour, ""))
