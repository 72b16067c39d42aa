"""What the Kafka client logs, without its repetitions: while a broker is away it says so many times a second."""

from __future__ import annotations

import logging
import threading
from time import monotonic

_SECONDS = 60.0


class Repetitions:
    """Which texts were told within the last minute."""

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_new(self, text: str) -> bool:
        """Was it not told within the last minute? From now on it was."""
        now = monotonic()
        with self._lock:
            if now - self._told_at.get(text, float("-inf")) <= _SECONDS:
                return False
            self._told_at = {line: at for line, at in self._told_at.items() if now - at <= _SECONDS}
            self._told_at[text] = now
            return True


class _NewLines(logging.Filter):
    """Lets a line pass once a minute; how long each try took makes it no other line."""

    def __init__(self) -> None:
        super().__init__()
        self._repetitions = Repetitions()

    def filter(self, record: logging.LogRecord) -> bool:
        return self._repetitions.is_new(record.getMessage().partition(" (after ")[0])


client_log = logging.getLogger("penstock.kafka.client")
client_log.addFilter(_NewLines())
