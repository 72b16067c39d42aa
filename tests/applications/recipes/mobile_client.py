"""The queue's mobile client, as far as it speaks to a server: the calls it makes, and what it reads in the answers.

It is written from what that client does: which fields it sends, which of the answers' fields it uses, and how. What it
would show as an error is raised as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

Recipe = dict[str, Any]


class Shown(Exception):
    """A text that the client shows instead of going on."""


@dataclass
class Draft:
    """The form in which a person looks a parsed recipe over before saving it; texts are those of its fields."""

    job: str
    title: str
    description: str
    servings: str
    minutes: str
    image_url: str
    ingredients: list[tuple[str, str, str]] = field(default_factory=list)
    """What it is, how much of it and its unit."""
    steps: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class MobileClient:
    """Somebody's telephone; ``wait`` passes the time between two polls."""

    http: httpx2.Client
    wait: Callable[[str], None]

    def request(self, method: str, path: str, **sent: Any) -> Any:
        """One call; an answer that is not good is shown by its ``detail``."""
        answer = self.http.request(method, path, **sent)
        if answer.is_error:
            detail = answer.json().get("detail")
            raise Shown(detail if isinstance(detail, str) and detail else f"status {answer.status_code}")
        return answer.json() if answer.content else None

    # Importing --------------------------------------------------------------------------------------------------------

    def add_page(self, url: str) -> str:
        """The job that reads a page."""
        answer = self.request("POST", "/recipes/parse-url/async", json={"url": url, "use_llm_fallback": True})
        return str(answer["id"])

    def send_page(self, url: str, blocks: list[str], snippet: str | None = None) -> str:
        """The job that reads a page which was opened here; without a snippet there is no such field."""
        page = {
            "source_type": "client_webview",
            "source_url": url,
            "jsonld_blocks": blocks,
            "extracted_at": "2025-12-09T12:34:56.000Z",
            "client": "ios:1.0.0",
        }
        if snippet is not None:
            page["html_snippet"] = snippet
        return str(self.request("POST", "/recipes/parse-payload/async", json={"input": page})["id"])

    def poll(self, job: str) -> Any:
        """A job once it has an end."""
        self.wait(job)
        answer = self.request("GET", f"/recipes/jobs/{job}")
        assert answer["status"] in ("COMPLETE", "ERROR"), answer
        return answer

    def must_open_it_here(self, job: str) -> bool:
        """Does the answer ask to open the page in the client's own browser?"""
        answer = self.poll(job)
        result = answer.get("result") or {}
        return (
            answer["status"] == "ERROR"
            and answer["error_code"] == "fetch_failed"
            and result.get("next_action") == "webview_extract"
            and result.get("next_action_reason") == "blocked_by_site"
        )

    def open_import(self, job: str) -> Draft:
        """The form for a job that was waited for: amounts are read as ``quantity`` there, and trimmed."""
        answer = self.poll(job)
        recipe = (answer.get("result") or {}).get("recipe")
        if answer["status"] != "COMPLETE" or not recipe:
            raise Shown(answer["error_message"])
        minutes = recipe["total_time_minutes"] if recipe["total_time_minutes"] is not None else None
        parts = [(part["name"], part["quantity"], part["unit"]) for part in recipe["ingredients"]]
        return _draft(job, recipe, minutes, parts, answer["result"]["warnings"])

    # The mailbox ------------------------------------------------------------------------------------------------------

    def mailbox(self) -> list[Any]:
        """What waits."""
        return list(self.request("GET", "/recipes/parse-url/jobs")["jobs"])

    def open_from_mailbox(self, job: str) -> Draft:
        """The form for a job of the mailbox: amounts are read as ``quantity_display`` there."""
        answer = self.request("GET", f"/recipes/jobs/{job}")
        if answer["status"] != "COMPLETE" or not answer["result"]["success"]:
            raise Shown("This imported recipe is no longer available.")
        recipe = answer["result"]["recipe"]
        assert isinstance(recipe["notes"], list)
        parts = [(part["text"], part["quantity_display"], part["unit"]) for part in recipe["ingredients"]]
        return _draft(job, recipe, recipe["estimated_time_minutes"], parts, answer["result"]["warnings"])

    def cancel(self, job: str) -> None:
        """Stop it."""
        self.request("POST", f"/recipes/jobs/{job}/cancel")

    def discard(self, job: str) -> None:
        """Let it leave the mailbox."""
        self.request("POST", f"/recipes/parse-url/jobs/{job}/abandon")

    # Recipes ----------------------------------------------------------------------------------------------------------

    def save(self, draft: Draft) -> Recipe:
        """Keep what is in the form. A field that was left empty is the number 0."""
        return dict(self.request("POST", "/recipes", json={**_sent(draft), "parse_job_id": draft.job}))

    def change(self, number: int, draft: Draft) -> Recipe:
        """Write over a recipe."""
        return dict(self.request("PATCH", f"/recipes/{number}", json=_sent(draft)))

    def recipes(self) -> list[Recipe]:
        """All of them, in one answer."""
        return list(self.request("GET", "/recipes"))

    def recipe(self, number: int) -> Recipe:
        """One of them."""
        return dict(self.request("GET", f"/recipes/{number}"))

    def remove(self, number: int) -> None:
        """Forget one."""
        self.request("DELETE", f"/recipes/{number}")


def lines(recipe: Recipe) -> list[str]:
    """A saved recipe's ingredients as the client shows them: the amount before the text, unless that begins with it."""
    shown = []
    for ingredient in recipe["ingredients"]:
        parts = (ingredient.get("quantity_display"), ingredient.get("unit"))
        amount = " ".join(part.strip() for part in parts if part and part.strip())
        text = ingredient["text"].strip()
        shown.append(text if text.lower().startswith(amount.lower()) else f"{amount} {text}")
    return shown


def _draft(job: str, recipe: Recipe, minutes: int | None, parts: list[Any], warnings: list[str]) -> Draft:
    return Draft(
        job,
        recipe["title"] or "",
        recipe["description"] or "",
        "" if recipe["servings"] is None else str(recipe["servings"]),
        "" if minutes is None else str(minutes),
        recipe["image_url"] or "",
        [(text, (quantity or "").strip(), (unit or "").strip()) for text, quantity, unit in parts],
        [step.strip() for step in recipe["steps"]],
        list(recipe["tags"]),
        list(warnings),
    )


def _sent(draft: Draft) -> dict[str, Any]:
    minutes = int(draft.minutes or 0)
    ingredients = []
    for text, quantity, unit in draft.ingredients:
        optional = {"quantity_display": quantity, "unit": unit}
        ingredients.append({"text": text} | {name: value for name, value in optional.items() if value})
    return {
        "title": draft.title,
        "description": draft.description or None,
        "prep_time_minutes": minutes,
        "cook_time_minutes": 0,
        "total_time_minutes": minutes,
        "servings": int(draft.servings or 0),
        "source_type": "manual",
        "source_url": None,
        "image_url": draft.image_url or None,
        "ingredients": ingredients,
        "steps": [{"step_number": place, "text": text} for place, text in enumerate(draft.steps, 1)],
        "tags": draft.tags,
    }
