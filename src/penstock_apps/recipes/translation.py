"""A job in the words of the recipe clients. Pure: no database, no request."""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock import Job, JobState
from penstock.lifecycle import JSON
from penstock_apps.recipes.addresses import host_of
from penstock_apps.recipes.payloads import is_recipe_result, parsed_moment
from penstock_apps.recipes.repository import KnownRecipe, SavedRecipe
from penstock_apps.recipes.vocabularies import PARSE_REQUESTS, RECIPES

STATES = {word: [state for state in JobState if RECIPES.words[state] == word] for word in RECIPES.words.values()}
"""The states behind each word."""
_WITH_RESULT = (JobState.SUCCEEDED, JobState.COMMITTED, JobState.ABANDONED)


def status_of(job: Job) -> str:
    """One of seven."""
    return RECIPES.word(job.state, job.killed_by)


def job_status(job: Job) -> dict[str, JSON]:
    """A job as whoever polls it sees it."""
    failed = job.state is JobState.FAILED
    return {
        "id": str(job.id),
        "status": status_of(job),
        "result": job.result if job.state in _WITH_RESULT else None,
        "error_code": job.error_code if failed else None,
        "error_message": job.last_error if failed else None,
    }


def in_mailbox(job: Job, kept_for: timedelta) -> dict[str, JSON]:
    """A job as a card; ``kept_for`` is how long its owner has to save it."""
    result = job.result if is_recipe_result(job.result) else None
    url = _url(job)
    return {
        "id": str(job.id),
        "job_type": _job_type(job),
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
    return {"title": known_page.title, "ingredients": known_page.ingredients, "parsedAt": known_page.parsed_at}


def listed_request(job: Job) -> dict[str, JSON]:
    """A request in somebody's history."""
    status = PARSE_REQUESTS.word(job.state, job.killed_by)
    return {
        "requestId": str(job.id),
        "url": _url(job),
        "status": status,
        "createdAt": job.created_at,
        "error": (job.last_error or job.killed_reason) if status == "FAILED" else None,
    }


def saved_recipe(recipe: SavedRecipe) -> dict[str, JSON]:
    """A recipe somebody keeps."""
    return {
        "ingredients": [],
        "steps": [],
        "tags": [],
        **recipe.body,
        "id": str(recipe.id),
        "title": recipe.title,
        "parse_job_id": None if recipe.parse_job_id is None else str(recipe.parse_job_id),
        "created_at": recipe.created_at,
        "updated_at": recipe.updated_at,
    }


def _parsed_recipe(job: Job, known_page: KnownRecipe | None) -> dict[str, JSON]:
    """The job's own result; what is known of the page where that has been pruned."""
    if is_recipe_result(job.result):
        recipe = job.result["recipe"]
        parsed_at = parsed_moment(job.result) or job.completed_at
        return {"title": recipe.get("title"), "ingredients": recipe.get("ingredients", []), "parsedAt": parsed_at}
    return (
        {"title": None, "ingredients": [], "parsedAt": job.completed_at}
        if known_page is None
        else known_recipe(known_page)
    )


def _expires_at(job: Job, kept_for: timedelta) -> datetime | None:
    """Only what waits for its owner expires: what failed, or was saved or dismissed, stays as it is."""
    if job.completed_at is None or job.state is not JobState.SUCCEEDED:
        return None
    return job.completed_at + kept_for


def _job_type(job: Job) -> str:
    """What the old queue called a job that was imported; all others ask for a page."""
    return str(job.params.get("job_type", "url")) if isinstance(job.params, dict) else "url"


def _url(job: Job) -> str | None:
    url: str | None = job.params.get("url") if isinstance(job.params, dict) else None
    return url
