"""Catalogs of photos: scan folders, make thumbnails, find copies, tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.application import Application, Migrations

if TYPE_CHECKING:
    from penstock_apps.catalogs.service import Catalogs

catalogs: Application[Catalogs] = Application(
    name="catalogs",
    settings="penstock_apps.catalogs.settings:CatalogSettings",
    migrations=Migrations("penstock_apps.catalogs", head="0002"),
    install="penstock_apps.catalogs.service:Catalogs",
    routes="penstock_apps.catalogs.routes:routes_of",
    pages="penstock_apps.catalogs.web:pages",
    commands="penstock_apps.catalogs.commands:commands",
    samples="penstock_apps.catalogs.samples:CatalogSamples",
    kinds=("scan", "thumbnails", "duplicates", "tagging"),
    addresses=("/api/catalogs", "/ui/catalogs"),
    needs=("PIL",),
    extra="penstock[catalogs]",
)
