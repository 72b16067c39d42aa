"""The downstream program: reads requests from Kafka, fetches and parses the pages, and answers there.

It has no database of its own: what it has not answered is still in the broker, and is read again by whoever gets its
partition when it dies. Each page is read as a Penstock worker reads one, tens at once, each with its share of them and
with tries that wait for busy sites; the Penstock that does it lives in this process's memory and forgets.

A request that comes twice is answered twice, with the same ids: whoever reads the answers has their effect once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from uuid import UUID, uuid5

import orjson

from penstock import SYSTEM, ItemContext, JobState, Kind, Penstock, Policy
from penstock.app import Message
from penstock.errors import MessageRefused
from penstock.lifecycle import JSON
from penstock.messages import KafkaClient
from penstock.settings import Settings, load_settings, read_settings
from penstock_apps.recipes.fetch_shares import PLACES, FetchShares
from penstock_apps.recipes.page_reader import PageReader
from penstock_apps.recipes.parser_messages import (
    LONGEST_ERROR,
    LONGEST_RESULT,
    LONGEST_TITLE,
    ParseRequest,
    read,
)
from penstock_apps.recipes.payloads import PageInput, RecipeParams, RecipeResult, is_recipe_result
from penstock_apps.recipes.settings import RecipeSettings

_PAGE = "page"
_LONGEST_SECONDS = 1_800.0
"""More than all tries of a page and the pauses between them take."""
_PAGES_KEPT = 1_000
"""So many jobs are kept in memory before all of them are forgotten."""
_REQUESTS = 4 * PLACES
"""Requests in hand at once: some of them wait for their share of the places, and keep no others from one."""
_LOOK_SECONDS = 0.2
_ANSWERS = UUID("7b5d4e0a-2f7c-4f0e-9a56-0f5f9f2f7f10")
"""What ids of answers are made in: it must never change."""


class Pages:
    """Reads pages as a worker does, for as many requests as it is to remember."""

    def __init__(self, settings: Settings, recipe_settings: RecipeSettings) -> None:
        own_settings = {"database_url": "sqlite://", "transport": "in-process"}
        self._app = Penstock(settings=settings.model_copy(update=own_settings))
        policy = Policy(
            retries=3, backoff="2s exponential up to 30s", timeout="5m", concurrency=PLACES, slows_down=False
        )
        self._reader = PageReader(self._app, recipe_settings, FetchShares())
        self._kind: Kind[RecipeParams, PageInput, RecipeResult] = self._app.kinds.add(
            Kind.of(_PAGE, self._read, policy)
        )
        self._worker = self._app.worker()
        self._worker.start()
        self.parsed_count = 0
        self.open_count = 0

    async def _read(self, item: ItemContext[RecipeParams, PageInput]) -> RecipeResult:
        return await self._reader.read(item, item.params)

    def parse(self, request: ParseRequest) -> dict[str, JSON]:
        """What came of a page, in the words of a result."""
        params = RecipeParams(
            url=request.url,
            url_hash=request.urlHash,
            use_llm_fallback=request.useLlmFallback,
            share=request.share or str(request.requestId),
        )
        system = self._app.acting_as(SYSTEM)
        job = system.jobs.wait(system.submit(self._kind, params).job.id, timeout=_LONGEST_SECONDS, every=_LOOK_SECONDS)
        if job.state is JobState.SUCCEEDED and is_recipe_result(job.result):
            return _describe_recipe(job.result)
        return {"success": False, "errorMessage": (job.last_error or "nothing was found")[:LONGEST_ERROR]}

    def close(self) -> None:
        """Stop the worker, and forget everything."""
        self._worker.stop()
        self._app.close()


class PageMemory:
    """The pages of one parser: after some it begins anew, and the old ones are forgotten when the last has ended."""

    def __init__(self, settings: Settings, recipe_settings: RecipeSettings) -> None:
        self._new_pages = partial(Pages, settings, recipe_settings)
        self._lock = threading.Lock()
        self._pages = self._new_pages()

    def parse(self, request: ParseRequest) -> dict[str, JSON]:
        """What came of a page; from any thread."""
        with self._lock:
            if self._pages.parsed_count >= _PAGES_KEPT:
                old, self._pages = self._pages, self._new_pages()
                self._close_unused(old)
            pages = self._pages
            pages.parsed_count += 1
            pages.open_count += 1
        try:
            return pages.parse(request)
        finally:
            with self._lock:
                pages.open_count -= 1
                if pages is not self._pages:
                    self._close_unused(pages)

    def close(self) -> None:
        """Forget everything; nobody parses any more."""
        self._pages.close()

    def _close_unused(self, pages: Pages) -> None:
        if not pages.open_count:
            pages.close()


class Parser:
    """A member of the group that reads ``parse-requests``; it reads as many pages at once as a worker does.

    Answers come in any order, as pages do: one that takes long keeps nobody else waiting.
    """

    def __init__(self, settings: Settings, recipe_settings: RecipeSettings) -> None:
        self._client = KafkaClient(settings)
        self._results_topic = recipe_settings.results_topic
        self._pages = PageMemory(settings, recipe_settings)
        group = f"{settings.kafka_group}-recipe-parsers"
        self._consumer = self._client.consumer([recipe_settings.requests_topic], self.answer, group=group)

    def run(self, until: threading.Event) -> None:
        """Parse until ``until`` is set; what is in hand then is finished."""

        def handle() -> None:
            while not until.is_set():
                self._consumer.handle()

        threads = [threading.Thread(target=handle, name=f"penstock-parser-{number}") for number in range(_REQUESTS)]
        with self._polling(until):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    @contextmanager
    def _polling(self, until: threading.Event) -> Iterator[None]:
        """The broker hears from this member all the time, however long a page takes; what fails there ends it all."""
        is_over = threading.Event()
        errors: list[BaseException] = []

        def poll() -> None:
            try:
                while not is_over.is_set():
                    self._consumer.poll()
            except BaseException as error:  # noqa: BLE001 - it is raised where somebody hears of it
                errors.append(error)
                until.set()

        thread = threading.Thread(target=poll, name="penstock-parser-poll", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Leave the group, and let go of everything."""
        self._consumer.close()
        self._client.close()
        self._pages.close()

    def answer(self, message: Message) -> None:
        """Say that a request is begun, parse its page, and say what came of it."""
        request = read(ParseRequest, message.payload)
        if not request.url.startswith(("http://", "https://")):
            raise MessageRefused("its url does not begin with http:// or https://")
        self._say(message, "start", request, {"status": "PROCESSING"})
        self._say(message, "result", request, self._pages.parse(request))

    def _say(self, message: Message, what: str, request: ParseRequest, words: dict[str, JSON]) -> None:
        """Write an answer, and return when it is safe at the broker."""
        payload = {"requestId": str(request.requestId), "urlHash": request.urlHash, **words}
        answer_id = str(uuid5(_ANSWERS, f"{message.id} {what}"))
        answer = Message(answer_id, self._results_topic, request.urlHash, payload, datetime.now(UTC))
        self._client.send(answer).wait()


