"""A job in the words of the recipe clients. Pure: no database, no request."""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock import Job, JobState
from penstock.lifecycle import JSON
from penstock_apps.recipes.addresses import host_of
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.payloads import is_recipe_result, parsed_moment
from penstock_apps.recipes.repository import KnownRecipe
from penstock_apps.recipes.vocabularies import PARSE_REQUESTS, RECIPES

STATES = {word: [state for state in JobState if RECIPES.words[state] == word] for word in RECIPES.words.values()}
"""The states behind each word."""
_REFUSALS = frozenset(failure.code for failure in PageFailure if failure.refuses_servers)
_REFUSED_BY_SITE = "fetch_failed"
"""The word by which the queue's client knows a site that refuses servers; ours is in the result."""
_WITH_RESULT = (JobState.SUCCEEDED, JobState.COMMITTED, JobState.ABANDONED)


def status_of(job: Job) -> str:
    """One of seven."""
    return RECIPES.word(job.state, job.killed_by)


def job_status(job: Job) -> dict[str, JSON]:
    """A job as whoever polls it sees it."""
    failed = job.state is JobState.FAILED
    error_code = job.error_code if failed else None
    return {
        **started_job(job),
        "result": _refusal(job) if _is_refused(job) else job.result if job.state in _WITH_RESULT else None,
        "error_code": _REFUSED_BY_SITE if _is_refused(job) else error_code,
        "error_message": job.last_error if failed else None,
    }


def started_job(job: Job) -> dict[str, JSON]:
    """A job as whoever asked for it is answered."""
    return {"id": str(job.id), "status": status_of(job), **_advice(job)}


def in_mailbox(job: Job, kept_for: timedelta) -> dict[str, JSON]:
    """A job as a card; ``kept_for`` is how long its owner has to save it."""
    result = job.result if is_recipe_result(job.result) else None
    url = _param(job, "url")
    return {
        "id": str(job.id),
        "job_type": _param(job, "job_type") or "url",  # an imported job has its own
        "url": url,
        "status": status_of(job),
        "completed_at": job.completed_at,
        "expires_at": _expires_at(job, kept_for),
        "warnings": [] if result is None else result.get("warnings", []),
        "preview": {
            "title": None if result is None else result["recipe"].get("title"),
            "source_host": None if url is None else host_of(url),
        },
    }


def request_status(job: Job, known_page: KnownRecipe | None) -> dict[str, JSON]:
    """A request as whoever polls it sees it; what there is nothing to say about is left out."""
    status = PARSE_REQUESTS.word(job.state, job.killed_by)
    answer: dict[str, JSON] = {"requestId": str(job.id), "status": status}
    if status == "COMPLETED":
        answer["recipe"] = _parsed_recipe(job, known_page)
    if status == "FAILED":
        answer["error"] = job.last_error or job.killed_reason or "The request was canceled."
    return answer


def known_recipe(known_page: KnownRecipe) -> dict[str, JSON]:
    """What is known of a page already."""
    return {
        "urlHash": known_page.url_hash,
        "title": known_page.title,
        "ingredients": known_page.ingredients,
        "parsedAt": known_page.parsed_at,
    }


def listed_request(job: Job) -> dict[str, JSON]:
    """A request in somebody's history."""
    status = PARSE_REQUESTS.word(job.state, job.killed_by)
    return {
        "requestId": str(job.id),
        "url": _param(job, "url"),
        "status": status,
        "createdAt": job.created_at,
        "error": (job.last_error or job.killed_reason) if status == "FAILED" else None,
    }


def _parsed_recipe(job: Job, known_page: KnownRecipe | None) -> dict[str, JSON]:
    """The job's own result; what is known of the page where that has been pruned."""
    recipe: dict[str, JSON] = {"urlHash": _param(job, "url_hash"), "parsedAt": job.completed_at}
    if is_recipe_result(job.result):
        found_recipe = job.result["recipe"]
        return {
            **recipe,
            "title": found_recipe.get("title"),
            "ingredients": found_recipe.get("ingredients", []),
            "parsedAt": parsed_moment(job.result) or job.completed_at,
        }
    return {**recipe, "title": None, "ingredients": []} if known_page is None else known_recipe(known_page)


def _is_refused(job: Job) -> bool:
    """Did the site refuse it to a server?"""
    return job.state is JobState.FAILED and job.error_code in _REFUSALS


def _advice(job: Job) -> dict[str, JSON]:
    """Where a site refuses servers, a client can open the page itself and send it."""
    is_refused = _is_refused(job)
    return {
        "next_action": "webview_extract" if is_refused else None,
        "next_action_reason": "blocked_by_site" if is_refused else None,
    }


def _refusal(job: Job) -> dict[str, JSON]:
    """The result of a job that a site refused: the queue's client looks there for what to do."""
    return {
        "success": False,
        "recipe": None,
        "used_llm": False,
        "parser_strategy": None,
        "warnings": [],
        "error_code": job.error_code,
        "error_message": job.last_error,
        **_advice(job),
    }


def _expires_at(job: Job, kept_for: timedelta) -> datetime | None:
    """Only what waits for its owner expires: what failed, or was saved or dismissed, stays as it is."""
    if job.completed_at is None or job.state is not JobState.SUCCEEDED:
        return None
    return job.completed_at + kept_for


def _param(job: Job, name: str) -> str | None:
    value: str | None = job.params.get(name) if isinstance(job.params, dict) else None
    return value
