"""What a child process is asked to do; it imports next to nothing, because every child pays for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def make_call(function_and_argument: tuple[Callable[[Any], Any], Any]) -> Any:
    """Make one call in the child; an async function gets a loop of its own."""
    function, argument = function_and_argument
    answer = function(argument)
    if not hasattr(type(answer), "__await__"):  # of its type: the object itself may do anything when it is asked
        return answer

    import asyncio

    async def finish() -> Any:
        return await answer

    return asyncio.run(finish())
