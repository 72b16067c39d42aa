"""Photos of recipes from upload to mailbox, by the real library where what is read matters."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import httpx2
import pytest
from PIL import Image

from penstock import JobState, Penstock, Permanent, Retryable, load_settings, owner
from penstock.errors import FileNotFound
from penstock_apps.recipes import photo_reader, photo_requests
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.fetch_shares import FetchShares
from penstock_apps.recipes.payloads import PhotoParams, RecipeItem
from penstock_apps.recipes.photo_reader import PhotoReader
from penstock_apps.recipes.photo_requests import SentPicture
from penstock_apps.recipes.photos.text_lines import PictureFile, PictureText
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes import photos
from tests.http.conftest import SECRET, Served, serving
from tests.waiting import eventually

PATIENCE = 100.0
READ = "/recipes/from-image/jobs"
INGREDIENTS = ["2 tbsp olive oil", "1 ½ cups tomatoes, chopped", "Salt, to taste"]
STEPS = ["Warm the oil in a pot and fry the onion until it is soft.", "Add the tomatoes and simmer."]
Reader = Callable[[PictureFile], PictureText]


class Darkroom:
    """A server with a worker that reads photos, shared by all these tests: to load the models takes a while."""

    def __init__(self, app: Penstock, recipes: Recipes, served: Served) -> None:
        self.app, self.recipes, self.served = app, recipes, served
        self._people = 0

    def somebody(self) -> httpx2.Client:
        """A user nobody else has."""
        self._people += 1
        return self.served.client(f"person-{self._people}")

    def ended(self, answer: httpx2.Response) -> UUID:
        """The job of an answer, once it is over."""
        assert answer.status_code == 202, answer.text
        job = UUID(answer.json()["job_id"])
        self.app.jobs.wait(job, timeout=PATIENCE, every=0.02)
        return job


@pytest.fixture(scope="module")
def shared_darkroom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Darkroom]:
    folder = tmp_path_factory.mktemp("darkroom")
    settings = load_settings(
        database_url=f"sqlite:///{folder}/penstock.db", files_directory=folder / "files", jwt_secret=SECRET,
        sweep_seconds=600.0, flush_ms=50, poll_seconds=0.2, submissions_per_minute=1_000_000,
    )  # fmt: skip
    app = Penstock(settings=settings)
    own = RecipeSettings(photo_timeout=PATIENCE, photo_max_bytes=300_000, photo_max_pixels=2_000_000)
    recipes = app.install(replace(recipes_application, install=Recipes), own)
    app.system.migrate()
    with serving(app, worker=True) as served:
        yield Darkroom(app, recipes, served)
    app.close()


@pytest.fixture
def darkroom(shared_darkroom: Darkroom) -> Darkroom:
    """With the real library."""
    return shared_darkroom


@pytest.fixture
def quick(shared_darkroom: Darkroom, monkeypatch: pytest.MonkeyPatch) -> Darkroom:
    """With one that sees the same card in every picture, at once."""
    monkeypatch.setattr(photo_reader, "read_picture", photos.read_at_once)
    return shared_darkroom


def send(client: httpx2.Client, *pictures: bytes, key: str | None = None, **fields: str) -> httpx2.Response:
    files = [("images", (f"photo-{n}.png", content)) for n, content in enumerate(pictures, 1)]
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(READ, files=files, data=fields, headers=headers)


def status(client: httpx2.Client, job: UUID) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"/recipes/jobs/{job}").json()
    return answer


_colours = iter(range(1, 250))


def blank() -> bytes:
    """A picture that nobody has sent yet."""
    return photos.encoded(Image.new("L", (4, 4), next(_colours)))


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "title", "ingredients", "steps"),
    [
        (photos.askew, "Tomato soup", INGREDIENTS, STEPS),
        (lambda: photos.card().rotate(180), "Tomato soup", INGREDIENTS, STEPS),
        (
            photos.two_columns,
            "Apple crumble",
            ["6 apples", "100 g sugar", "150 g flour", "75 g butter"],
            ["Peel the apples and cut them up.", "Rub the butter into the flour.", "Stir in the sugar.",
             "Bake for 40 minutes."],
        ),
        (
            lambda: photos.card(photos.GERMAN),
            "Omas Käsespätzle",
            ["500 g Mehl", "4 Eier", "200 g Bergkäse, gerieben"],
            ["Mehl, Eier und Wasser zu einem zähen Teig schlagen.", "Den Teig in kochendes Wasser hobeln."],
        ),
    ],
    ids=["turned by 3°", "upside down", "two columns", "German"],
)  # fmt: skip
def test_a_card_is_read(
    darkroom: Darkroom, picture: Callable[[], Image.Image], title: str, ingredients: list[str], steps: list[str]
) -> None:
    ada = darkroom.somebody()
    shown = status(ada, darkroom.ended(send(ada, photos.encoded(picture()))))
    assert shown["status"] == "COMPLETE", shown
    recipe = shown["result"]["recipe"]
    assert (recipe["title"], [each["line"] for each in recipe["ingredients"]]) == (title, ingredients)
    assert recipe["steps"] == steps
    assert shown["result"]["warnings"] == []
    assert (shown["result"]["parser_strategy"], recipe["source_url"]) == ("photo", None)


def test_two_photos_of_a_card_are_one_recipe_which_is_saved_from_the_mailbox(darkroom: Darkroom) -> None:
    ada = darkroom.somebody()
    front, back = photos.card(photos.CARD[:8]), photos.card(photos.CARD[8:])
    job = darkroom.ended(send(ada, photos.encoded(front), photos.encoded(back, "JPEG"), title_hint="  My  soup "))
    [card] = ada.get("/recipes/parse-url/jobs").json()["jobs"]
    assert card["expires_at"] is not None
    assert (card["id"], card["job_type"], card["url"]) == (str(job), "ocr", None)
    assert card["preview"] == {"title": "My soup", "source_host": None}
    result = status(ada, job)["result"]
    assert [each["line"] for each in result["recipe"]["ingredients"]] == INGREDIENTS
    assert result["recipe"]["steps"] == STEPS
    assert [(photo["width"], photo["height"]) for photo in result["photos"]] == [(460, 460), (460, 460)]
    saved = ada.post("/recipes", json={"title": "My soup", "parse_job_id": str(job)})
    assert (saved.status_code, saved.json()["source_type"]) == (201, "image")
    assert status(ada, job)["status"] == "COMMITTED"
    assert ada.get("/recipes/parse-url/jobs").json()["jobs"] == []
    assert not {"rapidocr", "onnxruntime", "cv2"} & set(sys.modules), "what reads pictures is in a process of its own"


def test_a_photo_of_nothing_has_no_text(darkroom: Darkroom) -> None:
    ada = darkroom.somebody()
    shown = status(ada, darkroom.ended(send(ada, photos.encoded(Image.new("RGB", (300, 300), "#7a9")))))
    assert (shown["status"], shown["error_code"]) == ("ERROR", "PICTURE_WITHOUT_TEXT")
    assert shown["next_action"] is None


# Who sees what --------------------------------------------------------------------------------------------------------


def test_a_photo_is_served_to_its_owner_alone_as_a_jpeg(quick: Darkroom) -> None:
    ada, ben = quick.somebody(), quick.somebody()
    path = f"/recipes/jobs/{quick.ended(send(ada, blank()))}/photos"
    answer = ada.get(f"{path}/1")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert Image.open(io.BytesIO(answer.content)).format == "JPEG"
    others = (ben, quick.served.client("root", admin=True), quick.served.client(None))
    assert [other.get(f"{path}/1").status_code for other in others] == [404, 404, 401]
    assert [ada.get(f"{path}/{number}").status_code for number in (0, 2, 9)] == [422, 404, 422]
    assert ada.get(f"{path}/2").json()["code"] == "PICTURE_NOT_FOUND"


def test_a_photo_whose_file_is_gone_is_not_found(quick: Darkroom) -> None:
    ada = quick.somebody()
    job = quick.ended(send(ada, blank()))
    [photo] = status(ada, job)["result"]["photos"]
    quick.app.files.path(UUID(photo["file_id"])).unlink()
    gone = ada.get(f"/recipes/jobs/{job}/photos/1")
    assert (gone.status_code, gone.json()["code"]) == (404, "PICTURE_NOT_FOUND")


def test_a_guest_reads_no_photos(quick: Darkroom) -> None:
    assert send(quick.served.client(None), blank()).status_code == 401


# The same again -------------------------------------------------------------------------------------------------------


def test_the_same_photos_again_are_the_same_job_for_one_person(quick: Darkroom) -> None:
    ada, ben = quick.somebody(), quick.somebody()
    one, other = blank(), blank()
    job = quick.ended(send(ada, one, other))
    assert quick.ended(send(ada, one, other)) == job
    assert quick.ended(send(ada, one, other, one)) == job, "the same picture twice says nothing twice"
    others = {
        quick.ended(send(ada, other, one)),
        quick.ended(send(ada, one)),
        quick.ended(send(ada, one, other, title_hint="Soup")),
        quick.ended(send(ada, one, other, use_llm_fallback="false")),
        quick.ended(send(ben, one, other)),
    }
    assert len(others | {job}) == 6
    assert [quick.app.jobs.get(each).state for each in others] == [JobState.SUCCEEDED] * 5
    assert ben.get(f"/recipes/jobs/{job}").status_code == 404


def test_a_key_stands_for_one_request(quick: Darkroom) -> None:
    ada = quick.somebody()
    picture = blank()
    job = quick.ended(send(ada, picture, key="a"))
    assert quick.ended(send(ada, picture, key="a")) == job
    refused = send(ada, blank(), key="a")
    assert (refused.status_code, refused.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    ada.post(f"/recipes/jobs/{job}/abandon")
    assert quick.ended(send(ada, picture, key="a")) == job, "also when it is over"


def test_photos_that_were_dismissed_are_read_again(quick: Darkroom) -> None:
    ada = quick.somebody()
    picture = blank()
    job = quick.ended(send(ada, picture))
    assert ada.post(f"/recipes/parse-url/jobs/{job}/abandon").json()["status"] == "ABANDONED"
    again = quick.ended(send(ada, picture))
    assert again != job
    assert status(ada, again)["status"] == "COMPLETE"
    assert ada.get(f"/recipes/jobs/{again}/photos/1").status_code == 200


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pictures", "expected", "code"),
    [
        ([], 422, "INVALID_INPUT"),
        ([b"x"] * 9, 422, "PICTURE_COUNT"),
        ([b"x", b""], 422, "PICTURE_EMPTY"),
        ([b"x" * 300_001], 413, "PICTURE_TOO_LARGE"),
        ([b"x" * 300_000] * 9, 413, "BODY_TOO_LARGE"),
        ([b"x"] * 10, 400, "REQUEST_REFUSED"),
    ],
    ids=["none", "nine", "empty", "large", "large in all", "ten"],
)
def test_what_is_refused_leaves_nothing(quick: Darkroom, pictures: list[bytes], expected: int, code: str) -> None:
    ada = quick.somebody()
    files_before = sum(1 for _ in quick.app.settings.files_directory.rglob("*"))
    refused = send(ada, *pictures) if pictures else ada.post(READ, data={"title_hint": "Soup"})
    assert (refused.status_code, refused.json()["code"]) == (expected, code)
    assert sum(1 for _ in quick.app.settings.files_directory.rglob("*")) == files_before
    assert ada.get("/recipes/parse-url/jobs?status=PENDING&include_expired=true").json()["jobs"] == []


def test_a_hint_has_bounds(quick: Darkroom) -> None:
    assert send(quick.somebody(), blank(), title_hint="x" * 501).status_code == 422


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (photos.bomb(), "PICTURE_TOO_MANY_PIXELS"),
        (b"words", "PICTURE_UNSUPPORTED"),
        (photos.encoded(photos.card(), "JPEG")[:-3_000], "PICTURE_BROKEN"),
    ],
    ids=["bomb", "words", "cut"],
)
def test_the_job_says_which_picture_is_wrong(
    shared_darkroom: Darkroom, monkeypatch: pytest.MonkeyPatch, content: bytes, code: str
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", photos.see_at_once)
    ada = shared_darkroom.somebody()
    shown = status(ada, shared_darkroom.ended(send(ada, blank(), content)))
    assert (shown["status"], shown["error_code"]) == ("ERROR", code)
    assert shown["error_message"].startswith("picture 2 (photo-2.png): ")


def test_without_the_library_the_answer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photo_requests, "_NEEDS", ("rapidocr", "no_such_library"))
    app = Penstock(settings=load_settings(database_url="sqlite://", jwt_secret=SECRET))
    app.system.migrate()
    app.install(replace(recipes_application, install=Recipes), RecipeSettings())
    with serving(app, worker=False) as served:
        ada = served.client("ada")
        refused = send(ada, blank())
        assert (refused.status_code, refused.json()["code"]) == (503, "LIBRARY_MISSING")
        assert "no_such_library, not installed here: install penstock[recipe-photos]" in refused.json()["message"]
        assert send(served.client(None), blank()).status_code == 401
        assert ada.get("/recipes/parse-url/jobs").status_code == 200, "pages are read all the same"
    app.close()


# What goes wrong ------------------------------------------------------------------------------------------------------


def test_a_reader_that_crashes_is_tried_again_until_somebody_cancels(
    shared_darkroom: Darkroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", photos.read_and_die)
    ada = shared_darkroom.somebody()
    job = UUID(send(ada, blank()).json()["job_id"])

    def codes() -> list[str | None]:
        return [item.error_code for item in shared_darkroom.app.items.page(job)]

    eventually(lambda: codes() == ["PICTURE_CRASHES_READER"], PATIENCE)
    assert ada.post(f"/recipes/parse-url/jobs/{job}/cancel").json()["status"] == "CANCELED"
    assert ada.post(f"/recipes/parse-url/jobs/{job}/cancel").status_code == 409


def test_a_canceled_job_frees_the_process_that_reads_its_picture(
    shared_darkroom: Darkroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", photos.read_for_ever)
    ada = shared_darkroom.somebody()
    jobs = [UUID(send(ada, blank()).json()["job_id"]) for _ in range(photo_reader.processes_for_pictures())]
    eventually(lambda: {status(ada, job)["status"] for job in jobs} == {"RUNNING"}, PATIENCE)
    for job in jobs:
        assert ada.post(f"/recipes/jobs/{job}/cancel").status_code == 200
    monkeypatch.setattr(photo_reader, "read_picture", photos.read_at_once)
    assert status(ada, shared_darkroom.ended(send(ada, blank())))["status"] == "COMPLETE"
    assert [status(ada, job)["status"] for job in jobs] == ["CANCELED"] * len(jobs)


def test_a_job_for_photos_is_not_reprocessed_as_none_of_a_page_is(quick: Darkroom) -> None:
    ada = quick.somebody()
    job = quick.ended(send(ada, blank()))
    refused = ada.post(f"/api/jobs/{job}/reprocess", json={})
    assert refused.status_code in (404, 409, 422), refused.text
    assert status(ada, job)["status"] == "COMPLETE"


@pytest.mark.parametrize(
    ("reader", "expected", "code"),
    [
        (photos.read_for_ever, Permanent, "PICTURE_TOO_COMPLEX"),
        (photos.read_too_much, Permanent, "PICTURE_TOO_COMPLEX"),
        (photos.read_without_library, Retryable, "LIBRARY_MISSING"),
    ],
)
def test_limits_are_kept_by_killing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reader: Reader, expected: type[Exception], code: str
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", reader)
    settings = RecipeSettings(
        photo_timeout=1.0 if reader is photos.read_for_ever else PATIENCE, photo_memory=200_000_000
    )
    app = Penstock("sqlite://")
    pictures = PhotoReader(app, settings, FetchShares())
    params = PhotoParams(
        job_type="ocr", pictures=[{"sha256": "a", "name": "a.png"}], title_hint=None, use_llm_fallback=False
    )
    item = SimpleNamespace(owner="ada", kept_file=lambda digest: tmp_path / digest)
    with pytest.raises(expected) as failure:
        asyncio.run(pictures.read(cast("RecipeItem", item), params))
    assert (cast("Any", failure.value).code, "picture 1 (a.png)" in str(failure.value)) == (code, expected is Permanent)
    app.close()


def test_what_nobody_saves_is_abandoned_and_its_photos_are_shown_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", photos.read_at_once)
    app = Penstock(
        settings=load_settings(database_url=f"sqlite:///{tmp_path}/a.db", files_directory=tmp_path / "files")
    )
    recipes = app.install(
        replace(recipes_application, install=Recipes), RecipeSettings(abandon_minutes=0.00001, prune_results=True)
    )
    app.system.migrate()
    picture = blank()
    sent = SentPicture(io.BytesIO(picture), "a.png", len(picture))
    job = recipes.photos.submit([sent], user="ada").job
    assert app.drain(timeout=PATIENCE)
    app.system.sweep()
    job = recipes.get(job.id, by=owner("ada"))
    assert job.state is JobState.ABANDONED
    with pytest.raises(FileNotFound) as gone:
        recipes.photos.photo(job, 1, by=owner("ada"))
    assert gone.value.code == "PICTURE_NOT_FOUND"
    app.close()
