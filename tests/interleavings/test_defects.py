"""The check finds defects: each that is put back into the engine is seen in some order of two operations."""

from __future__ import annotations

import pytest

from tests.interleavings.defects import DEFECTS
from tests.interleavings.explorer import Explorer

MOST = 400


@pytest.mark.parametrize("name", DEFECTS)
def test_what_is_put_back_is_found(on_postgresql: Explorer, name: str) -> None:
    defect, before = DEFECTS[name], on_postgresql.schedules
    on_postgresql.enter(defect.scene)
    with pytest.MonkeyPatch.context() as patch:
        defect.put_back(patch)
        on_postgresql.explore(defect.operations, MOST, until_found=defect.fault)
    found = [finding.fault for finding in on_postgresql.findings.values()]
    assert any(defect.fault in fault for fault in found), found

    tried = on_postgresql.schedules - before
    on_postgresql.forget()
    on_postgresql.enter(defect.scene)
    on_postgresql.explore(defect.operations, tried)
    assert not on_postgresql.findings, "it was not the defect"
