"""A job's items on their way into the database: given with the job, or planned later."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, encode, encode_each
from penstock.lifecycle.planned import Planned
from penstock.store.engine import Transaction
from penstock.store.statements import submit as statements

Encoded = tuple[str, str | None]
"""An item's input as JSON text, and the same in canonical fields where the plan says it."""


def item_text(one: JSON | Planned, most: int) -> Encoded:
    """An item on its way to the database."""
    if not isinstance(one, Planned):
        return encode(one, most=most, what="input"), None
    normalized = None if one.normalized is None else encode(one.normalized, most=most, what="normalized input")
    return encode(one.input, most=most, what="input"), normalized


def item_texts(batch: Sequence[JSON | Planned], most: int) -> list[Encoded]:
    """Items on their way to the database, all together where they are plain, and else one by one."""
    planned = [one if isinstance(one, Planned) else Planned(one) for one in batch]
    given = encode_each([one[0] for one in planned], most=most)
    normalized = encode_each([one[1] for one in planned], most=most)
    if given is None or normalized is None:
        return [item_text(one, most) for one in batch]
    kept = [None if one[1] is None else text for one, text in zip(planned, normalized, strict=True)]
    return list(zip(given, kept, strict=True))


def insert_items(
    transaction: Transaction, kind: Kind, job_id: UUID, owner: str | None, items: Sequence[Encoded], *, after: int
) -> int:
    """Items at the positions behind ``after``; the answer is the last position."""
    ways = transaction.ways
    of_job = {"the_job_id": job_id, "the_user_id": owner, "the_kind": kind.name}
    rows = [(number, *one) for number, one in enumerate(items, after + 1)]
    transaction.run(statements.insert_items(ways), ways.parameters("new_items", statements.NEW_ITEMS, rows) | of_job)
    return after + len(items)
