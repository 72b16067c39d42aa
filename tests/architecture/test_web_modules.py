"""The modules of the pages: text stays text, and nobody else is asked."""

import re
from pathlib import Path

import penstock.web

STATIC = Path(penstock.web.__file__).parent / "static"
READS_HTML = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")


def test_nothing_in_the_modules_reads_html_or_asks_another_host() -> None:
    for path in STATIC.iterdir():
        text = path.read_text()
        if path.suffix == ".js":
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
            ), path.name
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, path.name


def test_every_import_of_a_module_is_there() -> None:
    for path in STATIC.glob("*.js"):
        for name in re.findall(r"from \"\./([\w.-]+)\"", path.read_text()):
            assert (STATIC / name).is_file(), f"{path.name} imports {name}"
