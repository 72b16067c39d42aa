"""How many rows one INSERT carries: small at first, doubling until the database slows down.

The doubling stops at a soft limit (latency, a wait for a connection, an error) and never passes the hard ones (rows,
bytes). Two latencies make the soft limit: above the lower one the batch stops growing, above the upper one it halves.
The gap between them is the hysteresis: a batch that settles there is left alone.

Once a limit was met at some size, doubling resumes only up to half of that size and goes on by quarters, so that the
batch comes back quickly but does not jump over the limit again and again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock.errors import ConfigurationError
from penstock.lifecycle.retry import Backoff

_SMOOTHING = 0.4
_SETTLE = 3
"""Good batches after a shrink before the next growth: one hiccup is one shrink, and its echo is not taken for calm."""


@dataclass(frozen=True, slots=True)
class IngestSample:
    """How one batch went: its rows, the time in the database, the wait for a connection, and whether it failed."""

    rows: int
    elapsed_ms: float
    pool_wait_ms: float = 0.0
    failed: bool = False


class IngestBatch:
    """The rows of the next batch.

    >>> batch = IngestBatch()
    >>> batch.setting, batch.observe(IngestSample(rows=64, elapsed_ms=4.0))
    (64, 128)
    >>> batch.observe(IngestSample(rows=128, elapsed_ms=9.0, pool_wait_ms=2.0))
    96
    >>> batch.rows_for(average_row_bytes=1024 * 1024)
    8
    """

    def __init__(
        self,
        *,
        min_rows: int = 64,
        max_rows: int = 5_000,
        max_batch_bytes: int = 8 * 1024 * 1024,
        p50_ms: float = 250.0,
        p95_ms: float = 1000.0,
        backoff: Backoff | None = None,
    ) -> None:
        if not 1 <= min_rows <= max_rows:
            raise ConfigurationError(
                f"INGEST_MIN_ROWS is {min_rows} and INGEST_MAX_ROWS is {max_rows}; write 1 <= least <= most"
            )
        if not 0 < p50_ms < p95_ms:
            raise ConfigurationError(f"DB_P50_MS is {p50_ms} and DB_P95_MS is {p95_ms}; write 0 < p50 < p95")
        if max_batch_bytes < 1:
            raise ConfigurationError(f"INGEST_MAX_BATCH_BYTES is {max_batch_bytes}; write at least 1")
        self._min_rows = min_rows
        self._max_rows = max_rows
        self._max_batch_bytes = max_batch_bytes
        self._p50_ms = p50_ms
        self._p95_ms = p95_ms
        self._backoff = backoff or Backoff(first=0.1, factor=2.0, max_seconds=30.0)
        self._setting = min_rows
        self._latency: float | None = None
        self._double_up_to = max_rows
        self._settling = 0
        self._failures = 0

    @property
    def setting(self) -> int:
        """Rows of the next batch, as long as they are light enough; see ``rows_for``."""
        return self._setting

    @property
    def latency_ms(self) -> float | None:
        """The smoothed latency of a batch of the present size; None until something is known."""
        return self._latency

    def rows_for(self, average_row_bytes: float) -> int:
        """Rows of the next batch when a row weighs so much; heavy rows may take it below the least number of rows."""
        if average_row_bytes <= 0:
            return self._setting
        return max(1, min(self._setting, int(self._max_batch_bytes / average_row_bytes)))

    def pause(self, chance: random.Random) -> float:
        """Seconds to wait before the next try: nothing after a good batch, longer after each failure in a row."""
        return self._backoff.delay(self._failures, chance=chance) if self._failures else 0.0

    def observe(self, sample: IngestSample) -> int:
        """Take in one batch; the answer is the rows of the next."""
        if sample.failed:
            self._failures += 1
            self._shrink(0.25)
            return self._setting
        self._failures = 0
        if sample.rows <= 0:
            return self._setting
        self._remember(sample.elapsed_ms)
        latency = self._latency or 0.0
        if latency > self._p95_ms:
            self._shrink(0.5)
        elif sample.pool_wait_ms > 0:
            self._shrink(0.75)
        elif self._settling > 0:
            self._settling -= 1
        elif latency <= self._p50_ms and sample.rows >= self._setting:
            # A batch that was not full says nothing about a larger one.
            self._grow()
        return self._setting

    def _remember(self, elapsed_ms: float) -> None:
        if self._latency is None:
            self._latency = elapsed_ms
        else:
            self._latency += _SMOOTHING * (elapsed_ms - self._latency)

    def _shrink(self, factor: float) -> None:
        self._double_up_to = max(self._min_rows, self._setting // 2)
        self._settling = _SETTLE
        self._change(int(self._setting * factor))

    def _grow(self) -> None:
        twice = self._setting * 2
        if twice <= self._double_up_to or self._double_up_to == self._max_rows:
            self._change(twice)
        else:
            self._change(self._setting + max(1, self._setting // 4))

    def _change(self, rows: int) -> None:
        before = self._setting
        self._setting = max(self._min_rows, min(rows, self._max_rows))
        if self._latency is not None:
            # What was seen belongs to the size before; until the next batch, the best guess is proportional.
            self._latency *= self._setting / before
