"""Every setting: its environment variable, its default and what it means. Read once, never at import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.settings.all_settings import Settings, load_settings
    from penstock.settings.environment import read_settings
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.settings.all_settings": "Settings load_settings",
            "penstock.settings.environment": "read_settings",
        },
    )

__all__ = ["Settings", "load_settings", "read_settings"]
