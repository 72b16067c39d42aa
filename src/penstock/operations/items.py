"""A job's items on their way into the database: given with the job, or planned later."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON, encode, encode_each
from penstock.lifecycle.planned import Planned
from penstock.store.engine import Transaction
from penstock.store.statements import submit as statements

Encoded = tuple[str, str | None]
"""An item's input as JSON text, and the same in canonical fields where the plan says it."""


def item_text(one: JSON | Planned, most: int, index: int) -> Encoded:
    """An item on its way to the database; ``index`` is its place among the job's items, from 0."""
    planned, at = one if isinstance(one, Planned) else Planned(one), f"items[{index}]"
    try:
        text = encode(planned.input, most=most, at=at)
        if planned.normalized is None:
            return text, None
        return text, encode(planned.normalized, most=most, at=f"{at}.normalized")
    except InvalidInput as error:
        raise type(error)(f"item {index + 1}: {error.message}", field=error.field) from error


def item_texts(batch: Sequence[JSON | Planned], most: int, after: int) -> list[Encoded]:
    """Items behind the first ``after``, all together where they are plain, and else one by one."""
    planned = [one if isinstance(one, Planned) else Planned(one) for one in batch]
    inputs = encode_each([one[0] for one in planned], most=most)
    normalized = encode_each([one[1] for one in planned if one[1] is not None], most=most)
    if inputs is None or normalized is None:
        return [item_text(one, most, index) for index, one in enumerate(batch, after)]
    if len(normalized) == len(inputs):
        return list(zip(inputs, normalized, strict=True))
    given = iter(normalized)
    return [(text, None if one[1] is None else next(given)) for text, one in zip(inputs, planned, strict=True)]


def insert_items(
    transaction: Transaction, kind: Kind, job_id: UUID, owner: str | None, items: Sequence[Encoded], *, after: int
) -> int:
    """Items at the positions behind ``after``; the answer is the last position."""
    dialect = transaction.dialect
    of_job = {"the_job_id": job_id, "the_user_id": owner, "the_kind": kind.name}
    rows = [(number, *one) for number, one in enumerate(items, after + 1)]
    transaction.run(
        statements.insert_items(dialect), dialect.parameters("new_items", statements.NEW_ITEMS, rows) | of_job
    )
    return after + len(items)
