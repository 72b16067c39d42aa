"""An answer that comes in pieces: what a call in a child process yields, read by whoever asked while the child goes on.

The manager of the pool puts pieces into a queue and waits for nobody. When enough of them wait it stops reading from
that child, whose writes then block, and whoever takes the pieces wakes it. So an answer of any length needs the memory
of a few pieces. The time limit of such a call is for each piece: it begins again with every one, and stands still while
nobody takes them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from penstock.errors import Stopped

if TYPE_CHECKING:
    from penstock.runners.process_handle import ChildAnswer

MANY = 4
"""When so many pieces wait, no more are read."""
FEW = 1
"""When so few wait, reading goes on."""


class PieceQueue:
    """The pieces of one answer, between the manager of a pool and whoever reads them."""

    def __init__(self, on_room: Callable[[], None]) -> None:
        self._frames: SimpleQueue[bytes | None] = SimpleQueue()
        self._on_room = on_room
        self._is_held = False

    # For the manager.

    def put(self, frame: bytes) -> None:
        """One more piece has come."""
        self._frames.put(frame)

    def hold(self) -> bool:
        """Do enough pieces wait? Then whoever takes them says when there is room again."""
        if self._frames.qsize() < MANY:
            return False
        self._is_held = True
        if self._frames.qsize() > FEW:
            return True
        self._is_held = False  # all of them were taken meanwhile, and nobody was told to say so
        return False

    def end(self) -> None:
        """No more pieces come."""
        self._frames.put(None)

    # For the reader.

    def get(self) -> bytes | None:
        """The next piece, which is waited for; None at the end."""
        frame = self._frames.get()
        if self._is_held and self._frames.qsize() <= FEW:
            self._is_held = False
            self._on_room()
        return frame


class PieceStream(Iterator[Any]):
    """The values that a call yields; closing it ends the call, and its process with it."""

    def __init__(self, pieces: PieceQueue, future: Future[ChildAnswer]) -> None:
        self._pieces = pieces
        self._future = future
        self._has_ended = False
        future.add_done_callback(lambda _: pieces.end())

    def __next__(self) -> Any:
        """The next value; raises what the call raised, or what ended its process."""
        frame = None if self._has_ended else self._pieces.get()
        if frame is not None:
            return pickle.loads(memoryview(frame)[1:])  # noqa: S301 from our own child
        if not self._has_ended:
            self._has_ended = True
            self._raise_error()
        raise StopIteration

    def close(self) -> None:
        """End the call, if it has not ended."""
        self._future.cancel()

    def _raise_error(self) -> None:
        try:
            _, error = self._future.result().read()
        except CancelledError:
            raise Stopped("stopped before all pieces had come") from None
        if error is not None:
            raise error
