"""Celery beside Penstock: its tasks as one honest job each (:func:`track`).

It needs ``pip install 'penstock[celery]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.celery.tracking import Tracker, track
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__, {"penstock.celery.tracking": "Tracker track"})

__all__ = ["Tracker", "track"]
