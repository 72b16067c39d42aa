"""What the reference says of times in a query; they are read by :mod:`penstock.lifecycle.moments`."""

from __future__ import annotations

from typing import Any

LONGEST_MOMENT = 40
MOMENT: dict[str, Any] = {"format": "date-time", "examples": ["2026-11-16T08:00:00Z"]}
"""What the reference says of such a parameter."""
