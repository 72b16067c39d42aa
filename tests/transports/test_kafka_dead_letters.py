"""What nobody can take: put aside as it came, listed with the reason, replayed once or dropped."""

from __future__ import annotations

import json
from queue import SimpleQueue
from typing import Any

import pytest

from penstock import Penstock
from penstock.app import Message
from penstock.cli.program import run
from penstock.errors import MessageRefused
from penstock.messages import KafkaClient
from penstock.messages.kafka import consumer as consumer_module
from penstock.store import DatabaseConnection
from tests.transports.broker import Broker
from tests.transports.conftest import OpenApp, kafka_settings
from tests.transports.foreign import reading, write
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("kept_logs")
PATIENCE = 60.0
MAX_BYTES = 2_000


@pytest.fixture
def app(kafka_broker: Broker, open_app: OpenApp, topic: str) -> Penstock:
    """A Penstock that reads small messages."""
    kafka_broker.create_topics(topic, f"{topic}-dead-letters")
    return open_app(**kafka_settings(kafka_broker, kafka_max_message_bytes=MAX_BYTES))


@pytest.fixture
def command(app: Penstock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs ``penstock dead-letters`` with the app's settings; the answer is what it prints."""
    monkeypatch.setenv("PENSTOCK_KAFKA_SERVERS", ",".join(app.settings.kafka_servers))
    monkeypatch.setenv("PENSTOCK_KAFKA_GROUP", app.settings.kafka_group)

    def dead_letters(*arguments: str, code: int = 0) -> str:
        assert run(["dead-letters", *arguments]) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return dead_letters


def heard_by(app: Penstock, topic: str) -> SimpleQueue[Any]:
    heard: SimpleQueue[Any] = SimpleQueue()

    @app.messages.subscribe(topic)
    def apply(message: Message) -> None:
        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        if app.in_transaction(operation):
            heard.put(message.payload)

    return heard


def test_unreadable_records_are_put_aside_as_they_came(app: Penstock, kafka_broker: Broker, topic: str) -> None:
    heard = heard_by(app, topic)
    large, deep = b'"' + b"x" * MAX_BYTES + b'"', b"[" * 900 + b"]" * 900
    write(kafka_broker, topic, b"{", b"\xff\xfe", b"", large, deep, key=b"\xff", from_whom=b"a stranger")
    write(kafka_broker, topic, b'"good"')
    with app.working():
        assert heard.get(timeout=PATIENCE) is not None, "deep, but readable"
        assert heard.get(timeout=PATIENCE) == "good"
    letters = KafkaClient(app.settings).dead_letters().waiting(topic, limit=100)
    assert [letter.record.value for letter in letters] == [b"{", b"\xff\xfe", b"", None]
    assert [letter.reason.partition(":")[0] for letter in letters] == [
        "it is no JSON", "it is no JSON", "it is no JSON",
        "it has 2,002 bytes; at most 2,000 are read (PENSTOCK_KAFKA_MAX_MESSAGE_BYTES)",
    ]  # fmt: skip
    assert {letter.record.key for letter in letters} == {b"\xff"}
    assert {letter.record.header("from-whom") for letter in letters} == {"a stranger"}
    assert [letter.first_place for letter in letters] == [f"{topic}/0@{offset}" for offset in range(4)]


def test_a_replay_has_its_effect_once_even_when_it_is_run_twice(
    app: Penstock, kafka_broker: Broker, topic: str, command: Any
) -> None:
    is_mended = False
    heard: SimpleQueue[Any] = SimpleQueue()

    @app.messages.subscribe(topic)
    def take(message: Message) -> None:
        if message.payload == "bad" and not is_mended:
            raise MessageRefused("not yet")

        def operation(connection: DatabaseConnection) -> bool:
            return app.messages.accept(message, subscriber="tests", connection=connection)

        if app.in_transaction(operation):
            heard.put(message.payload)

    write(kafka_broker, topic, b'"bad"', b'"good"')
    letters = KafkaClient(app.settings).dead_letters()
    with app.working():
        assert heard.get(timeout=PATIENCE) == "good"
        [listed] = command(topic, "--json").splitlines()
        assert json.loads(listed) | {"put_aside_at": 0} == {
            "topic": topic, "first_place": f"{topic}/0@0", "key": None, "value": '"bad"', "reason": "not yet",
            "tries": 0, "put_aside_at": 0,
        }  # fmt: skip
        assert "not yet" in command(topic)
        assert topic in letters.topics()
        is_mended = True
        # The first replay dies before it has noted what it did.
        letters._write_again(letters.waiting(topic, limit=10))
        assert command(topic, "--replay") == "1 message replayed\n"
        assert heard.get(timeout=PATIENCE) == "bad"
        write(kafka_broker, topic, b'"last"')
        assert heard.get(timeout=PATIENCE) == "last"
    assert heard.empty()
    assert command(topic) == "no dead letters\n"


def test_what_fails_again_and_again_is_put_aside(
    app: Penstock, kafka_broker: Broker, topic: str, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_module, "MAX_TRIES", 2)
    heard: SimpleQueue[Any] = SimpleQueue()

    @app.messages.subscribe(topic)
    def take(message: Message) -> None:
        if message.payload == "bad":
            raise RuntimeError("a defect")
        heard.put(message.payload)

    write(kafka_broker, topic, b'"bad"', b'"good"')
    with app.working():
        assert heard.get(timeout=PATIENCE) == "good"
    shown = json.loads(command(topic, "--json"))
    assert (shown["tries"], shown["reason"]) == (2, "it failed 2 times, at last with RuntimeError: a defect")
    assert command(topic, "--drop", "--limit", "1") == "1 message dropped\n"
    assert command(topic) == "no dead letters\n"


def test_without_a_topic_for_dead_letters_nothing_is_lost(kafka_broker: Broker, open_app: OpenApp, topic: str) -> None:
    kafka_broker.create_topics(topic)
    app = open_app(**kafka_settings(kafka_broker))
    heard = heard_by(app, topic)
    write(kafka_broker, topic, b"{", b'"good"')
    with app.working():
        eventually(lambda: topic in kafka_broker.topics())
        kafka_broker.create_topics(f"{topic}-dead-letters")
        assert heard.get(timeout=PATIENCE) == "good"
    with reading(kafka_broker, f"{topic}-dead-letters") as reader:
        assert [record.value() for record in reader.read(1)] == [b"{"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--replay",), "TOPIC is missing"),
        (("some", "--replay", "--drop"), "contradict each other"),
        (("nobodys",), "the broker has no topic 'nobodys-dead-letters'"),
    ],
)
def test_wrong_questions_are_refused_in_words(command: Any, arguments: tuple[str, ...], words: str) -> None:
    assert words in command(*arguments, code=2)
