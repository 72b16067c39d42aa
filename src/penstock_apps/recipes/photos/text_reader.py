"""Seeing the text in a picture, with RapidOCR. It is loaded once for each process that reads pictures.

The models come in the library's package. They are named here, so that it never looks for others on the network.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from penstock import Retryable
from penstock_apps.recipes.photos.failures import EXTRA
from penstock_apps.recipes.photos.text_lines import Corner, PictureFile, PictureText, SeenText

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PIL import Image


_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
_LONGEST_EDGE_TO_SEARCH = 1280
"""Where text stands is found in a smaller picture: a third of the memory. It is read in the larger one."""
_LINES_AT_ONCE = 2
_TALL = 1.5
"""A piece of text that is so much taller than wide was written along the other edge."""
_SHORT = 3
_UNLIKELY = 0.75
"""Text that stands on its head is read all the same, as nonsense, and the library knows that it is none."""


class _Answer(Protocol):
    boxes: Iterable[Sequence[Sequence[float]]] | None
    txts: Sequence[str] | None
    scores: Sequence[float] | None


class _Engine(Protocol):
    def __call__(self, picture: Image.Image) -> _Answer: ...


def read_picture(file: PictureFile) -> PictureText:
    """The text in a picture. A stranger made it: this runs in a process with limits."""
    from penstock_apps.recipes.photos.pictures import open_upright, preview_of

    engine = _engine()
    picture = open_upright(file)
    lines = _see(engine, picture)
    if _lies_on_its_side(lines):
        picture = picture.rotate(90, expand=True)
        lines = _see(engine, picture)
    if lines and confidence_of(lines) < _UNLIKELY:
        upside_down = picture.rotate(180)
        other_lines = _see(engine, upside_down)
        if confidence_of(other_lines) > confidence_of(lines):
            picture, lines = upside_down, other_lines
    return PictureText(lines, preview_of(picture), picture.width, picture.height)


def confidence_of(lines: Sequence[SeenText]) -> float:
    """How sure the library is of a character, on the average."""
    count = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / count if count else 0.0


def _lies_on_its_side(lines: Sequence[SeenText]) -> bool:
    """Is most of the text written along the other edge?"""
    long_lines = [line for line in lines if len(line.text) >= _SHORT]
    tall_lines = [line for line in long_lines if line.height > _TALL * line.width]
    return len(tall_lines) * 2 > len(long_lines)


@cache
def _engine() -> _Engine:
    """One for each process. It has one thread: there are as many processes as may take a core."""
    try:
        import onnxruntime
        import rapidocr
    except ModuleNotFoundError as error:
        message = f"reading pictures needs {error.name}, not installed where this worker runs: install {EXTRA}"
        raise Retryable(message, code="LIBRARY_MISSING") from error
    onnxruntime.disable_telemetry_events()
    models = Path(rapidocr.__file__).parent / "models"
    params: dict[str, object] = {
        "Global.log_level": "critical",
        "Global.use_cls": False,  # it turns each line by itself; a picture is turned as a whole
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Det.limit_type": "max",
        "Det.limit_side_len": _LONGEST_EDGE_TO_SEARCH,
        "Rec.rec_batch_num": _LINES_AT_ONCE,
    }
    params |= {f"{part}.model_path": str(models / name) for part, name in _MODELS.items()}
    return cast("_Engine", rapidocr.RapidOCR(params=params))


def _see(engine: _Engine, picture: Image.Image) -> tuple[SeenText, ...]:
    answer = engine(picture)
    if answer.boxes is None or answer.txts is None or answer.scores is None:
        return ()
    return tuple(
        SeenText(text.strip(), float(score), _corners(box))
        for box, text, score in zip(answer.boxes, answer.txts, answer.scores, strict=True)
        if text.strip()
    )


def _corners(box: Sequence[Sequence[float]]) -> tuple[Corner, Corner, Corner, Corner]:
    first, second, third, fourth = ((float(point[0]), float(point[1])) for point in box)
    return first, second, third, fourth
