"""Photos of recipes as their users know them: send some, see them in the mailbox beside what was read.

Photos are their owner's alone. The same photos sent again by the same person are the same job, while it runs and some
time after; nobody else's job is followed for them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from penstock import Caller, Job, Kind, Penstock, Submission, owner
from penstock.errors import FileNotFound, InvalidInput, PayloadTooLarge
from penstock.lifecycle import JSON, SubmitOutcome
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.fetch_shares import share_of
from penstock_apps.recipes.payloads import JobInput, JobParams, PhotoParams, RecipeResult, is_recipe_result
from penstock_apps.recipes.photos.failures import EXTRA, PictureFailure
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.uploads import sha256_of

JOB_TYPE = "ocr"
MAX_PICTURES = 8
LONGEST_HINT = 500
_NEEDS = ("onnxruntime", "PIL", "rapidocr")
_SENT_TWICE = "10m"


@dataclass(frozen=True, slots=True)
class SentPicture:
    """A picture on its way in."""

    stream: BinaryIO
    name: str
    size: int
    media_type: str | None = None


class PhotoRequests:
    """The photos of one recipes application."""

    def __init__(self, app: Penstock, kind: Kind[JobParams, JobInput, RecipeResult], settings: RecipeSettings) -> None:
        self._app = app
        self._kind = kind
        self._settings = settings

    @property
    def max_body_bytes(self) -> int:
        """The largest request: as many pictures as are taken, each as large as it may be."""
        return min(MAX_PICTURES * self._settings.photo_max_bytes + 64 * 1024, self._app.settings.max_body_bytes)

    @staticmethod
    def why_missing() -> str | None:
        """Why no picture can be read here, and what to do; None if it can."""
        missing = [name for name in _NEEDS if importlib.util.find_spec(name) is None]
        if not missing:
            return None
        return f"reading photos of recipes needs {', '.join(missing)}, not installed here: install {EXTRA}"

    def submit(
        self,
        pictures: Sequence[SentPicture],
        *,
        user: str | None,
        title_hint: str | None = None,
        use_llm_fallback: bool = True,
        idempotency_key: str | None = None,
        ip_address: str | None = None,
    ) -> Submission:
        """One job for the pictures of one recipe."""
        self._require_readable(pictures)
        hint = " ".join((title_hint or "").split()) or None
        digests = [sha256_of(picture.stream) for picture in pictures]
        as_user = self._app.acting_as(owner(user))
        fingerprint: JSON = ["photos", digests, hint, use_llm_fallback]
        if idempotency_key is not None:
            earlier = as_user.take_key(idempotency_key, fingerprint, ip_address=ip_address)
            if earlier is not None:
                return Submission(as_user.jobs.get(earlier), SubmitOutcome.EXISTING)
        # The same picture twice says nothing twice.
        by_digest = dict(zip(digests, pictures, strict=True))
        files = [
            as_user.files.keep(picture.stream, name=picture.name, media_type=picture.media_type)
            for picture in by_digest.values()
        ]
        params = PhotoParams(
            job_type=JOB_TYPE,
            pictures=[{"sha256": file.sha256, "name": file.name} for file in files],
            title_hint=hint,
            use_llm_fallback=use_llm_fallback,
        )
        if user is None:
            params["share"] = share_of(None, ip_address)
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return as_user.submit(
            self._kind,
            params,
            unique_key=key_of(f"{user!r} {list(by_digest)} {hint!r} {use_llm_fallback}"),
            fresh_for=_SENT_TWICE,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            ip_address=ip_address,
            title=hint or f"{files[0].name}{more}",
            file=files[0],
        )

    def photo(self, job: Job, number: int, *, by: Caller) -> Path:
        """One of the pictures of a job, as it is shown; they are numbered from 1."""
        photos = job.result.get("photos", []) if is_recipe_result(job.result) else []
        if not 1 <= number <= len(photos):
            raise FileNotFound(f"job {job.id} has no photo {number}", code="PICTURE_NOT_FOUND")
        path = self._app.acting_as(by).files.path(UUID(photos[number - 1]["file_id"]))
        if not path.is_file():
            raise FileNotFound(f"photo {number} of job {job.id} is not kept any more", code="PICTURE_NOT_FOUND")
        return path

    def _require_readable(self, pictures: Sequence[SentPicture]) -> None:
        if not 1 <= len(pictures) <= MAX_PICTURES:
            raise InvalidInput(
                f"{len(pictures)} pictures were sent; send 1 to {MAX_PICTURES}, all of one recipe",
                field="images",
                code="PICTURE_COUNT",
            )
        for number, picture in enumerate(pictures, 1):
            if not picture.size:
                failure = PictureFailure.EMPTY
                message = f"picture {number} ({picture.name}): {failure.sentence}"
                raise InvalidInput(message, field="images", code=failure.code)
            if picture.size > self._settings.photo_max_bytes:
                failure = PictureFailure.TOO_LARGE
                raise PayloadTooLarge(
                    f"picture {number} ({picture.name}): {failure.sentence}: {picture.size:,} bytes, and "
                    f"{self._settings.photo_max_bytes:,} are allowed",
                    field="images",
                    code=failure.code,
                )
