"""Who is asked for a product, in which order, and which answers are believed.

A shop that does not have a product often answers with one that looks like it. So an answer counts only when it fits the
question: the same GTIN, the same article number, or a title with mostly the same words; anything else is "not found".
"""

from __future__ import annotations

import logging
import re
import time
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from penstock import Permanent, Retryable
from penstock.errors import Postponed
from penstock_apps.products.products import canonical_gtin, same_gtin
from penstock_apps.products.strategies import Query

THRESHOLD = 0.6
_WORDS = re.compile(r"\w+")
_LOG = logging.getLogger("penstock_apps.products")


@dataclass(frozen=True, slots=True)
class FoundProduct:
    """A product as a retailer sells it; ``score`` says how surely it is the one asked for (1 is the same GTIN)."""

    title: str | None = None
    brand: str | None = None
    sku: str | None = None
    gtin: str | None = None
    price: str | None = None
    currency: str | None = None
    availability: str | None = None
    url: str | None = None
    image: str | None = None
    retailer: str | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One question to one retailer: "FOUND", "NOT_FOUND" or the code of its error, and how long that took."""

    provider: str
    query: Query
    outcome: str
    latency_ms: float


class StillInTrouble(Postponed):
    """A retailer that was known to be in trouble was asked whether it is back, and is not: no try of the item."""


class Provider(Protocol):
    """A retailer that can be asked.

    ``look_up`` raises ``Postponed`` (PROVIDER_THROTTLED) when it did not ask because the retailer asks for no
    calls or was out of order a moment ago, ``StillInTrouble`` when it asked and that is still so, ``Retryable``
    (PROVIDER_THROTTLED, PROVIDER_UNAVAILABLE, PROVIDER_TIMEOUT) when it asked and that may work later, and
    ``Permanent`` (PROVIDER_REFUSED, PROVIDER_ANSWER_UNREADABLE) when it will not.
    """

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def priority(self) -> int:
        """Lower is asked earlier."""

    def understands(self, query: Query) -> bool:
        """Can it be asked this at all? One that knows no way is passed over, and that is no answer."""

    async def look_up(self, query: Query) -> FoundProduct | None:
        """The product, or None where the retailer does not have it."""


def score(query: Query, product: FoundProduct) -> float:
    """How well an answer fits: 1 for the same GTIN, 0.95 for the same article number, else the share of equal words."""
    if same_gtin(query.gtin, product.gtin):
        return 1.0
    if query.gtin and product.gtin and canonical_gtin(product.gtin):
        return 0.0  # two good numbers that differ are two products, whatever their names
    if query.sku and product.sku and query.sku.casefold() == product.sku.casefold():
        return 0.95
    expected_words, offered_words = _tokens(query.brand, query.title), _tokens(product.brand, product.title)
    if not query.title or not expected_words or not offered_words:
        return 0.0
    overlap = 2 * len(expected_words & offered_words) / (len(expected_words) + len(offered_words))
    # "500 ml" and "250 ml" share every word but the one that matters.
    sizes, other_sizes = _with_digits(expected_words), _with_digits(offered_words)
    if sizes and other_sizes and sizes.isdisjoint(other_sizes):
        overlap /= 2
    return round(min(overlap, 0.9), 3)


def best_match(query: Query, candidates: Iterable[FoundProduct], threshold: float = THRESHOLD) -> FoundProduct | None:
    """The answer that fits best, with its score, or None where none fits; the first one on a tie."""
    candidates_with_scores = [replace(product, score=score(query, product)) for product in candidates]
    winner = max(candidates_with_scores, key=lambda product: product.score, default=None)
    return winner if winner is not None and winner.score >= threshold else None


class Providers:
    """Every retailer, by priority; each attempt starts with the next one."""

    def __init__(self, providers: Iterable[Provider], *, threshold: float = THRESHOLD) -> None:
        self._in_order = tuple(sorted(providers, key=lambda provider: provider.priority))
        self._threshold = threshold

    def __len__(self) -> int:
        return len(self._in_order)

    def order(self, attempt: int = 1) -> tuple[Provider, ...]:
        """Whom to ask first, second … in this attempt (the first attempt is 1)."""
        if not self._in_order:
            return ()
        at = (max(attempt, 1) - 1) % len(self._in_order)
        return self._in_order[at:] + self._in_order[:at]

    def askable(self, queries: Iterable[Query]) -> list[Query]:
        """The questions that somebody can be asked: one that nobody understands is no try of a product."""
        return [query for query in queries if any(provider.understands(query) for provider in self._in_order)]

    async def look_up(
        self, query: Query, attempt: int = 1, *, on_call: Callable[[ProviderCall], None] | None = None
    ) -> FoundProduct | None:
        """The first answer that fits. One retailer's trouble is raised only if no other one has the product.

        "Not found" is said only when everybody who can answer did: while one is throttled, nobody knows. A retailer
        that asked us to stay away, or is out of order, costs no try where nobody else failed: ``Postponed``.
        ``on_call`` is told of each question that was asked, and of none that was not.
        """

        def note(provider: Provider, outcome: str) -> None:
            if on_call is not None:
                on_call(ProviderCall(provider.name, query, outcome, (time.perf_counter() - begun_at) * 1000.0))

        postponement: Postponed | None = None
        retryable: Retryable | None = None
        permanent: Permanent | None = None
        has_answer = False
        for provider in self.order(attempt):
            if not provider.understands(query):
                continue
            begun_at = time.perf_counter()
            try:
                product = await provider.look_up(query)
            except Postponed as error:
                if isinstance(error, StillInTrouble):
                    note(provider, error.code)
                if postponement is None or error.retry_after < postponement.retry_after:
                    postponement = error
                continue
            except Retryable as error:
                note(provider, error.code)
                _LOG.warning("retailer %s could not be asked: %s", provider.name, error.message)
                # The one that is free again first decides when to ask again.
                if retryable is None or (error.retry_after or 0) < (retryable.retry_after or 0):
                    retryable = error
                continue
            except Permanent as error:
                note(provider, error.code)
                _LOG.warning("retailer %s could not be asked: %s", provider.name, error.message)
                permanent = permanent or error
                continue
            has_answer = True
            match = best_match(query, [product], self._threshold) if product is not None else None
            note(provider, "NOT_FOUND" if match is None else "FOUND")
            if match is not None:
                return match if match.retailer else replace(match, retailer=provider.name)
        if retryable is not None:
            raise retryable
        if postponement is not None:
            raise postponement
        if permanent is not None and not has_answer:
            raise permanent
        return None


def _tokens(*texts: str | None) -> frozenset[str]:
    plain = unicodedata.normalize("NFKD", " ".join(text for text in texts if text).casefold())
    return frozenset(_WORDS.findall("".join(character for character in plain if not unicodedata.combining(character))))


def _with_digits(tokens: frozenset[str]) -> frozenset[str]:
    return frozenset(token for token in tokens if any(character.isdigit() for character in token))
