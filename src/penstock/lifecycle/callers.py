"""Callers: who asks decides which jobs are visible, and is recorded in the history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.errors import InvalidInput, NotAllowed
from penstock.lifecycle.bounds import CALLER
from penstock.lifecycle.states import Actor, KilledBy

_SHOWN_CHARACTERS = 40


class Visibility(StrEnum):
    """Whose jobs a caller sees."""

    EVERYTHING = "everything"
    GUESTS = "guests"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for something, and the name that the history keeps."""

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

    def acts_for(self, user_id: str | None) -> str | None:
        """The owner of what this caller makes: an owner's own, and for all others whom they name.

        >>> owner("ada").acts_for(None)
        'ada'
        >>> admin("root").acts_for("ada")
        'ada'
        """
        if self.actor is not Actor.OWNER:
            return user_id
        if user_id not in (None, self.id):
            raise NotAllowed(f"{self.id or 'a guest'} may make nothing that is {user_id}'s")
        return self.id

    @property
    def killed_by(self) -> KilledBy:
        """The reason that is recorded when this caller stops a job."""
        return KilledBy.USER if self.actor in (Actor.OWNER, Actor.ADMIN) else KilledBy.SYSTEM


def require_caller(value: object) -> None:
    """Refuse what is no caller, such as a bare name: whether it is an owner's or an admin's is not ours to guess."""
    if not isinstance(value, Caller):
        raise InvalidInput(
            f"the caller is {ascii(value)[:_SHOWN_CHARACTERS]} ({type(value).__name__}); write owner('ann'), "
            "owner(None) for a guest, admin('root') or SYSTEM, all of them from penstock",
            field="caller",
            code="NO_CALLER",
        )


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
