"""Reading a page: fetched on the event loop, taken apart in a process with limits, shown to a model where that helps.

Waiting for a site, or for a model, takes no processor time: tens of pages are waited for at once. Taking a page apart
takes nothing else, and a stranger wrote the page: as many processes do that as there are cores, and one that takes too
long or too much memory is killed. Guests have half of them, so that people who are signed in never wait behind theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from penstock.app import ChildProcesses, Limits
from penstock.errors import MemoryLimitExceeded, TimeLimitExceeded
from penstock.lifecycle import storable_texts
from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.fetch_shares import FetchShares, is_guests_share, share_of
from penstock_apps.recipes.parsing.page import KeptPage, Page
from penstock_apps.recipes.payloads import RecipeParams, RecipeResult

if TYPE_CHECKING:
    from penstock import ItemContext, Penstock
    from penstock_apps.recipes.payloads import PageInput, RecipeItem
    from penstock_apps.recipes.settings import RecipeSettings

Argument = TypeVar("Argument")
Value = TypeVar("Value")
_LIMITS = Limits(timeout=10.0, memory_bytes=1024**3)
"""Of taking a page apart: an ordinary one takes a tenth of a second, and the first one of a process a second."""


class PageReader:
    """Reads the pages of jobs, in one worker's process."""

    def __init__(self, app: Penstock, settings: RecipeSettings, shares: FetchShares) -> None:
        self._settings = settings
        self._model = settings.language_model
        self._shares = shares
        cores = os.cpu_count() or 1
        self._processes_for_guests = app.child_processes(max(1, cores // 2))
        self._processes_for_users = app.child_processes(max(1, cores - cores // 2))

    async def read(self, item: RecipeItem | ItemContext[RecipeParams, PageInput], params: RecipeParams) -> RecipeResult:
        """The recipe on the page a job asks for."""
        # Loaded where pages are read: the command line and the server need neither.
        from penstock_apps.recipes.parsing.fetching import fetch
        from penstock_apps.recipes.parsing.reading import recipe_of

        share = params.get("share") or share_of(item.owner, None)
        is_sent = "page_sha256" in params
        with self._shares.take_place(share, None if is_sent else urlsplit(params["url"]).netloc.lower()):
            page: Page | KeptPage
            if "page_sha256" in params:
                page = KeptPage(params["url"], item.kept_file(params["page_sha256"]))
            else:
                page = await fetch(params["url"], self._settings.fetch_limits)
            processes = self._processes_for_guests if is_guests_share(share) else self._processes_for_users
            recipe = await recipe_of(
                page, self._model, llm_allowed=params["use_llm_fallback"], run_apart=partial(_run_apart, processes)
            )
        # Pages, and what is written in them as JSON, hold characters that no database keeps.
        result: RecipeResult = storable_texts(recipe.as_json(params["url"]))
        result["llm_may_help"] = recipe.llm_may_help
        return result


async def _run_apart(processes: ChildProcesses, function: Callable[[Argument], Value], argument: Argument) -> Value:
    try:
        return await processes.call_async(function, argument, _LIMITS)
    except (TimeLimitExceeded, MemoryLimitExceeded) as error:
        # A page that was written for that is not better the next time.
        raise PageFailure.TOO_COMPLEX.error(error.message) from error
