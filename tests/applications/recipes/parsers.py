"""The shipped parser, in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock import load_settings
from penstock_apps.recipes.parser import Parser
from tests.applications.recipes.conftest import Kitchen

PATIENCE = 60.0


@contextmanager
def parsing(kitchen: Kitchen) -> Iterator[None]:
    """A parser that knows the broker of a kitchen, and not its database."""
    known = {name: getattr(kitchen.app.settings, name) for name in ("kafka_servers", "kafka_group")}
    parser = Parser(load_settings(**known), kitchen.recipes.settings)
    stop = threading.Event()
    thread = threading.Thread(target=parser.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
        parser.close()
    assert not thread.is_alive(), "the parser did not stop"
