"""The list of error codes in tools/reference/error_codes.py is neither too long nor too short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from penstock import __all__ as names_at_the_root
from penstock.ingest import SourceSettings
from penstock.lifecycle import __all__ as names_of_the_lifecycle
from penstock.lifecycle.states import ItemStatus
from penstock.settings import Settings
from penstock_apps.catalogs.failures import PhotoFailure
from penstock_apps.documents.reading.failures import DocumentFailure
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.photos.failures import PictureFailure
from tools.reference.error_codes import OF_CALLS, OF_HTTP, OF_THE_COMMAND_LINE, OF_THE_DEMONSTRATION, ON_JOBS
from tools.reference.errors import classes
from tools.reference.settings import settings_of_applications, variables_of

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")

# Words in capitals with an underscore that are no codes: other programs' variables and messages.
NO_CODES = {"AF_UNIX", "LC_ALL", "NO_COLOR", "XML_PARSE_HUGE", "MAX_BYTES", "QUEUE_LIMIT", "WAIT_LIMIT"}
NO_CODES |= {str(field.validation_alias) for field in Settings.model_fields.values()}
NO_CODES |= set(variables_of(SourceSettings))
NO_CODES |= {variable for settings in settings_of_applications().values() for variable in variables_of(settings)}
NO_CODES |= {"LARGEST_ANSWER", "NO_DELIMITER"}
NO_CODES |= {*names_at_the_root, *names_of_the_lifecycle}


def codes_in_source() -> dict[str, str]:
    """Every code that src has, and one place where."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for one in _codes(node):
                found.setdefault(str(one.value), f"{path.relative_to(ROOT)}:{one.lineno}")
    return found


def _codes(node: ast.AST) -> Iterator[ast.Constant]:
    """What is called a code, whatever it looks like, and what looks like one, whatever it is called."""
    match node:
        case ast.keyword(arg="code", value=ast.Constant(value=str()) as value):
            yield value
        case ast.Assign(targets=[ast.Name(id="code" | "_CODE")], value=ast.Constant(value=str()) as value):
            yield value
        case ast.Call(func=ast.Name(id="_refuse"), args=[_, ast.Constant(value=str()) as value]):
            yield value
        case ast.Constant(value=str() as text) if "_" in text and CODE.fullmatch(text) and text not in NO_CODES:
            yield node


def documented_codes() -> set[str]:
    return {
        *ON_JOBS,
        *OF_CALLS,
        *OF_HTTP,
        *OF_THE_COMMAND_LINE,
        *OF_THE_DEMONSTRATION,
        *(one.code for one in classes()),
        *(one.code for one in DocumentFailure),
        *(one.code for one in PhotoFailure),
        *(one.code for one in PageFailure),
        *(one.code for one in PictureFailure),
        "PARSE_FAILED",
    }


def test_every_code_in_the_source_is_documented():
    missing = {code: place for code, place in codes_in_source().items() if code not in documented_codes()}
    assert not missing, f"not in tools/reference/error_codes.py (nor in NO_CODES of this test): {missing}"


def test_every_documented_code_is_in_the_source():
    known = codes_in_source()
    assert ItemStatus.NOT_FOUND in known  # the code of NotFound, and a status of items
    gone = {code for code in documented_codes() if code not in known}
    assert not gone, f"in tools/reference/error_codes.py, but nowhere in src: {sorted(gone)}"


def test_a_code_has_one_place_in_the_list():
    listed = [*ON_JOBS, *OF_CALLS, *OF_HTTP, *OF_THE_COMMAND_LINE, *OF_THE_DEMONSTRATION]
    assert len(set(listed)) == len(listed)
