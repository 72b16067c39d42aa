"""The page of exceptions and codes, from :mod:`penstock.errors` and the table in ``error_codes``."""

from __future__ import annotations

import inspect

from penstock import errors
from penstock.errors import PenstockError
from penstock_apps.catalogs.failures import PhotoFailure
from penstock_apps.documents.reading.failures import DocumentFailure
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.photos.failures import PictureFailure
from tools.reference.error_codes import OF_CALLS, OF_HTTP, OF_THE_COMMAND_LINE, OF_THE_DEMONSTRATION, ON_JOBS
from tools.reference.markdown import code, document, fenced, first_sentence, table


def page() -> str:
    """docs/reference/errors.md."""
    return document(
        "Errors",
        "Every error Penstock raises has a `message` for a person and a stable `code` for a program. What is left on a "
        "job or an item is the same two, as `last_error` and `error_code`.",
        "## Exceptions",
        fenced("\n".join(_tree(PenstockError)), "text"),
        table(
            ("class", "code", "meaning"),
            ((code(one.__name__), code(one.code), first_sentence(one.__doc__)) for one in classes()),
        ),
        "Raise `Retryable`, `Permanent`, `NotFound` or `Skip` in a handler to say how its item ends; each takes "
        "a `code` of your own, of at most 64 characters. `InvalidInput` has a `field`, `Retryable` a "
        "`retry_after` in seconds.",
        "## Codes on jobs and items",
        "A handler's own codes come on top of these. In a job of many items, an item's code is not the job's: the job "
        "fails only when its plan, its finalize step or its only item does. *By tries* means RETRYABLE while tries are "
        "left and TERMINAL after the last.",
        table(
            ("code", "on", "error_type", "killed_by", "meaning"),
            (
                (code(name), one.where, one.error_type, code(one.killed_by), one.meaning)
                for name, one in sorted(ON_JOBS.items())
            ),
        ),
        "## Codes of the documents app",
        table(
            ("code", "tried again", "meaning"),
            ((code(one.code), "yes" if one.retryable else "no", one.sentence) for one in DocumentFailure),
        ),
        "A document whose reader runs out of memory is `DOCUMENT_TOO_COMPLEX` with `killed_by` oom.",
        "## Codes of the catalogs app",
        table(
            ("code", "tried again", "meaning"),
            ((code(one.code), "yes" if one.retryable else "no", one.sentence) for one in PhotoFailure),
        ),
        "## Codes of the recipes app",
        table(
            ("code", "tried again", "meaning"),
            ((code(one.code), "yes" if one.retryable else "no", one.sentence) for one in PageFailure),
        ),
        "Of photos:",
        table(
            ("code", "tried again", "meaning"),
            ((code(one.code), "yes" if one.retryable else "no", one.sentence) for one in PictureFailure),
        ),
        "A photo that is empty or too large is refused with the same code when it is sent. `PICTURES_IN_LINE` costs no "
        "try. `LIBRARY_MISSING` on a job means that its worker lacks `penstock[recipe-photos]`; it is tried again.",
        "`PARSE_FAILED` is what a parser elsewhere said. A page whose site refuses servers is `fetch_failed` in the "
        "answers of the queue, with the code of this table in the result: its client looks for that word. "
        "`PAGE_TOO_LARGE` is also what a page is that a client sends.",
        "## Codes of refused calls",
        "Where one exception has more than one reason, its `code` says which.",
        table(
            ("code", "exception", "meaning"),
            ((code(name), code(kind), meaning) for name, (kind, meaning) in sorted(OF_CALLS.items())),
        ),
        "## Codes of the HTTP server",
        "The body of every problem has its `code`, a `message` (again as `detail`), the `field` at fault and the "
        "`request_id`. Besides the codes above it may be one of these:",
        table(
            ("code", "status", "meaning"),
            ((code(name), str(status), meaning) for name, (status, meaning) in sorted(OF_HTTP.items())),
        ),
        "## Codes of the command line",
        "Printed in brackets at the end of the line on standard error; the exit code is 2.",
        table(("code", "meaning"), ((code(name), meaning) for name, meaning in sorted(OF_THE_COMMAND_LINE.items()))),
        "Two more are seen only in the demonstration:",
        table(("code", "meaning"), ((code(name), meaning) for name, meaning in sorted(OF_THE_DEMONSTRATION.items()))),
    )


def classes() -> list[type[PenstockError]]:
    """Every class of the tree, in the order of the source."""
    found = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, PenstockError)]
    names = list(vars(errors))
    return sorted(found, key=lambda one: names.index(one.__name__))


def _tree(root: type[PenstockError], indent: str = "") -> list[str]:
    children = [one for one in classes() if one.__base__ is root]
    lines = [root.__name__] if not indent and root is PenstockError else []
    for child in children:
        last = child is children[-1]
        lines.append(f"{indent}{'└──' if last else '├──'} {child.__name__}")
        lines += _tree(child, indent + ("    " if last else "│   "))
    return lines
