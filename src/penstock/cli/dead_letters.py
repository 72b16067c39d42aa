"""``penstock dead-letters``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AsJson

if TYPE_CHECKING:
    from penstock.messages import DeadLetter, DeadLetters

_LONGEST_REASON = 100


def dead_letters(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="The topic they belong to; without it, of all topics.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Write them to their topic again, the oldest first.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Let them go, the oldest first.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="So many at most; a list shows 100 unless it is given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the messages that nobody could take, with the reason; replay or drop them.

    They are in Kafka, in topics called TOPIC-dead-letters. What was replayed or dropped is not listed any more.

    \b
    penstock dead-letters
    penstock dead-letters parse-results --replay
    penstock dead-letters parse-results --drop --limit 1
    """
    from penstock.cli.texts import count_of
    from penstock.errors import InvalidInput

    if replay and drop:
        raise InvalidInput("--replay and --drop contradict each other", field="--drop")
    if (replay or drop) and topic is None:
        raise InvalidInput("say of which topic: TOPIC is missing", field="TOPIC")
    letters = _open()
    if topic is not None and replay:
        print(count_of(letters.replay(topic, limit=limit), "message replayed", "messages replayed"))
    elif topic is not None and drop:
        print(count_of(letters.drop(topic, limit=limit), "message dropped", "messages dropped"))
    else:
        topics = letters.topics() if topic is None else [topic]
        _show([letter for name in topics for letter in letters.waiting(name, limit=limit or 100)], as_json)


def _open() -> DeadLetters:
    from penstock.errors import LibraryMissing
    from penstock.settings import load_settings

    try:
        from penstock.messages import KafkaClient
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        raise LibraryMissing("dead letters are in Kafka, which needs penstock[kafka]: install it") from None
    return KafkaClient(load_settings()).dead_letters()


def _show(letters: list[DeadLetter], as_json: bool) -> None:
    from penstock.cli.as_json import print_lines
    from penstock.cli.screen import add_row, plain_table, print_out
    from penstock.cli.texts import moment, on_one_line

    if as_json:
        print_lines(letter.as_object() for letter in letters)
        return
    if not letters:
        print("no dead letters")
        return
    table = plain_table("at", "first place", "key", "tries", "reason")
    for letter in letters:
        key = (letter.record.key or b"").decode(errors="replace")
        reason = on_one_line(letter.reason, _LONGEST_REASON)
        add_row(
            table,
            [
                moment(letter.put_aside_at),
                on_one_line(letter.first_place),
                on_one_line(key, 40),
                str(letter.tries),
                reason,
            ],
        )
    print_out(table)
