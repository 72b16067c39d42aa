"""tools/packages: silent where the programs are, careful where one is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "packages"
NEEDED = ("sh", "env")
OTHERS = {"sqlite3": "sqlite3", "mvn": "maven"}
"""What the tests need beside a browser, and the packages that bring it."""


class Machine:
    """A PATH with as few programs as the tool needs, and those a test puts there."""

    def __init__(self, directory: Path) -> None:
        self.programs = directory / "some programs"
        self.programs.mkdir()
        self.log = directory / "log"
        for name in NEEDED:
            (self.programs / name).symlink_to(shutil.which(name) or name)

    def put(self, name: str, script: str = "exit 0") -> None:
        """A program that writes its arguments down."""
        program = self.programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.log}"\n{script}\n')
        program.chmod(0o755)

    def run(self, **variables: str) -> str:
        """What the tool says; it never fails."""
        environment = {"PATH": str(self.programs), **variables}
        done = subprocess.run([TOOL], env=environment, capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout == ""
        return done.stderr

    @property
    def asked(self) -> list[str]:
        """The calls of the programs a test put there."""
        return [line for line in self.log.read_text().splitlines() if not line.startswith("id")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One that lacks a browser alone."""
    made = Machine(tmp_path)
    for name in OTHERS:
        made.put(name)
    return made


INSTALL = "-qq install -y --no-install-recommends chromium-headless-shell fonts-dejavu-core"


@pytest.mark.parametrize("name", ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"])
def test_it_says_nothing_where_there_is_a_browser(machine: Machine, name: str) -> None:
    machine.put(name)
    machine.put("id", "echo 0")
    machine.put("apt-get")
    assert machine.run() == ""
    assert not machine.log.exists(), "nothing was asked of anybody"


def test_a_browser_may_be_named(machine: Machine, tmp_path: Path) -> None:
    machine.put("my browser")
    assert machine.run(PENSTOCK_TEST_BROWSER=str(machine.programs / "my browser")) == ""
    assert "are not here" in machine.run(PENSTOCK_TEST_BROWSER=str(tmp_path / "none"))


def test_it_says_what_to_install_where_it_cannot(machine: Machine) -> None:
    said = machine.run()
    assert said.count("\n") == 1
    assert "apt install chromium-headless-shell fonts-dejavu-core" in said


def test_root_installs(machine: Machine) -> None:
    machine.put("id", "echo 0")
    machine.put(
        "apt-get", f'"{shutil.which("ln")}" -s "{shutil.which("true")}" "{machine.programs}/chromium-headless-shell"'
    )
    assert machine.run() == "packages: installing chromium-headless-shell fonts-dejavu-core for the tests\n"
    assert machine.asked == [f"apt-get {INSTALL}"]


def test_the_lists_are_fetched_when_those_at_hand_do_not_do(machine: Machine) -> None:
    machine.put("id", "echo 0")
    machine.put("apt-get", '[ "$2" = update ] || exit 100')
    assert "are not here" in machine.run()
    assert machine.asked == [f"apt-get {INSTALL}", "apt-get -qq update", f"apt-get {INSTALL}"]


def test_somebody_else_needs_sudo_without_a_password(machine: Machine) -> None:
    machine.put("id", "echo 1000")
    machine.put("apt-get")
    machine.put("sudo", "exit 1")
    assert "installing" not in machine.run()
    machine.put("sudo")
    assert "installing" in machine.run()
    assert f"sudo -n env DEBIAN_FRONTEND=noninteractive apt-get {INSTALL}" in machine.asked


@pytest.mark.parametrize("name", OTHERS)
def test_only_what_is_missing_is_installed(machine: Machine, name: str) -> None:
    machine.put("chromium")
    (machine.programs / name).unlink()
    machine.put("id", "echo 0")
    machine.put("apt-get")
    assert f"apt install {OTHERS[name]} " in machine.run()
    assert machine.asked[0] == f"apt-get -qq install -y --no-install-recommends {OTHERS[name]}"
