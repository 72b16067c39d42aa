"""What lanes' controllers chose, what they saw and counted, written down every few seconds: the figures people look at.

An application may add gauges of its own to a kind's sample. They are its code: bounded in time and size, and a sample
is written without them where they fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.payloads import JSON, decode, encode
from penstock.operations.samples import Gauges, keep_samples
from penstock.store.engine import Store
from penstock.worker.bounded_call import BoundedCall
from penstock.worker.lane import Lane

_GAUGE_SECONDS = 5.0
_MAX_GAUGE_BYTES = 100_000
_log = structlog.get_logger("penstock.worker")


class LaneSamples:
    """Those of one worker's lanes, which come to the list as they are made."""

    def __init__(
        self, store: Store, worker_name: str, lanes: Sequence[Lane], gauges: Mapping[str, Gauges] | None = None
    ) -> None:
        self._store = store
        self._worker_name = worker_name
        self._lanes = lanes
        self._gauges = {kind: BoundedCall(read, name=f"gauges-{kind}") for kind, read in (gauges or {}).items()}
        self._last_gauges: dict[str, JSON] = {}

    def keep(self) -> None:
        """Write a sample of each kind that had something to do."""
        samples = {
            lane.kind.name: sample for lane in tuple(self._lanes) if (sample := lane.controllers.sample()) is not None
        }
        for kind in samples.keys() & self._gauges.keys():
            self._last_gauges[kind] = self._read_gauges(kind)
        for kind, sample in samples.items():
            sample |= self._counts_of(kind)
        if samples:
            self._store.write(lambda transaction: keep_samples(transaction, self._worker_name, samples), bounded=True)

    def idle_figures(self) -> dict[str, dict[str, JSON]]:
        """How each lane is set now, by its kind: of those that have nothing to do there are no samples."""
        return {
            lane.kind.name: lane.controllers.idle_figures() | self._counts_of(lane.kind.name) for lane in self._lanes
        }

    def _counts_of(self, kind: str) -> dict[str, JSON]:
        """What a kind's lanes have in hand and have counted, and what its application said of itself last."""
        lanes = [lane for lane in self._lanes if lane.kind.name == kind]
        counts: dict[str, JSON] = {
            "held": sum(len(lane.executor.calls_in_hand()) for lane in lanes),
            "abandoned": sum(lane.executor.abandoned for lane in lanes),
            "late_outcomes": sum(lane.late_outcomes for lane in lanes),
            "store_errors": sum(lane.setbacks.store_errors for lane in lanes),
        }
        return counts | ({"gauges": self._last_gauges[kind]} if kind in self._last_gauges else {})

    def _read_gauges(self, kind: str) -> JSON:
        """What an application says of itself; nothing, and a line in the log, where that fails."""
        try:
            return decode(encode(self._gauges[kind](_GAUGE_SECONDS), max_bytes=_MAX_GAUGE_BYTES, at="gauges"))
        except BaseException as error:  # noqa: BLE001 - figures to look at: no sample is lost for want of them
            _log.warning("the gauges of a kind cannot be read", kind=kind, error=describe_error(error))
            return None
