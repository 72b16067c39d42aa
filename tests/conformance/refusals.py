"""Connections of a caller that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Penstock
from penstock.errors import ConfigurationError


def refused(app: Penstock, connection: Any) -> str:
    """The words; every method that takes a connection uses the same code."""
    with pytest.raises(ConfigurationError):
        app.messages.publish("news", 1, connection=connection)
    with pytest.raises(ConfigurationError) as told:
        app.submit("noop", connection=connection)
    assert told.value.code == "CONNECTION_UNSUPPORTED"
    assert app.jobs.list() == []
    return told.value.message