def _describe_recipe(result: RecipeResult) -> dict[str, JSON]:
    """A recipe in the words of a result: what the message has room for."""
    recipe = result["recipe"]
    ingredients: list[JSON] = [
        {"quantity": line["quantity"], "unit": line["unit"], "name": line["name"]} for line in recipe["ingredients"]
    ]
    size = len(orjson.dumps(ingredients))
    if size > LONGEST_RESULT:
        reason = f"its {len(ingredients)} ingredients are {size} bytes, and a message has {LONGEST_RESULT} at most"
        return {"success": False, "errorMessage": f"the recipe is too large to be sent: {reason}"}
    return {
        "success": True,
        "title": recipe["title"][:LONGEST_TITLE],
        "ingredients": ingredients,
        "usedLlm": result["used_llm"],
    }


def run_parser(settings: Settings | None = None) -> None:
    """What ``penstock recipes parser`` does."""
    settings = settings or load_settings()
    recipe_settings = read_settings(RecipeSettings)
    parser = Parser(settings, recipe_settings)
    stop = threading.Event()
    with _stopped_by_signals(stop.set):
        print(f"parsing the requests of {recipe_settings.requests_topic}", flush=True)
        try:
            parser.run(stop)
        finally:
            parser.close()


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop()

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, on_signal) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
