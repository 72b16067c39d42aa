"""tools/kafka: what Maven brings is held to its hashes, file by file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tools.kafka import KafkaUnavailable, locked_hashes, missing_jars, require_hashes

HASHES = {"a.jar": hashlib.sha256(b"a").hexdigest(), "b.jar": hashlib.sha256(b"b").hexdigest()}


def put(folder: Path, **contents: bytes) -> Path:
    for name, content in contents.items():
        (folder / f"{name}.jar").write_bytes(content)
    return folder


def test_what_is_locked_is_taken(tmp_path: Path) -> None:
    require_hashes(put(tmp_path, a=b"a", b=b"b"), HASHES)


@pytest.mark.parametrize(
    ("contents", "wrong"),
    [
        ({"a": b"a"}, "b.jar"),
        ({"a": b"a", "b": b"something else"}, "b.jar"),
        ({"a": b"a", "b": b"b", "c": b"c"}, "c.jar"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, contents: dict[str, bytes], wrong: str) -> None:
    with pytest.raises(KafkaUnavailable, match=f": {wrong}$"):
        require_hashes(put(tmp_path, **contents), HASHES)


def test_the_lock_names_the_broker_and_its_tools(tmp_path: Path) -> None:
    names = locked_hashes()
    assert {name.rpartition("-")[0] for name in names} >= {"kafka_2.13", "kafka-tools", "kafka-clients", "slf4j-nop"}
    assert all(len(digest) == 64 for digest in names.values())
    assert missing_jars(tmp_path) == list(names)
