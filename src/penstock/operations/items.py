"""A job's items on their way into the database: given with the job, or planned later."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import InvalidInput
from penstock.lifecycle.payloads import JSON, encode, encode_each
from penstock.lifecycle.planned_item import Planned
from penstock.store.queries.job_items import NewItem


def item_text(item: JSON | Planned, max_bytes: int, index: int) -> NewItem:
    """An item on its way to the database; ``index`` is its place among the job's items, from 0."""
    planned_item, at = item if isinstance(item, Planned) else Planned(item), f"items[{index}]"
    try:
        text = encode(planned_item.input, max_bytes=max_bytes, at=at)
        if planned_item.normalized is None:
            return text, None
        return text, encode(planned_item.normalized, max_bytes=max_bytes, at=f"{at}.normalized")
    except InvalidInput as error:
        raise type(error)(f"item {index + 1}: {error.message}", field=error.field) from error


def item_texts(batch: Sequence[JSON | Planned], max_bytes: int, after: int) -> list[NewItem]:
    """Items behind the first ``after``, all together where they are plain, and else one by one."""
    planned_items = [item if isinstance(item, Planned) else Planned(item) for item in batch]
    inputs = encode_each([item[0] for item in planned_items], max_bytes=max_bytes)
    normalized = encode_each([item[1] for item in planned_items if item[1] is not None], max_bytes=max_bytes)
    if inputs is None or normalized is None:
        return [item_text(item, max_bytes, index) for index, item in enumerate(batch, after)]
    if len(normalized) == len(inputs):
        return list(zip(inputs, normalized, strict=True))
    texts = iter(normalized)
    return [(text, None if item[1] is None else next(texts)) for text, item in zip(inputs, planned_items, strict=True)]
