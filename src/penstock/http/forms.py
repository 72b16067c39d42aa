"""Forms that start a job from a page: a route that starts one says so itself, and the pages show what it asks for.

::

    form = StartForm("Count words", fields=(FormField("text", "A text", "text"),))

    @routes.post("/api/texts", openapi_extra=form.extra())
    def count(given: Text, who: Submitting) -> Response: ...
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

_NAME = "x-penstock-start"


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form."""

    name: str
    label: str
    type: Literal["file", "url", "text", "lines", "choice", "columns"] = "text"
    """``lines`` is sent as a list, one text for each line. ``columns`` shows the columns of a chosen table, each with
    a choice of what it is; what somebody chooses is sent as a JSON object."""
    required: bool = True
    hint: str = ""
    accept: str = ""
    """Of files: the endings or media types to offer."""
    multiple: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    """Values with their labels."""
    choices_from: str = ""
    """An address whose list has the choices, by ``id`` and ``name``. Of ``columns`` it takes the file by POST, in a
    part named ``file``, and answers with ``columns`` (``name``, ``choice`` and ``examples`` of each), ``choices`` and
    a ``note`` on how the file is read."""


@dataclass(frozen=True, slots=True)
class StartForm:
    """What a page asks for to start a job, and where it sends that."""

    title: str
    text: str = ""
    fields: tuple[FormField, ...] = ()
    address: str = ""
    """The route's own unless said; ``{name}`` stands for the field of that name."""
    then: str = ""
    """A second address to post to, for what is made first and started afterwards; ``{name}`` stands for a member of
    the first answer."""
    answer: str = "job_id"
    """The member of the last answer that is the job's id."""
    button: str = "Start"
    sample: str = ""
    """An address with a file to try it with."""

    def extra(self) -> dict[str, Any]:
        """For a route's ``openapi_extra``."""
        return {_NAME: asdict(self)}

    @property
    def as_files(self) -> bool:
        """Does it send files, and not JSON?"""
        return any(field.type == "file" for field in self.fields)


def start_forms(document: dict[str, Any]) -> list[StartForm]:
    """The forms in an application's OpenAPI document, in the order of its addresses."""
    forms = []
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if _NAME in operation:
                form = operation[_NAME]
                fields = tuple(
                    FormField(**{**field, "choices": tuple(map(tuple, field["choices"]))}) for field in form["fields"]
                )
                forms.append(StartForm(**{**form, "fields": fields, "address": form["address"] or path}))
    return forms
