"""How fast a recipe that is known is answered, and how fast pages are read.

A known recipe: ``POST /parse-requests`` of our server, with a token, against a bare Starlette route that reads the same
row. The load comes from a third process, in turns. Pages: one process reads pages of 100 kB from memory, each by
another of the readers; the ceiling there is no other program but the bar itself, 200 a second.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import httpx2

from benches.databases import Databases
from benches.load import CONNECTIONS, Load, load, require_wrk
from benches.plan import Plan, in_turns
from benches.recipe_pages import ADDRESS, PAGES, SIZE, json_ld
from benches.report import Answer, Bar, by_pairs
from benches.status_reads import SECRET, USER, serving
from penstock import Penstock
from penstock.http.tokens import OwnSecret, Tokens
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.parsing.page import Page
from penstock_apps.recipes.parsing.reading import read_page
from penstock_apps.recipes.parsing.recipe import FoundRecipe
from penstock_apps.recipes.settings import RecipeSettings

NAME = "recipes"
BAR = Bar(0.5)
PAGES_A_SECOND = 200.0
KNOWN = 1_000
OURS = ("-m", "penstock", "serve", "--no-worker", "--port", "0", "--app", "benches.recipe_app:app")


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database, and the pages, which need none."""
    require_wrk()
    return [known(databases, plan), *(pages(databases, plan, name) for name in PAGES)]


def known(databases: Databases, plan: Plan) -> Answer:
    """Requests a second for a recipe that was parsed not long ago."""
    token = Tokens(OwnSecret(SECRET)).issue(USER)
    with ExitStack() as open_now:
        url = open_now.enter_context(databases.fresh())
        fill(url)
        ours = open_now.enter_context(serving(url, *OURS))
        bare = open_now.enter_context(serving(url, "-m", "benches.recipe_peer", url))
        body = {"url": address(KNOWN // 2)}

        def ask_for_it(where: str, seconds: int) -> Load:
            return load(f"{where}/parse-requests", seconds=seconds, token=token, body=body)

        said, expected = (posted(f"{one}/parse-requests", body, token=token)["recipe"] for one in (ours, bare))
        assert said["ingredients"] == expected["ingredients"], "both answer the same recipe"
        for where in (ours, bare):
            ask_for_it(where, 1)
        mine, theirs = in_turns(
            lambda: ask_for_it(ours, plan.seconds_of_load),
            lambda: ask_for_it(bare, plan.seconds_of_load),
            plan.repetitions_of_load,
        )
    sides = [f"p50 {_middle(side, 'p50')} ms, p99 {_middle(side, 'p99')} ms" for side in (mine, theirs)]
    return by_pairs(
        NAME, f"a known recipe of {KNOWN:,}, bare route", databases.name, "requests/s",
        [one.rate for one in mine], [one.rate for one in theirs], bar=BAR,
        notes=[f"{CONNECTIONS} connections; {sides[0]}; the ceiling's {sides[1]}"],
    )  # fmt: skip


def read(page: str) -> FoundRecipe:
    """What a page says, as the processes read it that workers have for that."""
    found = read_page(Page(ADDRESS, page.encode(), "utf-8")).recipe
    assert found is not None
    return found


def fill(url: str) -> None:
    """Keep recipes as a worker does that has parsed their pages."""
    app = Penstock(url)
    recipes = app.install(recipes_application, RecipeSettings())
    app.system.migrate()
    result = read(json_ld()).as_json(ADDRESS)

    def keep_all(connection: Any) -> None:
        for number in range(KNOWN):
            recipes.repository.keep(connection, key_of(address(number)), result)

    app.in_transaction(keep_all)
    app.close()


def address(number: int) -> str:
    """Where a recipe is from, as it is kept."""
    return f"{ADDRESS}/{number}"


def pages(databases: Databases, plan: Plan, name: str) -> Answer:
    """Pages a second of the processor's time of one process; the database has no part in it."""
    page = PAGES[name]()
    assert len(read(page).recipe.ingredients) > 10, f"the page of {name} was not read"
    rates = []
    for _ in range(plan.repetitions_of_load):
        count = 0
        begun = time.process_time()
        while time.process_time() - begun < plan.seconds_of_load:
            read(page)
            count += 1
        rates.append(count / (time.process_time() - begun))
    bars = [PAGES_A_SECOND] * len(rates)
    what = f"pages of {SIZE // 1000} kB, {name}"
    return by_pairs(NAME, what, databases.name, "pages/s", rates, bars, bar=Bar(1), notes=["the ceiling is the bar"])


def _middle(loads: Sequence[Load], what: str) -> str:
    return f"{statistics.median(getattr(one, what) for one in loads):.1f}"


def posted(url: str, body: dict[str, str], *, token: str) -> Any:
    """One answer's content, to see that it is the one that is meant."""
    answer = httpx2.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, f"{url} answers {answer.status_code}: {answer.text[:500]}"
    return answer.json()
