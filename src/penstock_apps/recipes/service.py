"""Recipes as their users know them: ask for a page, see it in the mailbox, save it or let it go.

One page is parsed once, however many ask for it: everybody has a job of their own, and all but the first follow it.
Who refuses a language model does not follow who allows one, and the other way round. Who gets which answer, and what
guests see once they have signed in, is told in docs/explanation/recipe-answers.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import islice
from uuid import UUID, uuid4

from penstock import Caller, Job, JobState, Kind, Penstock, Policy, Submission, owner
from penstock.app import JobCursor
from penstock.errors import JobNotFound, TransitionRefused
from penstock.lifecycle import JSON, Actor, SubmitOutcome
from penstock.store import DatabaseConnection
from penstock_apps.recipes.addresses import host_of, key_of, normalize_url
from penstock_apps.recipes.client_pages import ClientPage
from penstock_apps.recipes.fetch_shares import PLACES, FetchShares, share_of
from penstock_apps.recipes.kinds import RECIPE, ParseRecipe
from penstock_apps.recipes.page_reader import PageReader
from penstock_apps.recipes.payloads import JobInput, JobParams, RecipeParams, RecipeResult, work_key
from penstock_apps.recipes.photo_reader import PhotoReader
from penstock_apps.recipes.photo_requests import PhotoRequests
from penstock_apps.recipes.repository import KnownRecipe, RecipeRepository, SavedRecipe
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.recipes.vocabularies import RECIPES

_PAGE_SIZE = 200
_SENT_TWICE = "10m"


class Recipes:
    """The recipes application on one Penstock."""

    def __init__(self, app: Penstock, settings: RecipeSettings) -> None:
        self._app = app
        self.settings = settings
        self.repository = RecipeRepository(app)
        policy = Policy(
            retries=3,
            backoff="2s exponential up to 5m",
            timeout="5m",
            concurrency=PLACES,
            slows_down=False,  # each page is another site's
            run_limit=timedelta(minutes=settings.stale_minutes),
            abandon_after=timedelta(minutes=settings.abandon_minutes),
            prune_result=settings.prune_results,
        )
        shares = FetchShares()
        pages, photos = PageReader(app, settings, shares), PhotoReader(app, settings, shares)
        self.kind: Kind[JobParams, JobInput, RecipeResult] = app.kinds.add(
            Kind.of(RECIPE, ParseRecipe(app, self.repository, settings, pages, photos), policy)
        )
        self.photos = PhotoRequests(app, self.kind, settings)

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
        """A job for a page: a new one, one that follows another's, or the caller's own that runs already.

        The page is found by its normalized address, and fetched by the one that was given.
        """
        name, address = normalize_url(url), url.strip()
        url_hash = key_of(name)
        params = RecipeParams(url=address, url_hash=url_hash, use_llm_fallback=use_llm_fallback)
        if user is None:
            params["share"] = share_of(None, ip_address)
        # Whoever has the id of a guest's request may look at it, so it must not be near any other id.
        job_id = uuid4() if user is None else None

        def operation(connection: DatabaseConnection) -> Submission:
            self.repository.note_page(connection, url_hash, address)
            submission = self._app.acting_as(owner(user)).submit(
                self.kind,
                params,
                unique_key=work_key(url_hash, use_llm_fallback=use_llm_fallback),
                idempotency_key=idempotency_key,
                fingerprint=_fingerprint(name, use_llm_fallback=use_llm_fallback),
                ip_address=ip_address,
                title=address,
                hold=self.settings.parsed_elsewhere,
                job_id=job_id,
                connection=connection,
            )
            # Where pages are parsed here nobody reads that topic.
            if self.settings.parsed_elsewhere and submission.answer is SubmitOutcome.NEW:
                message = self._request_message(submission.job, params)
                self._app.messages.publish(self.settings.requests_topic, message, key=url_hash, connection=connection)
            return submission

        return self._app.in_transaction(operation)

    def submit_page(
        self, page: ClientPage, *, user: str | None, use_llm_fallback: bool = True, ip_address: str | None = None
    ) -> Submission:
        """A job for a page that the client has opened itself, because its site refuses servers.

        The same page sent again is the same job, while it is read and some time after: clients send a page when it is
        loaded, and once more when it has settled. It is read here, also where others parse.
        """
        name, address = normalize_url(page.address), page.address.strip()
        text = page.as_html(max_bytes=self.settings.fetch_max_bytes)
        as_user = self._app.acting_as(owner(user))
        file = as_user.files.keep(BytesIO(text), name=f"{host_of(address)}.html"[-255:], media_type="text/html")
        params = RecipeParams(
            url=address, url_hash=key_of(name), use_llm_fallback=use_llm_fallback, page_sha256=file.sha256
        )
        if user is None:
            params["share"] = share_of(None, ip_address)

        def operation(connection: DatabaseConnection) -> Submission:
            self.repository.note_page(connection, params["url_hash"], address)
            return as_user.submit(
                self.kind,
                params,
                unique_key=key_of(f"{name} {file.sha256} {use_llm_fallback}"),
                fresh_for=_SENT_TWICE,
                ip_address=ip_address,
                title=address,
                file=file,
                connection=connection,
            )

        return self._app.in_transaction(operation)

    def take_key(self, idempotency_key: str, url: str, *, user: str | None, ip_address: str | None) -> None:
        """Take a key for a request that may need no job; another request under it is refused."""
        fingerprint = _fingerprint(normalize_url(url), use_llm_fallback=True)
        self._app.acting_as(owner(user)).take_key(idempotency_key, fingerprint, ip_address=ip_address)

    def find_known(self, url: str, *, use_llm_fallback: bool = True) -> KnownRecipe | None:
        """The recipe of a page that somebody asked for not too long ago."""
        url_hash = key_of(normalize_url(url))
        return self.repository.fresh(url_hash, self.settings.ttl_days, llm_allowed=use_llm_fallback)

    # Looking ------------------------------------------------------------------------------------------------------

    def get(self, job_id: UUID, *, by: Caller) -> Job:
        """One job of the caller's; an imported one that nobody owns is for admins."""
        job = self._app.acting_as(by).jobs.get(job_id)
        if job.kind != RECIPE:
            raise JobNotFound(f"there is no request {job_id}")
        is_nobodys = job.user_id is None and self.kind.params(job).get("imported", False)
        if is_nobodys and by.actor is Actor.OWNER:
            raise JobNotFound(f"there is no request {job_id}")
        return job

    def get_request(self, request_id: UUID, *, by: Caller) -> Job:
        """One request of the caller's, or a guest's: who was a guest a moment ago still knows the id."""
        try:
            return self.get(request_id, by=by)
        except JobNotFound:
            if by.id is None:
                raise
            return self.get(request_id, by=owner(None))

    def with_progress(self, jobs: Sequence[Job]) -> list[Job]:
        """The same jobs as their clients see them: one that a parser elsewhere has begun with is running."""
        waiting_ids = (
            [job.id for job in jobs if job.state is JobState.CREATED] if self.settings.parsed_elsewhere else []
        )
        started_ids = self.repository.find_started(waiting_ids) if waiting_ids else set()
        return [replace(job, state=JobState.RUNNING) if job.id in started_ids else job for job in jobs]

    def find_latest(self, job: Job) -> KnownRecipe | None:
        """What is known of the page of a job that has no result any more."""
        params = self.kind.params(job)
        # What its client sent is gone with its result; an imported job may have no key.
        if "pictures" in params or "page_sha256" in params or not (url_hash := params.get("url_hash")):
            return None
        return self.repository.latest(url_hash, llm_allowed=params["use_llm_fallback"])

    def mailbox(
        self, *, by: Caller, states: list[JobState], include_expired: bool, after: JobCursor | None, limit: int
    ) -> list[Job]:
        """Jobs that wait for their owner; with ``include_expired`` also those whose time is over, and other states."""
        if not include_expired and states != [JobState.SUCCEEDED]:
            return []
        oldest = datetime.now(UTC) - timedelta(minutes=self.settings.abandon_minutes)
        waiting = (
            job
            for job in self._all(by, states, after)
            if include_expired or (job.completed_at is not None and job.completed_at >= oldest)
        )
        return list(islice(waiting, limit))

    def history(self, *, by: Caller, guest_requests: Sequence[UUID], after: JobCursor | None, limit: int) -> list[Job]:
        """The caller's requests, and these that they made as a guest, newest first."""
        jobs = self._app.acting_as(by).jobs.list(kind=RECIPE, after=after, limit=limit, payloads=True)
        for request_id in guest_requests:
            with suppress(JobNotFound):
                job = self.get(request_id, by=owner(None))
                if after is None or _place(job) < (after.created_at, after.id):
                    jobs.append(job)
        return sorted(jobs, key=_place, reverse=True)[:limit]

    def _all(self, by: Caller, states: list[JobState], after: JobCursor | None) -> Iterator[Job]:
        while page := self._app.acting_as(by).jobs.list(
            kind=RECIPE, states=states, after=after, limit=_PAGE_SIZE, payloads=True
        ):
            yield from page
            after = JobCursor(page[-1].created_at, page[-1].id)

    # Changing -----------------------------------------------------------------------------------------------------

    def cancel(self, job_id: UUID, *, by: Caller) -> Job:
        """Stop a request that has not ended."""
        job = self.get(job_id, by=by)
        with self._refusing_in_words(job, by, "canceled while it is PENDING or RUNNING"):
            return self._app.acting_as(by).jobs.cancel(job_id, reason="User requested cancellation")

    def abandon(self, job_id: UUID, *, by: Caller) -> Job:
        """Dismiss a recipe that waits in the mailbox."""
        job = self.get(job_id, by=by)
        with self._refusing_in_words(job, by, "dismissed while it is COMPLETE"):
            return self._app.acting_as(by).jobs.abandon(job_id, reason="dismissed")

    def save(self, user: str, title: str, body: dict[str, JSON], parse_job_id: UUID | None) -> SavedRecipe:
        """Keep a recipe, and commit the job it came from, both or neither."""
        by = owner(user)
        job = None if parse_job_id is None else self.get(parse_job_id, by=by)
        if job is not None and "pictures" in self.kind.params(job):
            body = {"source_type": "image", **body}

        def operation(connection: DatabaseConnection) -> int:
            if job is not None:
                jobs = self._app.acting_as(by).jobs
                jobs.commit(job.id, reason="saved as a recipe", connection=connection)
            return self.repository.save(connection, user, title, body, parse_job_id)

        with self._refusing_in_words(job, by, "saved while it is COMPLETE"):
            recipe_id = self._app.in_transaction(operation)
        return self.repository.get_saved(recipe_id, user)

    @contextmanager
    def _refusing_in_words(self, job: Job | None, by: Caller, possible: str) -> Iterator[None]:
        """A change of a job that its state does not allow is refused in the words that its client knows."""
        try:
            yield
        except TransitionRefused as refusal:
            if job is None or refusal.code != TransitionRefused.code:
                raise
            state = self.get(job.id, by=by).state  # it may have changed since the job was read
            message = f"job {job.id} is {RECIPES.words[state]}: it can only be {possible}"
            raise TransitionRefused(message, code=refusal.code) from refusal

    def _request_message(self, job: Job, params: RecipeParams) -> dict[str, JSON]:
        """The message that tells parsers elsewhere of a request."""
        return {
            "requestId": str(job.id),
            "url": params["url"],
            "urlHash": params["url_hash"],
            "useLlmFallback": params["use_llm_fallback"],
            "share": share_of(job.user_id, job.ip_address),
            "requestedAt": job.created_at.isoformat().replace("+00:00", "Z"),
        }


def _place(job: Job) -> tuple[datetime, UUID]:
    """Where a job is in a list."""
    return job.created_at, job.id


def _fingerprint(address: str, *, use_llm_fallback: bool) -> JSON:
    """What an idempotency key for a page stands for."""
    return ["recipe", address, use_llm_fallback]
