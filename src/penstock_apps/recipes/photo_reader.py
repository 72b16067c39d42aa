"""Reading the photos of a job: each picture in a process with limits, then all of them together as one recipe.

A picture takes a core for some seconds, and some hundreds of megabytes. So as many are read at once as there are
processes, and jobs beyond that go back to the queue without a try: a place that waits for a process is a page less.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from penstock import Permanent, owner
from penstock.app import ChildProcesses, Limits
from penstock.errors import MemoryLimitExceeded, TimeLimitExceeded, WorkerCrashed
from penstock.lifecycle import storable_texts
from penstock_apps.recipes.fetch_shares import FetchShares, share_of
from penstock_apps.recipes.photos.failures import PictureFailure
from penstock_apps.recipes.photos.text_lines import PictureFile
from penstock_apps.recipes.photos.text_reader import read_picture

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock_apps.recipes.payloads import PhotoParams, PhotoResult, RecipeItem, RecipeResult
    from penstock_apps.recipes.photos.text_lines import PictureText
    from penstock_apps.recipes.settings import RecipeSettings

Argument = TypeVar("Argument")
Value = TypeVar("Value")
_TEXT_LIMITS = Limits(timeout=10.0, memory_bytes=2 * 1024**3)
"""Of taking text apart, in a process that has the models in it already."""


def processes_for_pictures() -> int:
    """Half of the cores: the others are for pages, and for everybody else."""
    return max(1, (os.cpu_count() or 1) // 2)


class PhotoReader:
    """Reads the photos of jobs, in one worker's process."""

    def __init__(self, app: Penstock, settings: RecipeSettings, shares: FetchShares) -> None:
        self._app = app
        self._shares = shares
        self._settings = settings
        self._model = settings.language_model
        self._limits = Limits(timeout=settings.photo_timeout, memory_bytes=settings.photo_memory)
        self._processes = app.child_processes(processes_for_pictures())

    async def read(self, item: RecipeItem, params: PhotoParams) -> RecipeResult:
        """The recipe on the photos of a job."""
        # Loaded where recipes are read: the command line and the server do not need it.
        from penstock_apps.recipes.parsing.reading import complete_reading
        from penstock_apps.recipes.photos.card_reading import SeenCard, read_card

        share = params.get("share") or share_of(item.owner, None)
        with self._shares.take_place(share, None, pictures=processes_for_pictures()):
            texts: list[PictureText] = []
            for number, picture in enumerate(params["pictures"], 1):
                file = PictureFile(item.kept_file(picture["sha256"]), self._settings.photo_max_pixels)
                texts.append(await self._see(f"picture {number} ({picture['name']})", file))
            if not any(picture.lines for picture in texts):
                raise PictureFailure.WITHOUT_TEXT.error()
            card = SeenCard(tuple(picture.lines for picture in texts), params["title_hint"])
            run_apart = partial(_run_apart, self._processes)
            reading = await run_apart(read_card, card)
        recipe = await complete_reading(
            reading, "", self._model, llm_allowed=params["use_llm_fallback"], run_apart=run_apart
        )
        if params["title_hint"]:
            recipe.recipe.title = params["title_hint"]
        result: RecipeResult = storable_texts(recipe.as_json(""))
        result["recipe"]["source_url"] = None
        result["photos"] = await asyncio.to_thread(self._keep, texts, item.owner)
        return result

    async def _see(self, which: str, file: PictureFile) -> PictureText:
        """The text in one picture; what is wrong with it says which picture it is."""
        try:
            return await self._processes.call_async(read_picture, file, self._limits)
        except (TimeLimitExceeded, MemoryLimitExceeded) as error:
            # A picture that was made for that is not better the next time.
            raise PictureFailure.TOO_COMPLEX.error(f"{which}: {error.message}") from error
        except WorkerCrashed as error:
            raise PictureFailure.CRASHES_READER.error(f"{which}: {error.message}") from error
        except Permanent as error:
            raise Permanent(f"{which}: {error.message}", code=error.code) from error

    def _keep(self, texts: list[PictureText], user: str | None) -> list[PhotoResult]:
        """Keep the pictures as their owner is shown them."""
        files = self._app.acting_as(owner(user)).files
        photos: list[PhotoResult] = []
        for number, picture in enumerate(texts, 1):
            file = files.keep(io.BytesIO(picture.preview), name=f"photo-{number}.jpg", media_type="image/jpeg")
            photos.append({"file_id": str(file.id), "width": picture.width, "height": picture.height})
        return photos


async def _run_apart(processes: ChildProcesses, function: Callable[[Argument], Value], argument: Argument) -> Value:
    try:
        return await processes.call_async(function, argument, _TEXT_LIMITS)
    except (TimeLimitExceeded, MemoryLimitExceeded) as error:
        raise PictureFailure.TOO_COMPLEX.error(error.message) from error
