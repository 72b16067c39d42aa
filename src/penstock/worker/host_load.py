"""How busy this machine is: our processor time, and our memory by its limit."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from penstock.worker.control.pressure import HostFigures, Pressure, PressureGauge

_MEMORY_LIMIT, _USED_MEMORY = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_EVERY_SECONDS = 1.0


class HostLoad:
    """Reads the figures now and then; many lanes ask, and one reading serves them all."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._gauge = PressureGauge()
        self._cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._read_at = 0.0
        self._process.cpu_percent()  # the first reading is the beginning of the next

    @property
    def cores(self) -> int:
        """Processors we may use."""
        return self._cores

    def pressure(self, now: float) -> Pressure:
        """What the machine is short of, read again when the last reading is older than a second."""
        if now - self._read_at < _EVERY_SECONDS:
            return self._gauge.setting
        self._read_at = now
        memory_used, memory_limit = _memory()
        return self._gauge.observe(
            HostFigures.of(
                cpu_percent=self._process.cpu_percent(),
                cores=self._cores,
                memory_used=memory_used,
                memory_limit=memory_limit,
            )
        )


def _memory() -> tuple[float, float]:
    """Bytes in use and their limit: of our container where it has one, else of the machine."""
    try:
        return float(_USED_MEMORY.read_text()), float(_MEMORY_LIMIT.read_text())
    except (OSError, ValueError):  # no such files, or "max": no limit of our own
        machine = psutil.virtual_memory()
        return float(machine.total - machine.available), float(machine.total)
