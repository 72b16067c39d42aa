"""How long this thread waited is told apart from how long all of them do."""

from __future__ import annotations

import threading

from penstock.store.pace import Pace


def test_the_wait_of_another_thread_is_not_ones_own():
    pace = Pace()
    other = threading.Thread(target=pace.observe, kwargs={"wait": 10.0, "whole": 11.0})
    other.start()
    other.join()
    assert pace.own_wait_ms == 0.0
    assert (pace.wait_ms, pace.latency_ms) == (500.0, 550.0)
    pace.observe(wait=0.002, whole=0.003)
    assert pace.own_wait_ms == 2.0
