"""The examples in docstrings, which docs/reference/api.md shows, do what they say."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
import structlog

_EXAMPLE = re.compile(r">>> (?!#)")  # a comment alone is a picture, not an example
SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if _EXAMPLE.search(path.read_text(encoding="utf-8"))
)


@pytest.fixture
def quiet():
    """Log lines go to standard output unless somebody configures them, and would be taken for an example's answer."""
    before = structlog.get_config()
    # All of it: what another test has set up would look for a level that this logger has not.
    structlog.configure(
        processors=[], wrapper_class=structlog.BoundLogger, logger_factory=structlog.ReturnLoggerFactory()
    )
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(name), report=True)
    assert tried > 0
    assert failed == 0, f"{failed} of the examples in {name} answer something else; the report is above"
