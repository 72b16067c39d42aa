"""The downstream program: reads requests from Kafka, fetches and parses the pages, and answers there.

It has no database of its own: what it has not answered is still in the broker, and is read again by whoever gets its
partition when it dies. Each page is read as a Penstock worker reads one, in a process with limits of time and memory
and tries that wait for busy sites; the Penstock that does it lives in this process's memory and forgets.

A request that comes twice is answered twice, with the same ids: whoever reads the answers has their effect once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from types import FrameType
from uuid import UUID, uuid5

from penstock import SYSTEM, JobState, Kind, Penstock, Policy
from penstock.app import Message
from penstock.errors import MessageRefused
from penstock.lifecycle import JSON
from penstock.messages import KafkaClient
from penstock.settings import Settings, load_settings, read_settings
from penstock_apps.recipes.kinds import read_page
from penstock_apps.recipes.parser_messages import (
    LONGEST_ERROR,
    LONGEST_TITLE,
    MAX_INGREDIENTS,
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
_ANSWERS = UUID("7b5d4e0a-2f7c-4f0e-9a56-0f5f9f2f7f10")
"""What ids of answers are made in: it must never change."""
_POLICY = Policy(retries=3, backoff="2s exponential up to 30s", runs_in="processes", timeout="2m", memory_limit="1GiB")


class Pages:
    """Reads pages, each in a process of its own with limits."""

    def __init__(self, settings: Settings) -> None:
        own_settings = {"database_url": "sqlite://", "transport": "in-process"}
        self.app = Penstock(settings=settings.model_copy(update=own_settings))
        self._kind: Kind[RecipeParams, PageInput, RecipeResult] = self.app.kinds.add(Kind.of(_PAGE, read_page, _POLICY))
        self.count = 0

    def parse(self, request: ParseRequest) -> dict[str, JSON]:
        """What came of a page, in the words of a result."""
        self.count += 1
        params = RecipeParams(url=request.url, url_hash=request.urlHash, use_llm_fallback=request.useLlmFallback)
        submission = self.app.acting_as(SYSTEM).submit(self._kind, params)
        job = self.app.acting_as(SYSTEM).jobs.wait(submission.job.id, timeout=_LONGEST_SECONDS)
        if job.state is JobState.SUCCEEDED and is_recipe_result(job.result):
            return _describe_recipe(job.result)
        return {"success": False, "errorMessage": (job.last_error or "nothing was found")[:LONGEST_ERROR]}


class Parser:
    """A member of the group that reads ``parse-requests``."""

    def __init__(self, settings: Settings, recipe_settings: RecipeSettings) -> None:
        self._settings = settings
        self._client = KafkaClient(settings)
        self._results_topic = recipe_settings.results_topic
        self._pages = Pages(settings)
        group = f"{settings.kafka_group}-recipe-parsers"
        self._consumer = self._client.consumer([recipe_settings.requests_topic], self.answer, group=group)

    def run(self, until: threading.Event) -> None:
        """Parse until ``until`` is set; what is in hand then is finished."""
        with self._polling(until):
            while not until.is_set():
                with closing(self._pages.app), self._pages.app.working():
                    while not until.is_set() and self._pages.count < _PAGES_KEPT:
                        self._consumer.handle()
                self._pages = Pages(self._settings)

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
    return {
        "success": True,
        "title": recipe["title"][:LONGEST_TITLE],
        "ingredients": ingredients[:MAX_INGREDIENTS],
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
