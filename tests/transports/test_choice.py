"""Which transport there is, by one setting; what it lacks is said before anything starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigurationError, InvalidInput, LibraryMissing
from penstock.messages import InProcessMessages
from tests.transports.broker import Broker
from tests.transports.conftest import OpenApp, kafka_settings

PATIENCE = 60.0


def test_in_process_is_the_default(open_app: OpenApp) -> None:
    assert isinstance(open_app()._runtime.transport, InProcessMessages)


def test_a_worker_does_not_start_with_half_the_settings(open_app: OpenApp) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_KAFKA_SERVERS names no broker"):
        open_app(transport="kafka").worker()


def test_the_check_reaches_the_broker_and_names_the_topics_it_lacks(
    kafka_broker: Broker, open_app: OpenApp, topic: str
) -> None:
    kafka_broker.create_topics(topic)
    app = open_app(**kafka_settings(kafka_broker))
    app.messages.subscribe(topic)(print)
    assert app.messages.check_transport() == [f"the broker has no topic '{topic}-dead-letters'; create it"]


def test_the_command_says_that_no_broker_answers_and_why(programs: Path, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        kafka = {
            "PENSTOCK_TRANSPORT": "kafka",
            "PENSTOCK_KAFKA_SERVERS": f"127.0.0.1:{nobody.getsockname()[1]}",
        }
        done = subprocess.run(
            [programs / "penstock", "config", "--check"],
            cwd=tmp_path, env={**os.environ, **kafka}, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "all is well" not in done.stdout
    assert "penstock: no broker answers: " in done.stderr
    assert "onnect" in done.stderr, "it says why"
    assert "(BROKER_UNAVAILABLE)" in done.stderr
    assert done.stderr.count("Connection refused") <= 2, "once from the client, and once from us"


def test_without_the_library_the_extra_is_named(open_app: OpenApp, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("penstock.messages.kafka")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(LibraryMissing, match=r"install penstock\[kafka\]"):
        open_app(transport="kafka", kafka_servers=("broker.example:9092",)).worker()


def test_an_unknown_transport_is_refused(open_app: OpenApp) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_TRANSPORT"):
        open_app(transport="pigeons")


@pytest.mark.parametrize("topic", ["", "*", "x" * 256])
def test_what_is_no_topic_cannot_be_subscribed_to(open_app: OpenApp, topic: str) -> None:
    with pytest.raises(InvalidInput, match="topic"):
        open_app().messages.subscribe(topic)(print)


def test_a_broken_hook_does_not_keep_a_sweep_from_the_others(open_app: OpenApp) -> None:
    app = open_app(sweep_seconds=0.05)
    called: list[Any] = []

    def broken() -> None:
        raise RuntimeError("a defect of an application")

    app.system.in_each_sweep(broken)
    app.system.in_each_sweep(lambda: called.append(1))
    with app.working() as worker:
        worker.signals.listen()
        assert worker.signals.wait("swept", timeout=30.0)
    assert called
