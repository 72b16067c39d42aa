"""Log lines, set up in this one place: for eyes on a terminal, JSON a line everywhere else, always on stderr.

Lines of the standard library's ``logging`` (a handler's, a driver's) take the same way as our own. Whatever they say
and whatever traceback they have, the passwords and keys of addresses in it are left out.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from penstock.redaction import hide_secrets


def configure_logs(level: str, *, stream: TextIO | None = None) -> None:
    """Send every log line of at least ``level`` (a name such as ``INFO``) to ``stream``, or else to stderr."""
    out = sys.stderr if stream is None else stream
    least = logging.getLevelNamesMapping()[level.upper()]
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.PositionalArgumentsFormatter(), *before],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(out)],
        )
    )
    logging.basicConfig(handlers=[handler], level=least, force=True)
    # Alembic announces each migration at INFO, and the embedded database is looked at on every start.
    logging.getLogger("alembic").setLevel(max(least, logging.WARNING))
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(least),
        cache_logger_on_first_use=False,
    )


def hand_to_logging() -> None:
    """Inside somebody's program: give our lines to the standard library's ``logging``, unless structlog is set up.

    Left alone, structlog would print them all to standard output.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.processors.format_exc_info, _as_sentence],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _as_sentence(_logger: object, _method: str, event: EventDict) -> str:
    """The message, and behind it what belongs to it."""
    message = event.pop("event", "")
    return hide_secrets(" ".join([str(message), *(f"{name}={value!r}" for name, value in event.items())]))


def _hide_secrets(_logger: object, _method: str, event: EventDict) -> EventDict:
    """What an event says, without secrets; before it is written as JSON, whose quotes must stay in pairs."""
    return {name: _without_secrets(value) for name, value in event.items()}


def _without_secrets(value: object) -> object:
    if isinstance(value, str):
        return hide_secrets(value)
    if value is None or isinstance(value, int | float):
        return value
    text = str(value) if isinstance(value, BaseException) else repr(value)
    safe_text = hide_secrets(text)
    return value if safe_text == text else safe_text


def _rendering(out: TextIO) -> list[Processor]:
    if out.isatty():
        # structlog's own choice of traceback prints the variables of every frame: secrets among them, for seconds.
        plain = structlog.dev.plain_traceback
        renderer: Processor = structlog.dev.ConsoleRenderer(
            colors="NO_COLOR" not in os.environ, exception_formatter=plain
        )
    else:
        renderer = structlog.processors.JSONRenderer()
    return [structlog.processors.format_exc_info, _hide_secrets, renderer]
