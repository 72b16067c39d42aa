"""Fetches the Kafka broker that tests run: Apache's jars, by their coordinates, once, into .tools/kafka.

``make test`` calls it. It says nothing when the jars are there. Maven fetches them from wherever it is configured to;
what came is held to the hashes in tools/kafka.sha256, file by file, and nothing else is kept. Where they cannot be had
it says so and does not fail: the tests that need a broker are then skipped, and the end of their report says so (in
continuous integration they fail instead).

``python -m tools.kafka lock`` writes the hashes again, after a change of the versions below.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
JARS = ROOT / ".tools" / "kafka"
LOCK = Path(__file__).with_suffix(".sha256")
WANTED = (
    ("org.apache.kafka", "kafka_2.13", "4.3.1"),
    ("org.apache.kafka", "kafka-tools", "4.3.1"),
    ("org.slf4j", "slf4j-nop", "1.7.36"),
)
"""The broker, its console tools, and what makes both quiet."""
_ALONE = "kafka-tools"
"""Of what this one needs, the broker brings all that the console tools do; the rest are 46 jars more."""
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SECONDS = 600.0
_TRIES = 3
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
%s
  </dependencies>
</project>
"""
_DEPENDENCY = "    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>%s</dependency>"
_NO_MORE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


class KafkaUnavailable(Exception):
    """There is no broker to be had here; the message says why."""


def locked_hashes() -> dict[str, str]:
    """The hash of each jar, by its name."""
    lines = (line.split() for line in LOCK.read_text().splitlines())
    return {name: digest for digest, name in lines}


def missing_jars(folder: Path = JARS) -> list[str]:
    """The jars that are not there; their hashes were looked at when they were put there."""
    return [name for name in locked_hashes() if not (folder / name).is_file()]


def fetch() -> None:
    """Put the jars into .tools/kafka, all of them or none."""
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-") as directory:
        folder = Path(directory) / "jars"
        _copy_dependencies(folder)
        require_hashes(folder, locked_hashes())
        shutil.rmtree(JARS, ignore_errors=True)
        JARS.parent.mkdir(exist_ok=True)
        shutil.move(folder, JARS)


def require_hashes(folder: Path, hashes: dict[str, str]) -> None:
    """Refuse a folder that has other files than the lock names, or the same names with something else in them."""
    found = {path.name: _digest(path) for path in folder.iterdir()}
    wrong = sorted(name for name in hashes.keys() | found.keys() if hashes.get(name) != found.get(name))
    if wrong:
        raise KafkaUnavailable(f"what Maven brought is not what {LOCK.name} names: {', '.join(wrong)}")


def _copy_dependencies(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("the jars of a Kafka broker are fetched with Maven: apt install maven (Debian's name)")
    pom = folder.parent / "pom.xml"
    dependencies = [
        _DEPENDENCY % (group, name, version, _NO_MORE if name == _ALONE else "") for group, name, version in WANTED
    ]
    pom.write_text(_POM % "\n".join(dependencies))
    command = [maven, "-B", "-q", "-f", str(pom), _GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise KafkaUnavailable(f"Maven took longer than {_SECONDS:g} s") from None
    if done.returncode:
        last = [line for line in done.stdout.splitlines() if "ERROR" in line][:1]
        raise KafkaUnavailable(f"Maven could not fetch the jars of a Kafka broker: {' '.join(last)}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lock() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-kafka-") as directory:
        folder = Path(directory) / "jars"
        _copy_dependencies(folder)
        LOCK.write_text("".join(f"{_digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())))


def main(arguments: list[str]) -> None:
    """Fetch what is missing, or write the lock."""
    if arguments == ["lock"]:
        _lock()
    elif missing_jars():
        print("kafka: fetching the broker that tests run (44 MB, once)", file=sys.stderr)
        for tries_left in reversed(range(_TRIES)):
            try:
                fetch()
                return
            except KafkaUnavailable as error:
                print(f"kafka: {error}{'; trying again' if tries_left else ''}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
