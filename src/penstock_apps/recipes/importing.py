"""Coming from the old queue: its table ``recipe_parse_jobs``, brought over with ids, statuses and results.

What is over keeps its times; what waited or ran there is submitted here, under its old id. A row that is here already
is left alone, so it can be run again: after a crash, or for what the old queue took in meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from penstock import SYSTEM, InvalidInput, JobNotFound, JobState, PastJob, Penstock
from penstock_apps.recipes.addresses import key_of, normalized
from penstock_apps.recipes.repository import old_rows
from penstock_apps.recipes.service import KIND

_OVER = {
    "COMPLETE": JobState.SUCCEEDED,
    "ERROR": JobState.FAILED,
    "CANCELED": JobState.CANCELED,
    "COMMITTED": JobState.COMMITTED,
    "ABANDONED": JobState.ABANDONED,
}
_OPEN = ("PENDING", "RUNNING")


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """Whose a row is: what a column says, or always the same; nobody's where neither is given."""

    column: str = "user_id"
    always: str | None = None

    def owner_of(self, row: Mapping[str, Any]) -> str | None:
        """The owner, as far as the rule knows."""
        said = row.get(self.column)
        return self.always if said is None else str(said)[:255]


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of it."""

    read: int
    brought: int
    known: int
    refused: Mapping[str, str]
    """Rows that cannot be brought over, by their ids, and why."""


def bring_over(app: Penstock, source_url: str, rule: OwnerRule) -> Imported:
    """Bring the old queue's jobs over."""
    counts: Counter[str] = Counter()
    refused: dict[str, str] = {}

    def over() -> Iterator[PastJob]:
        for row in old_rows(source_url):
            counts["read"] += 1
            try:
                past = _past(row, rule)
                if past is not None:
                    counts["over"] += 1
                    yield past
                else:
                    counts["brought" if _submitted(app, row, rule) else "known"] += 1
            except InvalidInput as error:
                refused[str(row["id"])] = error.message

    brought = app.import_job(KIND, over())
    return Imported(counts["read"], counts["brought"] + brought, counts["known"] + counts["over"] - brought, refused)


def _past(row: Mapping[str, Any], rule: OwnerRule) -> PastJob | None:
    """A row whose work is over; None of one that has to be worked on."""
    status = str(row["status"]).upper()
    if status in _OPEN:
        return None
    if status not in _OVER:
        raise InvalidInput(f"its status is {row['status']!r}, which the old queue did not have", field="status")
    params = _params(row)
    decided = next((row[name] for name in ("committed_at", "abandoned_at", "canceled_at") if row.get(name)), None)
    return PastJob(
        id=_id(row),
        state=_OVER[status],
        owner=rule.owner_of(row),
        params=params,
        created_at=_moment(row["created_at"]) or datetime.now(UTC),
        started_at=_moment(row.get("started_at")),
        completed_at=_moment(row.get("completed_at")),
        decided_at=_moment(decided or row.get("updated_at")),
        result=_json(row.get("result_json")),
        error=row.get("error_message"),
        error_code=row.get("error_code"),
        unique_key=params["url_hash"],
    )


def _submitted(app: Penstock, row: Mapping[str, Any], rule: OwnerRule) -> bool:
    """Let a row be worked on here; False when it is here already."""
    job_id = _id(row)
    try:
        app.get(job_id, by=SYSTEM)
    except JobNotFound:
        params = _params(row)
        if params["url_hash"] is None:
            raise InvalidInput(f"it waits for a page and has no address ({row.get('job_type')})", field="url") from None
        app.submit(KIND, params, owner=rule.owner_of(row), job_id=job_id)
        return True
    return False


def _params(row: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for there. An address we would refuse is kept as it is, and has no key."""
    url = row.get("url")
    try:
        url = None if url is None else normalized(url)
        url_hash = None if url is None else key_of(url)
    except InvalidInput:
        url_hash = None
    return {
        "url": url,
        "url_hash": url_hash,
        "use_llm_fallback": bool(row.get("use_llm_fallback", True)),
        "job_type": str(row.get("job_type") or "url"),
        "imported": True,
    }


def _id(row: Mapping[str, Any]) -> UUID:
    """The old id; one that is no UUID gets one that is always the same."""
    try:
        return UUID(str(row["id"]))
    except ValueError:
        return uuid5(NAMESPACE_URL, f"recipe_parse_jobs:{row['id']}")


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _json(value: Any) -> Any:
    """A result as the old table had it: JSON, or the text of it."""
    if isinstance(value, str | bytes):
        try:
            return orjson.loads(value)
        except ValueError:
            return value if isinstance(value, str) else None
    return value
