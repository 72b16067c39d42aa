"""The modules of the pages: text stays text, nobody else is asked, and imports point from pages to the core.

An application's are served one folder below the engine's: they import from beside themselves, or from the engine.
"""

import re
from pathlib import Path

from penstock.lifecycle.states import ItemStatus, JobState

SOURCE = Path(__file__).parents[2] / "src"
STATIC = SOURCE / "penstock" / "web" / "static"
GUESTS = sorted(SOURCE.glob("penstock_apps/*/web/static"))
READS_HTML = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
IMPORT = re.compile(r"from \"(\.[\w./-]+)\"")
LAYERS = ("core", "components", "pages")
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
MODULES = [path for path in FILES if path.suffix == ".js"]
OF_GUESTS = [path for folder in GUESTS for path in sorted(folder.iterdir())]


def test_nothing_in_the_modules_reads_html_or_asks_another_host() -> None:
    for path in (*FILES, *OF_GUESTS):
        text = path.read_text()
        if path.suffix == ".js":
            assert not READS_HTML.search(text), path.name
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, path.name


def test_every_import_of_a_module_is_there_and_points_to_the_core() -> None:
    assert {path.relative_to(STATIC).parts[0] for path in FILES} == set(LAYERS)
    for path in MODULES:
        for address in IMPORT.findall(path.read_text()):
            imported = (path.parent / address).resolve()
            assert imported.is_file(), f"{path.name} imports {address}"
            ours, theirs = (LAYERS.index(each.relative_to(STATIC).parts[0]) for each in (path, imported))
            assert theirs <= ours, f"{path.name} imports {address}"


def test_every_import_of_an_application_is_there() -> None:
    modules = [path for path in OF_GUESTS if path.suffix == ".js"]
    assert modules
    for path in modules:
        for address in IMPORT.findall(path.read_text()):
            home = path.parent if address.startswith("./") else STATIC
            assert (home / address.removeprefix("./").removeprefix("../")).is_file(), f"{path.name} imports {address}"


def test_no_module_has_a_table_of_words_of_its_own() -> None:
    """Words and colours of states come with the page; where states are drawn is the drawing's own."""
    words = {f'"{each.look.word}"' for each in (*JobState, *ItemStatus)}
    for path in MODULES:
        text = path.read_text()
        assert len([word for word in words if word in text]) <= 1, path.name
