"""Ways to ask for a product; a question that found nothing is followed by another, one without an answer is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.errors import InvalidInput
from penstock_apps.products.products import Product


class Strategy(StrEnum):
    """What a shop is asked by, the surest first."""

    SKU = "sku"
    GTIN = "gtin"
    BRAND_AND_TITLE = "brand_title"
    TITLE = "title"


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a shop: the text to ask by, and all that is known, to check the answer against."""

    strategy: Strategy
    text: str
    sku: str | None = None
    gtin: str | None = None
    brand: str | None = None
    title: str | None = None


def queries_for(product: Product) -> list[Query]:
    """The questions a row allows, in the order they are tried."""
    sku, gtin = product.get("sku"), product.get("gtin")
    brand, title = product.get("brand"), product.get("title")
    texts: list[tuple[Strategy, str]] = []
    if sku:
        texts.append((Strategy.SKU, sku))
    if gtin:
        texts.append((Strategy.GTIN, gtin))
    # A title that starts with the brand is the same question twice.
    if brand and title and not title.casefold().startswith(brand.casefold()):
        texts.append((Strategy.BRAND_AND_TITLE, f"{brand} {title}"))
    if title:
        texts.append((Strategy.TITLE, title))
    return [Query(strategy, text, sku, gtin, brand, title) for strategy, text in texts]


def choose_query(possible: Sequence[Query], times_not_found: int) -> Query:
    """The question behind those that found nothing; after the last one it starts again."""
    if not possible:
        raise InvalidInput("there is no question to choose from: the row has no sku, gtin or title", field="queries")
    return possible[times_not_found % len(possible)]
