"""Products from tables and photographs: each one is cleaned, looked up at retailers, and checked before it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.application import Application, Migrations

if TYPE_CHECKING:
    from penstock_apps.products.service import Products

products: Application[Products] = Application(
    name="products",
    settings="penstock_apps.products.settings:ProductSettings",
    migrations=Migrations("penstock_apps.products", head="0001"),
    install="penstock_apps.products.service:Products",
    routes="penstock_apps.products.routes:routes_of",
    samples="penstock_apps.products.samples:ProductSamples",
    kinds=("csv", "image"),
    addresses=("/api/ingestion", "/api/products"),
    needs=("PIL", "h2", "httpx2", "zxingcpp"),
    extra="penstock[products]",
)
