"""What the tests of the documents share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Permanent
from penstock_apps.documents.payloads import DocumentResult
from penstock_apps.documents.reading import Bounds, extract
from tests.integration.conftest import app, open_app, quick_settings

__all__ = ["app", "open_app", "quick_settings"]

Read = Callable[..., DocumentResult]
Refusal = Callable[..., Permanent]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Extract some bytes that were sent under a name."""

    def read_bytes(data: bytes, name: str, **settings: Any) -> DocumentResult:
        media_type = settings.pop("media_type", None)
        path = tmp_path / "stored"
        path.write_bytes(data)
        return extract(path, declared_name=name, declared_media_type=media_type, bounds=Bounds(**settings))

    return read_bytes


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """The Permanent failure that these bytes end in."""

    def refuse_bytes(data: bytes, name: str, **settings: Any) -> Permanent:
        with pytest.raises(Permanent) as caught:
            read(data, name, **settings)
        return caught.value

    return refuse_bytes
