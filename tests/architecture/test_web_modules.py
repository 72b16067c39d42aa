"""The modules of the pages, the engine's and the applications': text stays text, and nobody else is asked."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
ENGINE = SOURCE / "penstock" / "web" / "static"
FOLDERS = [ENGINE, *sorted(SOURCE.glob("penstock_apps/*/web/static"))]
READS_HTML = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")


def test_nothing_in_the_modules_reads_html_or_asks_another_host() -> None:
    for path in (path for folder in FOLDERS for path in folder.iterdir()):
        text = path.read_text()
        if path.suffix == ".js":
            assert not READS_HTML.search(text), path.name
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, path.name


def test_every_import_of_a_module_is_there() -> None:
    """An application's is served one folder below the engine's, and imports from there or from beside itself."""
    assert len(FOLDERS) > 1
    for folder in FOLDERS:
        for path in folder.glob("*.js"):
            for place, name in re.findall(r"from \"(\.\.?)/([\w.-]+)\"", path.read_text()):
                home = folder if place == "." else ENGINE
                assert (home / name).is_file(), f"{path.name} imports {place}/{name}"
                assert place == "." or folder is not ENGINE
