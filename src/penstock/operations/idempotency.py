"""Idempotency keys: a request that is sent again is answered with what it led to the first time.

A key belongs to its owner, a guest's to the guest's address. It is kept with a digest of the request, so that another
request under the same key is refused and not answered with somebody's old job. The row is the first thing a submission
writes: of two requests with one key at the same instant the second waits here for the first, and finds its job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

import orjson

from penstock.errors import InvalidInput
from penstock.lifecycle.payloads import JSON, decode, encode
from penstock.store.queries import idempotency as queries
from penstock.store.transaction import Transaction

_ANY_SIZE = 2**62


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key as it is kept, with the request it stands for."""

    text: str
    digest: str
    request: str

    @classmethod
    def of(cls, text: str, request: JSON, *, owner: str | None, guest: str | None) -> Key:
        """A caller's key: callers are told apart by their name, guests by their address."""
        whose = [owner] if owner is not None or guest is None else [None, guest]
        digest = sha256(orjson.dumps([*whose, text])).hexdigest()
        return cls(text, digest, request_digest(request))


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What the first request with a key has led to."""

    job_id: UUID | None = None
    resource_id: UUID | None = None


def request_digest(request: JSON) -> str:
    """The same for requests that say the same, in whatever order their members are."""
    plain = decode(encode(request, max_bytes=_ANY_SIZE, at="request"))
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def take_key(
    transaction: Transaction, key: Key, *, job_id: UUID | None = None, resource_id: UUID | None = None
) -> KeyUse | None:
    """Take a key for a request; None when it was free, otherwise what it has led to.

    A key that was used for another request is refused.
    """
    while True:
        if queries.take_key(transaction, key.digest, key.request, job_id=job_id, resource_id=resource_id):
            return None
        row = queries.used_key(transaction, key.digest)
        if row is not None:
            break
        old_job_id = queries.job_with_key(transaction, key.digest)
        if old_job_id is not None:
            return KeyUse(job_id=old_job_id)
        # It was pruned between the two looks: now it is free.
    # Keys that were brought over from older versions do not say what for.
    if row.request is not None and row.request != key.request:
        raise InvalidInput(
            f"idempotency key {key.text!r} was used for another request; send a new request with a new key",
            field="idempotency_key",
            code="IDEMPOTENCY_KEY_REUSED",
        )
    return KeyUse(row.job_id, row.resource_id)


def point_key(transaction: Transaction, key: Key, job_id: UUID) -> None:
    """The request was answered with this job."""
    queries.point_key(transaction, key.digest, job_id)
