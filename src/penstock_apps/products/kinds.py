"""From an upload to items, and from an item to a product: the steps of the two kinds.

A row becomes an item whatever is wrong with it: a bad one says so when its turn comes, so that nothing is lost and the
numbers of rows stay those that people see in their own table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock import ArchiveLimits, ItemContext, NotFound, Permanent, Planned, Table, pictures
from penstock_apps.products.barcodes import read_barcodes
from penstock_apps.products.products import Product, Unusable, normalizer
from penstock_apps.products.providers import Asked, Found, Providers
from penstock_apps.products.repository import BatchWriter, SearchEvent
from penstock_apps.products.strategies import Query, chosen, queries

COLUMNS = (
    "sku", "gtin", "brand", "title", "price", "currency", "availability", "url", "retailer", "matched_by", "score",
)  # fmt: skip
"""The columns of a result, in the order of the grid and of exports."""
SUMMARY = {"brand": ("brand",), "sku": ("sku", "gtin")}
"""What lists show of an item beside its title, and the members of its input that may hold it."""


def planned_rows(table: Table, mapping: Mapping[str, str | None], after: int = 0) -> Iterator[Planned]:
    """An item for each row of a table behind the first ``after``."""
    headers, make = table.shape.headers, tuple.__new__
    clean_row = normalizer([mapping.get(header) for header in headers])
    for number, cells, problem, code in table.rows(after):
        if problem is not None:
            yield Planned(bad_row(number, {}, problem, code), {})
            continue
        given = dict(zip(headers, cells))  # noqa: B905  # naming strict costs a third more, a million times
        try:
            product = clean_row(cells)
        except Unusable as unusable:
            yield Planned(bad_row(number, given, unusable.message, unusable.code), {})
        else:
            yield make(Planned, ({"row": number, "cells": given}, product))


def bad_row(number: int, cells: dict[str, Any], problem: str, code: str | None) -> dict[str, Any]:
    """The input of a row that cannot be used: what it holds, and what its item will say."""
    code = code or "ROW_UNREADABLE"
    return {"row": number, "cells": cells, "problem": f"row {number}: {problem}", "code": code}


def planned_pictures(given: Sequence[Mapping[str, str]], after: int = 0) -> Iterator[Planned]:
    """An item for each picture that was handed in by itself."""
    for number, one in enumerate(given[after:], start=after + 1):
        yield Planned({"row": number, "picture": one["name"], "sha256": one["sha256"]}, {"title": one["name"]})


def planned_members(
    path: Path, limits: ArchiveLimits, keep: Callable[[int, bytes], str], after: int = 0
) -> Iterator[Planned]:
    """An item for each picture of an archive; one that cannot be unpacked says why when its turn comes.

    The archive is walked once. ``keep`` puts a picture by under its number and answers with its SHA-256, so that no
    item has to read the directory of the whole archive to find its own picture.
    """
    for (number, name, _), content, problem, code in pictures(path, limits, after):
        about: dict[str, Any] = {"row": number, "picture": name}
        if content is None:
            about |= {"problem": f"{name}: {problem}", "code": code or "FILE_BROKEN"}
        else:
            about["sha256"] = keep(number, content)
        yield Planned(about, {"title": name})


class Searching:
    """Looks products up for items, and has each question recorded before its item ends."""

    def __init__(self, providers: Providers, events: BatchWriter) -> None:
        self._providers = providers
        self._events = events

    async def of_row(self, item: ItemContext) -> dict[str, Any]:
        """The product a row of a table speaks of."""
        _require_good(item)
        product: Any = item.normalized
        return await self._looked_up(item, queries(product), product)

    async def of_picture(self, item: ItemContext) -> dict[str, Any]:
        """The product whose barcode is in a picture."""
        _require_good(item)
        about: Any = item.input
        found = await asyncio.to_thread(read_barcodes, item.kept_file(about["sha256"]))
        numbers = dict.fromkeys(one.gtin for one in found if one.gtin)
        if not numbers:
            texts = ", ".join(repr(one.text[:40]) for one in found[:3])
            raise NotFound(
                f"the barcode holds no GTIN but {texts}: photograph the product's EAN or UPC", code="NO_GTIN"
            )
        # A picture may show several products; each attempt asks for the next.
        possible = [query for number in numbers for query in queries(Product(gtin=number))]
        return await self._looked_up(item, possible, Product())

    async def _looked_up(self, item: ItemContext, possible: Sequence[Query], product: Product) -> dict[str, Any]:
        if not len(self._providers):
            raise Permanent(
                "no retailer is known here, so nothing can be looked up: set PRODUCT_PROVIDERS to the path of a JSON "
                "file that describes them, start the workers again, and reprocess the job",
                code="NO_PROVIDER",
            )
        # A run after the first goes on with the question behind the one the run before began with.
        query = chosen(possible, item.attempt + item.run - 1)
        asked: list[SearchEvent] = []
        try:
            found = await self._providers.look_up(
                query, item.attempt, told=lambda one: asked.append(_event(item, one))
            )  # fmt: skip
        except asyncio.CancelledError:
            self._events.hand_in(asked)  # what was asked was asked, though nobody waits for it any more
            raise
        except BaseException:
            await self._events.hand_in(asked)
            raise
        await self._events.hand_in(asked)
        if found is None:
            raise NotFound(
                f"no retailer has it by {query.strategy.value} {query.text[:100]!r}", code="PRODUCT_NOT_FOUND"
            )
        return result_of(found, query, product)


def result_of(found: Found, query: Query, product: Product) -> dict[str, Any]:
    """What the grid and exports show; what the retailer does not say is known from the row, but for its price."""
    return {
        "sku": found.sku or product.get("sku"),
        "gtin": found.gtin or product.get("gtin") or query.gtin,
        "brand": found.brand or product.get("brand"),
        "title": found.title or product.get("title"),
        "price": found.price,
        "currency": found.currency,
        "availability": found.availability,
        "url": found.url,
        "retailer": found.retailer,
        "matched_by": query.strategy.value,
        "score": found.score,
    }


def _require_good(item: ItemContext) -> None:
    about: Any = item.input
    if "problem" in about:
        raise Permanent(about["problem"], code=about["code"])


def _event(item: ItemContext, asked: Asked) -> SearchEvent:
    return SearchEvent(
        job_id=item.job_id,
        item_id=item.id,
        user_id=item.owner,
        kind=item.kind,
        provider=asked.provider,
        strategy=asked.query.strategy.value,
        query=asked.query.text,
        outcome=asked.outcome,
        attempt=item.attempt,
        latency_ms=round(asked.latency_ms, 3),
        at=datetime.now(UTC),
    )
