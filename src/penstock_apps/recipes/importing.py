"""Import from the old queue: its table ``recipe_parse_jobs``, with ids, statuses and results.

What is over keeps its times; what waited or ran there is submitted here, under its old id. A row that is here already
is left alone, so it can be run again: after a crash, or for what the old queue took in meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from penstock import SYSTEM, JobState, Penstock
from penstock.app import PastJob
from penstock.errors import InvalidInput, JobNotFound
from penstock.lifecycle import JSON
from penstock_apps.recipes.addresses import key_of, normalize_url
from penstock_apps.recipes.kinds import RECIPE
from penstock_apps.recipes.payloads import RecipeParams, work_key
from penstock_apps.recipes.repository import old_rows

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
    """Whose a row is: the user a column names, or always the same; nobody's without either."""

    column: str = "user_id"
    always: str | None = None

    def owner_of(self, row: Mapping[str, JSON]) -> str | None:
        """The owner, as far as the rule knows."""
        name = row.get(self.column)
        return self.always if name is None else str(name)[:255]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many rows there were, and what became of them."""

    read_count: int
    imported_count: int
    known_count: int
    refusals: Mapping[str, str]
    """Rows that cannot be imported, by their ids, and why."""


def import_old_jobs(app: Penstock, source_url: str, rule: OwnerRule) -> ImportReport:
    """Import the old queue's jobs."""
    counts: Counter[str] = Counter()
    refusals: dict[str, str] = {}

    def past_jobs() -> Iterator[PastJob]:
        for row in old_rows(source_url):
            counts["read"] += 1
            try:
                past = _past_job(row, rule)
                if past is not None:
                    counts["past"] += 1
                    yield past
                else:
                    counts["submitted" if _submit(app, row, rule) else "known"] += 1
            except InvalidInput as error:
                refusals[str(row["id"])] = error.message

    imported_count = app.system.import_jobs(RECIPE, past_jobs())
    return ImportReport(
        counts["read"],
        counts["submitted"] + imported_count,
        counts["known"] + counts["past"] - imported_count,
        refusals,
    )


def _past_job(row: Mapping[str, JSON], rule: OwnerRule) -> PastJob | None:
    """A row whose work is over; None of one that has to be worked on."""
    status = str(row["status"]).upper()
    if status in _OPEN:
        return None
    if status not in _OVER:
        raise InvalidInput(f"its status is {row['status']!r}, which the old queue did not have", field="status")
    params = _old_params(row)
    decided_at = next((row[name] for name in ("committed_at", "abandoned_at", "canceled_at") if row.get(name)), None)
    return PastJob(
        id=_id(row),
        state=_OVER[status],
        owner=rule.owner_of(row),
        params=params,
        created_at=_moment(row["created_at"]) or datetime.now(UTC),
        started_at=_moment(row.get("started_at")),
        completed_at=_moment(row.get("completed_at")),
        decided_at=_moment(decided_at or row.get("updated_at")),
        result=_json(row.get("result_json")),
        error=row.get("error_message"),
        error_code=row.get("error_code"),
        unique_key=_work_key(params),
    )


def _submit(app: Penstock, row: Mapping[str, JSON], rule: OwnerRule) -> bool:
    """Let a row be worked on here; False when it is here already."""
    job_id = _id(row)
    try:
        app.acting_as(SYSTEM).jobs.get(job_id)
    except JobNotFound:
        old = _old_params(row)
        if old["url"] is None or old["url_hash"] is None:
            raise InvalidInput(f"it waits for a page and has no address ({row.get('job_type')})", field="url") from None
        params = RecipeParams(
            url=old["url"],
            url_hash=old["url_hash"],
            use_llm_fallback=old["use_llm_fallback"],
            job_type=old["job_type"],
            imported=True,
        )
        app.acting_as(SYSTEM).submit(RECIPE, params, owner=rule.owner_of(row), job_id=job_id)
        return True
    return False


class _OldParams(TypedDict):
    """The params of a job of the old queue; one that asked for no page has no address."""

    url: str | None
    url_hash: str | None
    use_llm_fallback: bool
    job_type: str
    imported: bool


def _old_params(row: Mapping[str, JSON]) -> _OldParams:
    """What was asked for there. An address we would refuse is kept too, and has no key."""
    url = None if row.get("url") is None else str(row["url"]).strip()
    try:
        url_hash = None if url is None else key_of(normalize_url(url))
    except InvalidInput:
        url_hash = None
    return {
        "url": url,
        "url_hash": url_hash,
        "use_llm_fallback": bool(row.get("use_llm_fallback", True)),
        "job_type": str(row.get("job_type") or "url"),
        "imported": True,
    }


def _work_key(params: _OldParams) -> str | None:
    url_hash = params["url_hash"]
    return None if url_hash is None else work_key(url_hash, use_llm_fallback=params["use_llm_fallback"])


def _id(row: Mapping[str, JSON]) -> UUID:
    """The old id; one that is no UUID gets one that is always the same."""
    try:
        return UUID(str(row["id"]))
    except ValueError:
        return uuid5(NAMESPACE_URL, f"recipe_parse_jobs:{row['id']}")


def _moment(value: JSON) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _json(value: JSON) -> JSON:
    """A result as the old table had it: JSON, or the text of it."""
    if isinstance(value, str | bytes):
        try:
            return orjson.loads(value)
        except ValueError:
            return value if isinstance(value, str) else None
    return value
