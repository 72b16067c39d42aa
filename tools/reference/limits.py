"""The page of bounds, from :mod:`penstock.lifecycle.bounds`."""

from __future__ import annotations

from penstock.lifecycle.bounds import CODE, CUT, NUMBERS, TEXTS
from tools.reference.markdown import code, document, table


def page() -> str:
    """docs/reference/limits.md."""
    return document(
        "Limits",
        "How long names and keys may be, and how large numbers. They are the same on every database: what does not fit "
        f"is refused before a database sees it, with the code {code(CODE)} and the field. A call raises "
        "`InvalidInput`, the registration of a kind `ConfigurationError`. They are in "
        "`src/penstock/lifecycle/bounds.py`, and the columns take their lengths from there.",
        "## Texts",
        "In characters; none may be empty, or have the character NUL or a lone surrogate.",
        table(
            ("field", "at most", "what it is"), ((code(one.field), f"{one.longest:,}", one.meaning) for one in TEXTS)
        ),
        "## Whole numbers",
        table(
            ("field", "from", "to", "what it is"),
            ((code(one.field), f"{one.minimum:,}", f"{one.maximum:,}", one.meaning) for one in NUMBERS),
        ),
        "## What is cut",
        "A job is not refused for these, nor does an item fail for them: what is longer is cut.",
        table(("field", "kept", "what it is"), ((code(name), f"{most:,}", what) for name, (most, what) in CUT.items())),
        "## Elsewhere",
        "Params, inputs, results and messages: `PENSTOCK_MAX_PAYLOAD_BYTES`, and [what JSON can "
        "keep](../explanation/payloads.md). Requests, uploads and tables: [settings](settings.md). Durations: 0 to "
        "10,000,000,000 seconds. How long a job may wait and run: [whose limits "
        "hold](../how-to/write-a-kind.md#limits).",
    )
