"""Every example in a docstring of the package is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import penstock

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(penstock.__path__, "penstock.")
    if module.name.startswith(("penstock.lifecycle", "penstock.testing", "penstock.store", "penstock.operations"))
    or module.name.startswith(("penstock.exports", "penstock.ingest", "penstock.worker.control"))
    or module.name in ("penstock.errors", "penstock.clock", "penstock.settings")
)
MUST_HAVE_SOME = {"penstock.lifecycle.retry", "penstock.lifecycle.payloads", "penstock.errors", "penstock.clock"}


@pytest.mark.parametrize("name", [name for name in MODULES if ".migrations" not in name])
def test_the_examples_are_true(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
    assert found.attempted > 0 or name not in MUST_HAVE_SOME
