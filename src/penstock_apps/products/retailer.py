"""A small shop on this machine, to try the app with: a fixed catalogue over HTTP and JSON, and bad days on request."""

from __future__ import annotations

import csv
import io
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TypedDict
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from penstock.lifecycle import JSON
from penstock_apps.loopback import serve_locally
from penstock_apps.products.barcodes import barcode_png
from penstock_apps.products.products import check_digit, same_gtin

_BRANDS = ("Millrace", "Weir & Sons", "Headwater", "Sluice")
_THINGS = (
    ("Kettle 1.7 l", "Kitchen"), ("Bread knife 21 cm", "Kitchen"), ("Enamel mug 350 ml", "Kitchen"),
    ("Garden hose 20 m", "Garden"), ("Watering can 10 l", "Garden"), ("Pruning shears", "Garden"),
    ("Head torch", "Outdoor"), ("Dry bag 30 l", "Outdoor"), ("Rope 8 mm 25 m", "Outdoor"),
)  # fmt: skip


class _Offer(TypedDict):
    price: str
    currency: str


class _Product(TypedDict):
    id: str
    ean: str
    name: str
    maker: str
    group: str
    offers: list[_Offer]
    stock: str


class _LinkedProduct(_Product):
    link: str
    picture: str


def _product(at: int, brand: str, thing: str, category: str) -> _Product:
    # 20 to 29 is kept by GS1 for use inside shops: these numbers belong to nobody.
    body = f"2900000{at:05d}"
    return {
        "id": f"{brand[:3].upper()}-{1000 + at}",
        "ean": body + check_digit(body),
        "name": f"{brand} {thing}",
        "maker": brand,
        "group": category,
        "offers": [{"price": f"{4 + at * 3}.{(at * 35) % 100:02d}", "currency": "EUR"}],
        "stock": "in stock" if at % 5 else "sold out",
    }


CATALOGUE = tuple(
    _product(at, brand, thing, category)
    for at, (brand, (thing, category)) in enumerate(((brand, thing) for brand in _BRANDS for thing in _THINGS), start=1)
)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    hangs: bool = False


@dataclass(slots=True)
class Retailer:
    """The shop: where it is, what it was asked, and how it will misbehave next."""

    address: str
    calls: list[str] = field(default_factory=list)
    seen_headers: list[dict[str, str]] = field(default_factory=list)
    _next: deque[_Reply] = field(default_factory=deque)
    _closing: threading.Event = field(default_factory=threading.Event)

    def configuration(self, name: str = "demo", **other: JSON) -> dict[str, JSON]:
        """How this shop is described in the file that ``PRODUCT_PROVIDERS`` names."""
        return {
            "name": name,
            "priority": 1,
            "url": {
                "gtin": f"{self.address}/products?gtin={{gtin}}",
                "sku": f"{self.address}/products/{{sku}}",
                "text": f"{self.address}/search?q={{text}}",
            },
            "items": "data.items",
            "fields": {
                "title": "name", "brand": "maker", "sku": "id", "gtin": "ean", "price": "offers.0.price",
                "currency": "offers.0.currency", "availability": "stock", "url": "link", "image": "picture",
            },
            "calls_per_second": 1000,
            **other,
        }  # fmt: skip

    def throttle(self, times: int = 1, retry_after: str = "7") -> None:
        """Answer the next calls with 429."""
        self.say(429, {"error": "slow down"}, times=times, headers={"Retry-After": retry_after})

    def fail(self, times: int = 1, status: int = 503) -> None:
        """Answer the next calls with an error."""
        self.say(status, {"error": "out of order"}, times=times)

    def hang(self, times: int = 1) -> None:
        """Do not answer the next calls at all until the shop closes."""
        self._next.extend([_Reply(200, b"", hangs=True)] * times)

    def say(self, status: int, answer: object, *, times: int = 1, headers: dict[str, str] | None = None) -> None:
        """Answer the next calls with this: an object becomes JSON, bytes stay as they are."""
        body = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        self._next.extend([_Reply(status, body, tuple((headers or {}).items()))] * times)

    def close(self) -> None:
        """Let go of the calls that hang."""
        self._closing.set()

    def reply(self, path: str, headers: dict[str, str]) -> _Reply | None:
        """What a call is answered with; nothing where it hung until the shop closed."""
        self.calls.append(path)
        self.seen_headers.append(headers)
        # Taking from a deque is one step, so two calls never get the same reply.
        try:
            next_reply = self._next.popleft()
        except IndexError:
            return _Reply(200, orjson.dumps({"data": {"items": self._search(path)}}))
        if next_reply.hangs:
            self._closing.wait()
            return None
        return next_reply

    def _search(self, path: str) -> list[_LinkedProduct]:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        if parts.path == "/products":
            return self._select(lambda product: same_gtin(product["ean"], query.get("gtin", [""])[0]))
        if parts.path.startswith("/products/"):
            sku = unquote(parts.path.removeprefix("/products/")).lower()
            return self._select(lambda product: product["id"].lower() == sku)
        words = set(query.get("q", [""])[0].lower().split())
        # Like real shops, it offers whatever shares a word; the most words first.
        near = self._select(lambda product: bool(words & set(product["name"].lower().split())))
        return sorted(near, key=lambda product: -len(words & set(product["name"].lower().split())))[:10]

    def _select(self, fits: Callable[[_Product], bool]) -> list[_LinkedProduct]:
        return [
            {**product, "link": f"{self.address}/p/{product['id']}", "picture": f"{self.address}/p/{product['id']}.png"}
            for product in CATALOGUE
            if fits(product)
        ]


@contextmanager
def demo_retailer() -> Iterator[Retailer]:
    """The shop for the length of a ``with`` block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, or the client's delayed acknowledgement costs 40 ms a call

        def do_GET(self) -> None:
            reply = shop.reply(self.path, {name.lower(): value for name, value in self.headers.items()})
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serve_locally(Handler) as port:
        shop = Retailer(f"http://127.0.0.1:{port}")
        try:
            yield shop
        finally:
            shop.close()


SAMPLE_HEADERS = ("Art.-Nr.", "EAN-13", "Hersteller", "Bezeichnung", "Preis", "Lagerort")
SAMPLE_NOT_FOUND = 2
SAMPLE_UNUSABLE = 1


def sample_csv() -> bytes:
    """A table as people send it: the shop's products, two it does not have, and a row with nothing to look up."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=";", lineterminator="\r\n")
    rows.writerow(SAMPLE_HEADERS)
    for at, product in enumerate(CATALOGUE):
        # Not every row says everything: a third has no number of ours, a third no barcode.
        sku = "" if at % 3 == 1 else product["id"]
        gtin = "" if at % 3 == 2 else product["ean"]
        price = product["offers"][0]["price"].replace(".", ",") + " €"
        name = product["name"].removeprefix(product["maker"]).strip()
        rows.writerow([sku, gtin, product["maker"], name, price, f"Regal {at % 7 + 1}"])
    rows.writerow(["XYZ-1", "4006381333931", "Nobody", "Left-handed sundial", "12,00 €", "Regal 9"])
    rows.writerow(["XYZ-2", "", "Nobody", "Portable waterfall 3 m", "1.299,00 €", "Regal 9"])
    rows.writerow(["", "4,00638E+12", "Nobody", "", "1,00 €", "Regal 9"])
    return text.getvalue().encode("utf-8-sig")


def sample_image(at: int = 0) -> bytes:
    """A picture of the barcode of one of the shop's products."""
    return barcode_png(CATALOGUE[at % len(CATALOGUE)]["ean"])
