"""Recipes over HTTP: the queue with its mailbox, and parse requests for guests and users alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import Header, Query, Request
from starlette.responses import Response

from penstock import Job, Submission, owner
from penstock.app import JobCursor
from penstock.errors import JobNotFound
from penstock.http import (
    Anyone,
    AnyoneSubmitting,
    FormField,
    Identity,
    Json,
    Router,
    SignedIn,
    StartForm,
    Submitting,
    add_routes,
    count_less,
    documented,
    limit_body,
    read_cursor,
    written_cursor,
)
from penstock.lifecycle import JSON, SubmitOutcome
from penstock_apps.recipes import schemas as shapes
from penstock_apps.recipes import translation as words
from penstock_apps.recipes.client_pages import ClientPage
from penstock_apps.recipes.guest_requests import remember_request, remembered_requests
from penstock_apps.recipes.photo_routes import photo_routes
from penstock_apps.recipes.saved_recipe_routes import saved_recipe_routes
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.vocabularies import PARSE_REQUESTS

_PAGE = 50
_LARGEST_QUESTION = 64 * 1024
_JSON_OVERHEAD = 2
"""JSON may write a character of a page in more bytes than the page has for it."""
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before.")]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same request again, with the same key, gives the same job."),
]
_SUBMIT_PROBLEMS = documented(400, 401, 409, 413, 422, 429, 503)
_READ_PROBLEMS = documented(401, 404, 422, 503)
_CHANGE_PROBLEMS = documented(401, 404, 409, 422, 503)
_GUEST_PROBLEMS = documented(400, 401, 409, 413, 422, 429, 503)
_FORM = StartForm(
    "Read a recipe",
    text="A page with a recipe becomes a recipe you can keep.",
    fields=(FormField("url", "The page's address", "url", hint="It begins with http:// or https://."),),
    answer="id",
    button="Read it",
)
_WITHOUT_TOKEN: dict[str, JSON] = {"security": [{}]}
"""A token is accepted, and not needed."""
_NOT_FOUND: dict[int | str, dict[str, JSON]] = {
    404: {"model": shapes.RequestNotFound, "description": "There is no such request, or it is somebody else's."}
}


def routes_of(recipes: Recipes) -> Router:
    """The addresses of a recipes application."""
    routes = Router()
    # Routes are tried in their order: those that guests use most come first.
    for part in (_requests(recipes), _queue(recipes), photo_routes(recipes), saved_recipe_routes(recipes)):
        add_routes(routes, part)
    return routes


def _queue(recipes: Recipes) -> Router:
    routes = Router(prefix="/recipes", tags=["recipe queue"])

    @routes.post(
        "/parse-url/async", status_code=202, summary="Parse a page", response_model=shapes.ParseStarted,
        responses=_SUBMIT_PROBLEMS, openapi_extra=_FORM.extra(),
    )  # fmt: skip
    def parse_recipe(
        body: shapes.ParseUrl, who: Submitting, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """A job of your own; a page that somebody else asks for at the same time is fetched once."""
        submission = recipes.ask(
            body.url, user=who.user, use_llm_fallback=body.use_llm_fallback, idempotency_key=idempotency_key,
            ip_address=_address(request),
        )  # fmt: skip
        return Json(words.started_job(_job_of(submission, request)), 202)

    @routes.post(
        "/parse-payload/async", status_code=202, summary="Parse a page that you opened yourself",
        response_model=shapes.ParseStarted, responses=_SUBMIT_PROBLEMS,
    )  # fmt: skip
    @limit_body(_JSON_OVERHEAD * recipes.settings.fetch_max_bytes)
    def parse_sent_page(body: shapes.ParsePayload, who: Submitting, request: Request) -> Response:
        """For pages whose sites refuse servers. What comes of it is yours alone."""
        sent_page = body.input
        page = ClientPage(sent_page.source_url, sent_page.jsonld_blocks or (), sent_page.html_snippet)
        submission = recipes.submit_page(
            page, user=who.user, use_llm_fallback=body.use_llm_fallback, ip_address=_address(request)
        )
        return Json(words.started_job(_job_of(submission, request)), 202)

    def get_status(job_id: UUID, who: SignedIn) -> Response:
        """Its status, its result once it is complete, and why it failed."""
        [job] = recipes.with_progress([recipes.get(job_id, by=who.caller)])
        return Json(words.job_status(job))

    def cancel(job_id: UUID, who: SignedIn) -> Response:
        """Possible until it is complete. Others who asked for the page still get it."""
        job = recipes.cancel(job_id, by=who.caller)
        return Json({"id": str(job.id), "status": words.status_of(job)})

    def abandon(job_id: UUID, who: SignedIn) -> Response:
        """It leaves the mailbox for good, and is not saved."""
        job = recipes.abandon(job_id, by=who.caller)
        return Json({"id": str(job.id), "status": words.status_of(job)})

    # The first are the specification's addresses, the others those that its client asks.
    for path, name in (("/parse-url/status/{job_id}", "get_parse_status"), ("/jobs/{job_id}", "get_recipe_job")):
        routes.get(
            path, name=name, summary="How it stands", response_model=shapes.ParseStatus, responses=_READ_PROBLEMS
        )(get_status)
    for path, name in (("/parse-url/jobs", "parse_job"), ("/jobs", "recipe_job")):
        routes.post(
            f"{path}/{{job_id}}/cancel", name=f"cancel_{name}", summary="Cancel it", response_model=shapes.Canceled,
            responses=_CHANGE_PROBLEMS,
        )(cancel)  # fmt: skip
        routes.post(
            f"{path}/{{job_id}}/abandon", name=f"abandon_{name}", summary="Dismiss it",
            response_model=shapes.Abandoned, responses=_CHANGE_PROBLEMS,
        )(abandon)  # fmt: skip

    @routes.get(
        "/parse-url/jobs", summary="The mailbox", response_model=shapes.Mailbox, responses=documented(401, 422, 503)
    )
    def list_parse_jobs(
        who: SignedIn,
        status: Annotated[shapes.Status, Query(description="Other than COMPLETE only with `include_expired`.")] = (
            "COMPLETE"
        ),
        include_expired: Annotated[bool, Query(description="Also those whose time is over.")] = False,
        cursor: Cursor = None,
        limit: Limit = _PAGE,
    ) -> Response:
        """Finished jobs that nobody has saved or dismissed, newest first, without their results."""
        jobs = recipes.mailbox(
            by=owner(who.user), states=words.STATES[status], include_expired=include_expired, after=_place(cursor),
            limit=limit,
        )  # fmt: skip
        kept_for = timedelta(minutes=recipes.settings.abandon_minutes)
        return Json({"jobs": [words.in_mailbox(job, kept_for) for job in jobs], "next": _next(jobs, limit)})

    return routes


def _requests(recipes: Recipes) -> Router:
    routes = Router(tags=["parse requests"])
    answers: dict[int | str, dict[str, JSON]] = {
        200: {"model": shapes.RequestShown, "description": "The recipe, if it is known already."},
        202: {"model": shapes.RequestShown, "description": "A request, to be asked for again."},
    }

    def ask(body: shapes.RequestedUrl, who: Identity, request: Request, key: str | None, **hit: str) -> Response:
        if key is not None:
            recipes.take_key(key, body.url, user=who.user, ip_address=_address(request))
        known_recipe = recipes.find_known(body.url)
        if known_recipe is not None:
            count_less(request)
            return Json({**hit, "recipe": words.known_recipe(known_recipe)})
        submission = recipes.ask(body.url, user=who.user, idempotency_key=key, ip_address=_address(request))
        [job] = recipes.with_progress([_job_of(submission, request)])
        answer = Json({"requestId": str(job.id), "status": PARSE_REQUESTS.word(job.state, job.killed_by)}, 202)
        if who.user is None:
            remember_request(request, answer, job.id)
        return answer

    def poll(request_id: UUID, who: Identity) -> Response:
        try:
            [job] = recipes.with_progress([recipes.get_request(request_id, by=who.caller)])
        except JobNotFound as error:
            return Json({"error": "Request not found", "code": error.code, "message": error.message}, 404)
        is_pruned = job.result is None and job.finished
        return Json(words.request_status(job, recipes.find_latest(job) if is_pruned else None))

    @routes.post(
        "/parse-requests", summary="Ask for a recipe", responses=answers | _GUEST_PROBLEMS, response_model=None,
        openapi_extra=_WITHOUT_TOKEN,
    )  # fmt: skip
    @limit_body(_LARGEST_QUESTION)
    def request_parse(
        body: shapes.RequestedUrl, who: AnyoneSubmitting, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """The recipe itself if somebody asked not long ago; guests who ask for the same page share a request."""
        return ask(body, who, request, idempotency_key)

    @routes.post(
        "/api/v1/recipes/parse", summary="Ask for a recipe, with a status", responses=answers | _GUEST_PROBLEMS,
        response_model=None, openapi_extra=_WITHOUT_TOKEN,
    )  # fmt: skip
    @limit_body(_LARGEST_QUESTION)
    def request_parse_v1(
        body: shapes.RequestedUrl, who: AnyoneSubmitting, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """The same for clients that read `status` in every answer."""
        return ask(body, who, request, idempotency_key, status="COMPLETED")

    for name, path in (
        ("get_parse_request", "/parse-requests/{request_id}"),
        ("get_parse_request_v1", "/api/v1/recipes/parse-requests/{request_id}"),
    ):
        routes.get(
            path, name=name, summary="How a request stands", response_model=shapes.RequestShown,
            responses=documented(401, 422, 429, 503) | _NOT_FOUND, openapi_extra=_WITHOUT_TOKEN,
        )(_polling(poll))  # fmt: skip

    @routes.get(
        "/parse-requests", summary="Your requests", response_model=shapes.RequestsListed,
        responses=documented(401, 422, 503),
    )  # fmt: skip
    def list_parse_requests(who: SignedIn, request: Request, cursor: Cursor = None, limit: Limit = _PAGE) -> Response:
        """Newest first; with those that this browser made before somebody signed in."""
        page = recipes.history(
            by=owner(who.user), guest_requests=remembered_requests(request), after=_place(cursor), limit=limit
        )
        requests = [words.listed_request(job) for job in recipes.with_progress(page)]
        return Json({"requests": requests, "next": _next(page, limit)})

    return routes


def _polling(poll: Callable[[UUID, Identity], Response]) -> Callable[[UUID, Identity], Response]:
    def request_status(request_id: UUID, who: Anyone) -> Response:
        """PENDING, PROCESSING, COMPLETED with the recipe, or FAILED with the reason."""
        return poll(request_id, who)

    return request_status


def _job_of(submission: Submission, request: Request) -> Job:
    """The job that answers; what is there already counts less towards the limit than new work."""
    if submission.answer is not SubmitOutcome.NEW:
        count_less(request)
    return submission.job


def _place(cursor: str | None) -> JobCursor | None:
    return None if cursor is None else read_cursor(cursor)


def _next(page: list[Job], limit: int) -> str | None:
    """The cursor behind a page that is full."""
    return written_cursor(page[-1].created_at, page[-1].id) if len(page) == limit else None


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None
