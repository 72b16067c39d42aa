"""The types of a kind's payloads, for the type checker alone.

Params, Input and Result have defaults, which :mod:`typing` has from Python 3.13 on; ``typing_extensions`` would take
every process in which handlers run 40 ms to load. So at run time a subscript gives the class itself: ``ItemContext``,
``ItemContext[Params]`` and ``ItemContext[Params, Input]`` are one class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.lifecycle.payloads import JSON

if TYPE_CHECKING:
    from typing import Generic

    from typing_extensions import TypeVar

    Params = TypeVar("Params", default=JSON)
    Input = TypeVar("Input", default=JSON)
    Result = TypeVar("Result", default=JSON)
else:
    Params = Input = Result = JSON

    class Generic:
        """A class that may be subscripted with types, which it does not look at."""

        __slots__ = ()

        def __class_getitem__(cls, _types: Any) -> type:
            return cls


__all__ = ["Generic", "Input", "Params", "Result"]
