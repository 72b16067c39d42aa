"""Photos of recipes over HTTP: some pictures become a job of the queue, and are shown to who has sent them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Header, Path, Request, UploadFile
from starlette.responses import FileResponse, Response

from penstock import owner
from penstock.errors import LibraryMissing
from penstock.http import (
    FormField,
    Json,
    Router,
    SignedIn,
    StartForm,
    Submitting,
    count_less,
    documented,
    limit_body,
)
from penstock.lifecycle import SubmitOutcome
from penstock_apps.recipes import schemas as shapes
from penstock_apps.recipes import translation as words
from penstock_apps.recipes.photo_requests import LONGEST_HINT, MAX_PICTURES, SentPicture
from penstock_apps.recipes.service import Recipes

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same request again, with the same key, gives the same job."),
]
_EXAMPLE = {"requestBody": {"content": {"multipart/form-data": {"example": {"images": ["the file's bytes"]}}}}}
_FORM = StartForm(
    "Read photos of a recipe",
    text="Photos of a card, or of the pages of a book, become a recipe you can keep.",
    fields=(
        FormField(
            "images",
            "Photos of one recipe",
            "file",
            hint=f"Up to {MAX_PICTURES}, in their order.",
            accept="image/*",
            multiple=True,
        ),
        FormField("title_hint", "Its title, if you know it", required=False),
    ),
    button="Read them",
)


def photo_routes(recipes: Recipes) -> Router:
    """The addresses of photos."""
    routes = Router(prefix="/recipes", tags=["recipe queue"])
    photos = recipes.photos
    why_missing = photos.why_missing()

    if why_missing is not None:

        def refuse(who: Submitting) -> Response:
            raise LibraryMissing(why_missing)

        # It comes first and has no body, so that no byte of one is taken.
        routes.post("/from-image/jobs", include_in_schema=False, responses=documented(401, 503))(refuse)

    @routes.post(
        "/from-image/jobs", status_code=202, summary="Read photos of a recipe", response_model=shapes.PhotosStarted,
        responses=documented(400, 401, 409, 413, 422, 429, 503), openapi_extra=_EXAMPLE | _FORM.extra(),
    )  # fmt: skip
    @limit_body(photos.max_body_bytes, is_spooled=True, max_files=MAX_PICTURES + 1)
    def read_photos(
        images: list[UploadFile],
        who: Submitting,
        request: Request,
        title_hint: Annotated[
            str | None, Form(max_length=LONGEST_HINT, description="What the recipe is called, if you know it.")
        ] = None,
        use_llm_fallback: Annotated[
            bool, Form(description="May a language model be shown the text, where it is not clear?")
        ] = True,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """All pictures are one recipe. Its job is looked at, listed, canceled, saved and dismissed like a page's."""
        pictures = [
            SentPicture(image.file, image.filename or f"picture {number}", image.size or 0, image.content_type)
            for number, image in enumerate(images, 1)
        ]
        submission = photos.submit(
            pictures,
            user=who.user,
            title_hint=title_hint,
            use_llm_fallback=use_llm_fallback,
            idempotency_key=idempotency_key,
            ip_address=request.client.host if request.client else None,
        )
        if submission.answer is not SubmitOutcome.NEW:
            count_less(request)
        return Json({"job_id": str(submission.job.id), "status": words.status_of(submission.job)}, 202)

    @routes.get(
        "/jobs/{job_id}/photos/{number}", summary="One of its photos", response_class=FileResponse,
        responses=documented(401, 404, 422, 503)
        | {200: {"content": {"image/jpeg": {}}, "description": "A JPEG, upright and without the camera's data."}},
    )  # fmt: skip
    def get_photo(job_id: UUID, number: Annotated[int, Path(ge=1, le=MAX_PICTURES)], who: SignedIn) -> FileResponse:
        """As it was read; for its owner alone, not for admins either."""
        by = owner(who.user)
        path = photos.photo(recipes.get(job_id, by=by), number, by=by)
        return FileResponse(path, media_type="image/jpeg", headers={"Cache-Control": "private, no-store"})

    return routes
