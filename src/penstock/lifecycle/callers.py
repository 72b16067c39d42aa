"""Who asks: it decides which jobs are seen, and it is what the history remembers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.lifecycle.bounds import CALLER
from penstock.lifecycle.states import Actor, KilledBy


class Visibility(StrEnum):
    """Whose jobs somebody sees."""

    EVERYTHING = "everything"
    GUESTS = "guests"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Caller:
    """Someone who asks for something, and the name the history keeps."""

    actor: Actor
    id: str | None = None

    def __post_init__(self) -> None:
        if self.id is not None:
            CALLER.require(self.id)

    @property
    def sight(self) -> Visibility:
        """An owner sees their own jobs, a guest those of guests, everyone else all."""
        if self.actor is not Actor.OWNER:
            return Visibility.EVERYTHING
        return Visibility.GUESTS if self.id is None else Visibility.OWN

    @property
    def killed_by(self) -> KilledBy:
        """What a stop by this caller is put down to."""
        return KilledBy.USER if self.actor in (Actor.OWNER, Actor.ADMIN) else KilledBy.SYSTEM


SYSTEM = Caller(Actor.SYSTEM)
"""Penstock itself, and programs that use it without a user."""


def owner(user_id: str | None) -> Caller:
    """A user, who sees and changes only what is theirs (None: a guest)."""
    return Caller(Actor.OWNER, user_id)


def admin(user_id: str | None = None) -> Caller:
    """Someone who may see and stop everything."""
    return Caller(Actor.ADMIN, user_id)


def worker(name: str) -> Caller:
    """A worker process."""
    return Caller(Actor.WORKER, name)
