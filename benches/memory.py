"""How much memory this process holds while something runs: the peak, and whether the line is flat."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psutil

_EVERY_SECONDS = 0.05
_MEBIBYTE = 1024 * 1024


class MemoryLine:
    """Looks at the resident memory of this process, in a thread of its own, for the length of a ``with`` block."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="memory-line", daemon=True)
        self.samples: list[tuple[float, float]] = []

    def __enter__(self) -> MemoryLine:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        """The most there was, in MiB."""
        return max(size for _, size in self.samples)

    def growth(self, behind: float = 0.2) -> float:
        """By how many MiB the line rose above what it was when this share of the time had passed."""
        begun, ended = self.samples[0][0], self.samples[-1][0]
        later = [size for at, size in self.samples if at >= begun + behind * (ended - begun)]
        return max(later) - later[0]

    def _look(self) -> None:
        while True:
            self.samples.append((time.perf_counter(), self._process.memory_info().rss / _MEBIBYTE))
            if self._over.wait(_EVERY_SECONDS):
                self.samples.append((time.perf_counter(), self._process.memory_info().rss / _MEBIBYTE))
                return
