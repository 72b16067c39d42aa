"""How long this thread waited is told apart from how long all of them do."""

from __future__ import annotations

import threading

from penstock.store.latency import Latency


def test_the_wait_of_another_thread_is_not_ones_own():
    latency = Latency()
    other = threading.Thread(target=latency.observe, kwargs={"wait": 10.0, "whole": 11.0})
    other.start()
    other.join()
    assert latency.own_wait_ms == 0.0
    assert (latency.wait_ms, latency.latency_ms) == (500.0, 550.0)
    latency.observe(wait=0.002, whole=0.003)
    assert latency.own_wait_ms == 2.0
