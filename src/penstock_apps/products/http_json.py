"""A retailer that is described in a file and needs no code: where to ask, and where the answer keeps what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import orjson

from penstock import Permanent, Retryable
from penstock.errors import AnswerTooLarge, AnswerTooLate, HostRefused, Postponed, RequestFailed, TooManyRedirects
from penstock.http_client import AnswerLimits, Head, HttpClient, configured_host, read_retry_after
from penstock.lifecycle import JSON
from penstock_apps.products.call_pacing import CallPacing
from penstock_apps.products.products import canonical_gtin, clean, machine_price
from penstock_apps.products.provider_settings import ADDRESSES, PLACE, HttpJsonSettings, read_retailers
from penstock_apps.products.providers import FoundProduct, StillInTrouble, best_match
from penstock_apps.products.strategies import Query

__all__ = ["LARGEST_ANSWER", "HttpJsonProvider", "load_providers"]

LARGEST_ANSWER = 1024**2
_MAX_ITEMS = 50
_MAX_REDIRECTS = 3
_NOTHING = (204, 404, 410)


def load_providers(path: str, environment: Mapping[str, str]) -> tuple[HttpJsonProvider, ...]:
    """The retailers of the file that ``PRODUCT_PROVIDERS`` names, with the keys of the environment; none without it."""
    path = path.strip()
    return tuple(HttpJsonProvider(settings) for settings in read_retailers(path, environment)) if path else ()


class HttpJsonProvider:
    """Asks one retailer over HTTP, no faster and no more at once than its settings say."""

    def __init__(self, settings: HttpJsonSettings) -> None:
        self._settings = settings
        self._pacing = CallPacing(settings.calls_per_second, settings.timeout_seconds, settings.outage_seconds)
        self._clients: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    @property
    def name(self) -> str:
        """What people call the retailer."""
        return self._settings.name

    @property
    def priority(self) -> int:
        """Lower is asked earlier."""
        return self._settings.priority

    @property
    def gauges(self) -> dict[str, float]:
        """How often it refuses or fails, and how far apart calls to it are just now."""
        return self._pacing.gauges

    def understands(self, query: Query) -> bool:
        """Is there an address for this question?"""
        return self._address(query) is not None

    async def look_up(self, query: Query) -> FoundProduct | None:
        """The product that fits best, or None; a question it has no address for is one it has no answer to."""
        address = self._address(query)
        if address is None:
            return None
        here = await self._here()
        async with here.places:
            wait = await self._pacing.wait(asyncio.sleep)
            if wait is not None:
                raise self._not_asked(wait)
            was_in_trouble = self._pacing.is_in_trouble
            try:
                body = await self._ask(here.client, address)
            except Retryable as error:
                # The item that meets an outage first has had a try; those that only find it going on have not.
                if not was_in_trouble or self._pacing.is_outage_over_long:
                    raise
                again_in = max(error.retry_after or 0.0, self._pacing.closed_for)
                raise StillInTrouble(error.message, code=error.code, retry_after=again_in) from error
        return None if body is None else best_match(query, self._read(body))

    async def close(self) -> None:
        """Close its connections on the loop that runs now; a loop that ends in order does that itself."""
        here = self._clients.get(asyncio.get_running_loop())
        if here is not None:
            await here.lifetime.aclose()

    async def _here(self) -> _LoopClient:
        """The client of the loop that runs now: connections cannot move from one loop to another."""
        loop = asyncio.get_running_loop()
        here = self._clients.get(loop)
        if here is None:
            client = HttpClient(
                # The addresses are the operator's own, and may be in their own network; nobody else's are asked here.
                allowed_hosts={configured_host(url) for url in self._settings.url.values()},
                headers={"Accept": "application/json", **self._settings.headers},
            )
            lifetime = self._lifetime(loop, client)
            here = _LoopClient(client, asyncio.Semaphore(self._settings.concurrency), lifetime)
            self._clients[loop] = here
            await anext(lifetime)
        return here

    async def _lifetime(self, loop: asyncio.AbstractEventLoop, client: HttpClient) -> AsyncGenerator[None, None]:
        """Begun with the client; a loop closes the generators that were begun on it when it ends, and so the client."""
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            await client.close()

    def _address(self, query: Query) -> str | None:
        template = self._settings.url.get(ADDRESSES[query.strategy])
        if template is None:
            return None
        values = {"sku": query.sku, "gtin": query.gtin, "brand": query.brand, "title": query.title, "text": query.text}
        # Dots cannot be quoted, and a segment of them alone would lead up and out of the address.
        if any((values[place] or "").strip(".") == "" and values[place] for place in PLACE.findall(template)):
            return None
        return PLACE.sub(lambda place: quote(values[place[1]] or "", safe=""), template)

    def _not_asked(self, wait: float) -> Postponed | Retryable:
        """What an item is told that did not ask: no try of it, unless the retailer has been given up."""
        if self._pacing.is_given_up:
            return Retryable(
                f"{self.name} has not given a good answer for {self._settings.outage_seconds:g} s",
                code="PROVIDER_UNAVAILABLE",
            )
        return Postponed(f"{self.name} is asked again in {wait:.1f} s", code="PROVIDER_THROTTLED", retry_after=wait)

    async def _ask(self, client: HttpClient, address: str) -> bytes | None:
        limits = AnswerLimits(self._settings.timeout_seconds, LARGEST_ANSWER, _MAX_REDIRECTS)
        try:
            answer = await client.ask("GET", address, limits, wants_body=self._wants_body)
        except AnswerTooLate as error:
            self._pacing.learn(None)
            raise Retryable(
                f"{self.name} did not answer in {self._settings.timeout_seconds:g} s", code="PROVIDER_TIMEOUT"
            ) from error
        except AnswerTooLarge as error:
            raise self._unreadable(f"it is larger than {LARGEST_ANSWER:,} bytes") from error
        except (HostRefused, TooManyRedirects) as error:
            raise Permanent(
                f"{self.name} leads elsewhere, and its key is not sent there: {error.message}; correct its address",
                code="PROVIDER_REFUSED",
            ) from error
        except RequestFailed as error:
            self._pacing.learn(None)
            raise Retryable(f"{self.name} cannot be reached: {error.message}", code="PROVIDER_UNAVAILABLE") from error
        return None if answer.head.status in _NOTHING else answer.body

    def _wants_body(self, head: Head) -> bool:
        after = read_retry_after(head.headers.get("retry-after"))
        self._pacing.learn(head.status, after)
        if head.status in _NOTHING:
            return False
        self._require_good(head.status, after)
        return True

    def _require_good(self, status: int, after: float | None) -> None:
        if status == 200:
            return
        if status == 429:
            raise Retryable(f"{self.name} answers 429: too many calls", code="PROVIDER_THROTTLED", retry_after=after)
        if status == 408:
            raise Retryable(f"{self.name} answers 408", code="PROVIDER_TIMEOUT", retry_after=after)
        if status >= 500:
            raise Retryable(f"{self.name} answers {status}", code="PROVIDER_UNAVAILABLE", retry_after=after)
        raise Permanent(f"{self.name} answers {status}: check its address and its key", code="PROVIDER_REFUSED")

    def _read(self, body: bytes) -> list[FoundProduct]:
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise self._unreadable(f"it is not JSON ({error})") from error
        try:
            items = _at(answer, self._settings.items)
        except LookupError as error:
            raise self._unreadable(f"there is nothing at {self._settings.items!r}") from error
        if items is None:
            return []
        products = items if isinstance(items, list) else [items]
        return [self._read_product(item) for item in products[:_MAX_ITEMS]]

    def _read_product(self, item: object) -> FoundProduct:
        if not isinstance(item, dict):
            raise self._unreadable(f"a product at {self._settings.items!r} is not an object")
        values: dict[str, str] = {}
        for field, path in self._settings.fields.items():
            try:
                value = _at(item, path)
            except LookupError:
                continue
            if value is None:
                continue
            if isinstance(value, dict | list):
                raise self._unreadable(f"{field} at {path!r} is not a single value")
            if field == "price":
                _put_price(values, value)
            elif text := clean(str(value)):
                values[field] = text
        if "gtin" in values:
            values["gtin"] = canonical_gtin(values["gtin"]) or values["gtin"]
        return FoundProduct(**values, retailer=self.name)  # type: ignore[arg-type]  # the settings know no other field

    def _unreadable(self, why: str) -> Permanent:
        return Permanent(f"the answer of {self.name} cannot be read: {why}", code="PROVIDER_ANSWER_UNREADABLE")


@dataclass(frozen=True, slots=True)
class _LoopClient:
    """What calls on one loop share."""

    client: HttpClient
    places: asyncio.Semaphore
    lifetime: AsyncGenerator[None, None]


def _put_price(values: dict[str, str], value: str | float) -> None:
    """A price nobody can read is no reason to lose the product."""
    try:
        amount, currency = machine_price(value)
    except ValueError:
        return
    values["price"] = amount
    if currency:
        values.setdefault("currency", currency)


def _at(value: JSON, path: str) -> JSON:
    """What is at a path such as ``offers.0.price``; LookupError where there is nothing."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and step.isdecimal():
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value
