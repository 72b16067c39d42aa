"""Recipes as their users know them: ask for a page, see it in the mailbox, save it or let it go.

One page is parsed once, however many ask for it: everybody has a job of their own, and all but the first follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from penstock import (
    Actor,
    Caller,
    ItemStatus,
    Job,
    JobContext,
    JobCursor,
    JobNotFound,
    JobState,
    Penstock,
    Permanent,
    Submission,
    SubmitOutcome,
    owner,
)
from penstock_apps.recipes import kinds
from penstock_apps.recipes.addresses import key_of, normalized
from penstock_apps.recipes.repository import KnownRecipe, RecipeRepository, SavedRecipe
from penstock_apps.recipes.settings import RecipeSettings

KIND = "recipe"
_PAGE = 200


class Recipes:
    """The recipes application on one Penstock."""

    def __init__(self, app: Penstock, settings: RecipeSettings) -> None:
        self._app = app
        self.settings = settings
        self.repository = RecipeRepository(app)
        app.kind(
            KIND,
            retries=3,
            backoff="2s exponential up to 5m",
            runs_in="processes",
            timeout="2m",
            memory_limit="1GiB",
            run_limit=f"{settings.stale_minutes}m",
            abandon_after=f"{settings.abandon_minutes}m",
            prune_result=settings.prune_results,
        )(self._definition())

    # Asking -------------------------------------------------------------------------------------------------------

    def ask(
        self,
        url: str,
        *,
        user: str | None,
        use_llm_fallback: bool = True,
        idempotency_key: str | None = None,
        ip_address: str | None = None,
    ) -> Submission:
        """A job for a page: a new one, one that follows another's, or the caller's own that runs already."""
        address = normalized(url)
        url_hash = key_of(address)
        params = {"url": address, "url_hash": url_hash, "use_llm_fallback": use_llm_fallback}

        def operation(link: Any) -> Submission:
            self.repository.note_page(link, url_hash, address)
            submission = self._app.submit(
                KIND,
                params,
                owner=user,
                by=owner(user),
                unique_key=url_hash,
                idempotency_key=idempotency_key,
                fingerprint=_said(address, use_llm_fallback=use_llm_fallback),
                ip_address=ip_address,
                title=address,
                hold=self.settings.parsed_elsewhere,
                connection=link,
            )
            if submission.answer is SubmitOutcome.NEW:
                self._app.publish(self.settings.requests_topic, _request(submission.job), key=url_hash, connection=link)
            return submission

        return self._app.in_transaction(operation)

    def take_key(self, idempotency_key: str, url: str, *, user: str | None, ip_address: str | None) -> None:
        """Take a key for a request that may need no job; another request under it is refused."""
        said = _said(normalized(url), use_llm_fallback=True)
        self._app.take_key(idempotency_key, said, owner=user, ip_address=ip_address)

    def known(self, url: str) -> KnownRecipe | None:
        """What a page says, if somebody asked for it not too long ago."""
        return self.repository.fresh(key_of(normalized(url)), self.settings.ttl_days)

    # Looking ------------------------------------------------------------------------------------------------------

    def get(self, job_id: UUID, *, by: Caller) -> Job:
        """One job of the caller's; what nobody owns after an import is for admins."""
        job = self._app.get(job_id, by=by)
        params: Any = job.params
        brought = isinstance(params, dict) and params.get("imported") and job.user_id is None
        if job.kind != KIND or (brought and by.actor is Actor.OWNER):
            raise JobNotFound(f"there is no request {job_id}")
        return job

    def mailbox(self, *, by: Caller, states: list[JobState], include_expired: bool, limit: int) -> list[Job]:
        """Jobs that wait for their owner; with ``include_expired`` also those whose time is over, and other states."""
        if not include_expired and states != [JobState.SUCCEEDED]:
            return []
        oldest = datetime.now(UTC) - timedelta(minutes=self.settings.abandon_minutes)
        found: list[Job] = []
        for job in self._all(by, states):
            if include_expired or (job.completed_at is not None and job.completed_at >= oldest):
                found.append(job)
            if len(found) == limit:
                break
        return found

    def history(self, *, by: Caller, after: JobCursor | None, limit: int) -> list[Job]:
        """The caller's requests, newest first."""
        return self._app.jobs(by=by, kind=KIND, after=after, limit=limit, payloads=True)

    def _all(self, by: Caller, states: list[JobState]) -> Iterator[Job]:
        after: JobCursor | None = None
        while page := self._app.jobs(by=by, kind=KIND, states=states, after=after, limit=_PAGE, payloads=True):
            yield from page
            after = JobCursor(page[-1].created_at, page[-1].id)

    # Changing -----------------------------------------------------------------------------------------------------

    def cancel(self, job_id: UUID, *, by: Caller) -> Job:
        """Stop a request that has not ended."""
        self.get(job_id, by=by)
        return self._app.cancel(job_id, by=by, reason="User requested cancellation")

    def save(self, user: str, title: str, body: dict[str, Any], parse_job_id: UUID | None) -> SavedRecipe:
        """Keep a recipe, and commit the job it came from, both or neither."""
        if parse_job_id is not None:
            self.get(parse_job_id, by=owner(user))

        def operation(link: Any) -> UUID:
            if parse_job_id is not None:
                self._app.commit(parse_job_id, by=owner(user), reason="saved as a recipe", connection=link)
            return self.repository.save(link, user, title, body, parse_job_id)

        return self.repository.saved(self._app.in_transaction(operation), user)

    # The work -----------------------------------------------------------------------------------------------------

    def _definition(self) -> type:
        app, repository, settings = self._app, self.repository, self.settings

        class Parse:
            """Parses a page, unless somebody has not long ago; what was parsed is kept for everybody."""

            process = staticmethod(kinds.parse)
            describe = staticmethod(kinds.describe)

            def plan(self, job: JobContext) -> Iterator[dict[str, Any]]:
                params: Any = job.params
                word = repository.heard(job.id) if settings.parsed_elsewhere else None
                if word is not None and not word.success:
                    raise Permanent(word.error_message or "the parser found nothing", code="PARSE_FAILED")
                if repository.fresh(params["url_hash"], settings.ttl_days) is None:
                    yield {"url": params["url"]}

            def finalize(self, job: JobContext) -> dict[str, Any]:
                params: Any = job.params
                for item in job.items(ItemStatus.ERROR):
                    raise Permanent(item.last_error or "", code=item.error_code)
                parsed: Any = next(job.results(), None)
                if parsed is not None:
                    app.in_transaction(lambda link: repository.keep(link, params["url_hash"], parsed))
                    return dict(parsed)
                known = repository.result(params["url_hash"])
                assert known is not None, "a plan without items has found a fresh recipe"
                return known

        return Parse


def _said(address: str, *, use_llm_fallback: bool) -> list[Any]:
    """What an idempotency key for a page stands for."""
    return ["recipe", address, use_llm_fallback]


def _request(job: Job) -> dict[str, Any]:
    """The message that tells parsers elsewhere of a request."""
    params: Any = job.params
    return {
        "requestId": str(job.id),
        "url": params["url"],
        "urlHash": params["url_hash"],
        "requestedAt": job.created_at.isoformat().replace("+00:00", "Z"),
    }
