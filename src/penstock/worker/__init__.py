"""The worker: claims, runs and records items in slices, and has the maintenance duties."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.worker.control.provider_delay import ProviderDelay
    from penstock.worker.failures import Failure
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.worker.control.provider_delay": "ProviderDelay",
            "penstock.worker.failures": "Failure",
        },
    )

__all__ = [
    "Failure", "ProviderDelay",
]  # fmt: skip
