"""The mailbox: recipes that wait to be saved, and those that were."""

from __future__ import annotations

from pathlib import Path

from penstock.application import Page, Pages

pages = Pages(
    folder=Path(__file__).parent,
    pages=(Page("Mailbox", address="mailbox", template="mailbox.html", results_of=("recipe",)),),
)
