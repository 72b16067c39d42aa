"""The two kinds: the rows of a table, and pictures of products; each item is looked up at retailers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from penstock import SYSTEM, ItemContext, JobContext, NotFound, Penstock, Permanent, Planned, owner
from penstock.ingest import TableShape, table_limits
from penstock_apps.products.file_reader import ChunkReader, FileReader
from penstock_apps.products.payloads import (
    ArchiveParams,
    PictureFile,
    PictureInput,
    PictureParams,
    ProductResult,
    RowInput,
    TableParams,
)
from penstock_apps.products.planning import ArchiveToRead, PictureHead, TableToRead, table_pieces
from penstock_apps.products.products import Product
from penstock_apps.products.providers import FoundProduct, ProviderCall, Providers
from penstock_apps.products.repository import BatchWriter, SearchEvent
from penstock_apps.products.strategies import Query, choose_query, queries_for

if TYPE_CHECKING:
    from penstock_apps.products.intake import ProductIntake

TABLE = "csv"
PICTURES = "image"

COLUMNS = (
    "sku", "gtin", "brand", "title", "price", "currency", "availability", "url", "retailer", "matched_by", "score",
)  # fmt: skip
"""The columns of a result, in the order of the grid and of exports."""
NUMBER_COLUMNS = ("price",)
"""Texts there that are numbers in a workbook: exact in JSON, and to be summed in a sheet."""
SUMMARY = {"brand": ("brand",), "sku": ("sku", "gtin")}
"""What lists show of an item beside its title, and the members of its input that may hold it."""
Gauges = Callable[[], dict[str, dict[str, dict[str, float]]]]
Lookup = ItemContext[TableParams, RowInput] | ItemContext[ArchiveParams | PictureParams, PictureInput]
"""An item of either kind."""


def planned_pictures(files: Sequence[PictureFile], after: int = 0) -> Iterator[Planned]:
    """An item for each picture that was sent by itself."""
    for number, file in enumerate(files[after:], start=after + 1):
        item: PictureInput = {"row": number, "picture": file["name"], "sha256": file["sha256"]}
        yield Planned(item, {"title": file["name"]})


class ProductSearch:
    """Looks products up for items, and has each question recorded before its item ends."""

    def __init__(self, providers: Providers, events: BatchWriter) -> None:
        self._providers = providers
        self._events = events

    async def look_up(self, item: Lookup, possible: Sequence[Query], product: Product) -> ProductResult:
        if not len(self._providers):
            raise Permanent(
                "no retailer is known here, so nothing can be looked up: set PRODUCT_PROVIDERS to the path of a JSON "
                "file that describes them, start the workers again, and reprocess the job",
                code="NO_PROVIDER",
            )
        askable_queries = self._providers.askable(possible)
        if not askable_queries:
            ways = ", ".join(dict.fromkeys(query.strategy.value for query in possible))
            raise Permanent(
                f"no retailer can be asked by what is known of the product ({ways}): give its row what they are asked "
                "by, or add such an address to their description in PRODUCT_PROVIDERS, and reprocess the job",
                code="NO_PROVIDER_UNDERSTANDS",
            )
        # Only a question that was answered is followed by the next one, in a later run too.
        query = choose_query(askable_queries, item.times_not_found)
        events: list[SearchEvent] = []
        try:
            match = await self._providers.look_up(
                query, item.attempt, on_call=lambda call: events.append(_event(item, call))
            )
        except asyncio.CancelledError:
            self._events.hand_in(events)  # what was asked was asked, though nobody waits for it any more
            raise
        except BaseException:
            await self._events.hand_in(events)
            raise
        await self._events.hand_in(events)
        if match is None:
            raise NotFound(
                f"no retailer has it by {query.strategy.value} {query.text[:100]!r}", code="PRODUCT_NOT_FOUND"
            )
        return result_of(match, query, product)


class ProductTable:
    """Each row of a table, looked up."""

    columns = COLUMNS
    number_columns = NUMBER_COLUMNS
    summary = SUMMARY

    def __init__(
        self, app: Penstock, files: FileReader, search: ProductSearch, gauges: Gauges, intake: ProductIntake
    ) -> None:
        self._app = app
        self._files = files
        self._search = search
        self.gauges = gauges
        self.intake = intake

    def plan(self, job: JobContext[TableParams, ProductResult], after: int) -> Iterator[Planned]:
        """An item for each row."""
        params = job.params
        path = self._app.acting_as(SYSTEM).files.path(UUID(params["file_id"]))
        shape, limits = TableShape.from_json(params["shape"]), table_limits(self._app.settings)
        table, make = TableToRead(path, shape, limits, params["mapping"], after), tuple.__new__
        for piece in self._files.stream(table_pieces, table):
            for planned in piece:
                yield make(Planned, planned)

    async def process(self, item: ItemContext[TableParams, RowInput]) -> ProductResult:
        """The product a row speaks of."""
        _require_good(item.input)
        product: Product = item.normalized
        return await self._search.look_up(item, queries_for(product), product)


class ProductPictures:
    """Each picture's barcode, looked up."""

    columns = COLUMNS
    number_columns = NUMBER_COLUMNS
    summary = SUMMARY

    def __init__(
        self, app: Penstock, files: FileReader, search: ProductSearch, gauges: Gauges, intake: ProductIntake
    ) -> None:
        self._app = app
        self._files = files
        self._search = search
        self.gauges = gauges
        self.intake = intake

    def plan(self, job: JobContext[ArchiveParams | PictureParams, ProductResult], after: int) -> Iterator[Planned]:
        """An item for each picture."""
        params = job.params
        if "archive" in params:
            path = self._app.acting_as(SYSTEM).files.path(UUID(params["file_id"]))
            archive = ArchiveToRead(path, params["name"], self._files.archive_limits, after)
            for head, content in self._files.archived_pictures(archive):
                yield Planned(self._picture_input(params["name"], job.owner, head, content), {"title": head.name})
        else:
            yield from planned_pictures(params["pictures"], after)

    async def process(self, item: ItemContext[ArchiveParams | PictureParams, PictureInput]) -> ProductResult:
        """The product whose barcode is in a picture."""
        _require_good(item.input)
        barcodes = await self._files.barcodes(item.kept_file(item.input["sha256"]))
        numbers = dict.fromkeys(barcode.gtin for barcode in barcodes if barcode.gtin)
        if not numbers:
            texts = ", ".join(repr(barcode.text[:40]) for barcode in barcodes[:3])
            raise NotFound(
                f"the barcode holds no GTIN but {texts}: photograph the product's EAN or UPC", code="NO_GTIN"
            )
        # A picture may show several products; each attempt asks for the next.
        possible = [query for number in numbers for query in queries_for(Product(gtin=number))]
        return await self._search.look_up(item, possible, Product())

    def _picture_input(self, archive: str, user: str | None, head: PictureHead, content: ChunkReader) -> PictureInput:
        """Keep a picture of an archive, so that no item has to read the directory of the whole to find its own.

        One that cannot be used is an item too, which says why when its turn comes. Its name in the archive may be no
        name for a file, and is the item's.
        """
        item: PictureInput = {"row": head.number, "picture": head.name}
        if head.problem is not None:
            item["problem"], item["code"] = f"{head.name}: {head.problem}", head.code or "FILE_BROKEN"
        else:
            name = f"{head.number} of {archive[:1000]}"
            item["sha256"] = self._app.acting_as(owner(user)).files.keep(content, name=name).sha256
        return item


def result_of(match: FoundProduct, query: Query, product: Product) -> ProductResult:
    """What the grid and exports show; what the retailer does not say is known from the row, but for its price."""
    return {
        "sku": match.sku or product.get("sku"),
        "gtin": match.gtin or product.get("gtin") or query.gtin,
        "brand": match.brand or product.get("brand"),
        "title": match.title or product.get("title"),
        "price": match.price,
        "currency": match.currency,
        "availability": match.availability,
        "url": match.url,
        "retailer": match.retailer,
        "matched_by": query.strategy.value,
        "score": match.score,
    }


def _require_good(item: RowInput | PictureInput) -> None:
    if "problem" in item:
        raise Permanent(item["problem"], code=item["code"])


def _event(item: Lookup, call: ProviderCall) -> SearchEvent:
    return SearchEvent(
        job_id=item.job_id,
        item_id=item.id,
        user_id=item.owner,
        kind=item.kind,
        provider=call.provider,
        strategy=call.query.strategy.value,
        query=call.query.text,
        outcome=call.outcome,
        attempt=item.attempt,
        latency_ms=round(call.latency_ms, 3),
        at=datetime.now(UTC),
    )
