"""What a plan yields when there is more to say of an item than its input."""

from __future__ import annotations

from typing import NamedTuple

from penstock.lifecycle.payloads import JSON


class Planned(NamedTuple):
    """An item to be: its input as it came, and the same in canonical fields, which lists and grids show a summary of.

    A plan may yield these or plain inputs.
    """

    input: JSON
    normalized: JSON = None
