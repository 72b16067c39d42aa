"""Files that wait in a bucket of S3, or of a store that speaks its language.

An object appears when it is whole, so there is no settling; only names that say "not yet" are left alone. An object is
read in ranges, each one a request of its own that names the ETag: a file of any size needs the memory of one range and
stays within the time limit of a request, and an object that was replaced in between is noticed at the next range.

Empty objects are left alone: consoles make one for each folder, and nothing else could be told from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.errors import ConfigurationError, InvalidInput, Permanent, Retryable
from penstock.ingest.sources.contract import (
    MAX_ENTRIES,
    TIMEOUT_SECONDS,
    CheckedReader,
    Readable,
    Waiting,
    display_name,
    file_changed,
    file_gone,
    foreign_file,
    is_unfinished,
    missing_source,
    quote_path,
    too_large,
    unquote_path,
)
from penstock.ingest.sources.settings import SourceSettings

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

RANGE_BYTES = 4 << 20
_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks, and whom."""

    key_id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str = "us-east-1"
    endpoint: str | None = None

    @classmethod
    def of(cls, settings: SourceSettings) -> Access:
        """The access that the settings give; without a key there is none."""
        key_id, secret = settings.access_key_id, settings.secret_access_key.get_secret_value()
        if not key_id or not secret:
            raise ConfigurationError("S3 needs a key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
        return cls(
            key_id=key_id,
            secret=secret,
            session_token=settings.session_token.get_secret_value() or None,
            region=settings.region,
            endpoint=settings.endpoint_url or None,
        )


class Bucket:
    """The objects of a bucket whose keys begin with a prefix, or the one object that has it for its key."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        access: Access,
        *,
        max_entries: int = MAX_ENTRIES,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.address = f"s3://{bucket}/{quote_path(prefix)}"
        self._bucket = bucket
        self._prefix = prefix
        self._max_entries = max_entries
        self._store = _store(bucket, access, timeout_seconds)

    def waiting(self) -> Iterator[Waiting]:
        """The objects below the prefix, oldest first."""
        candidates = [meta for meta in self._objects() if not is_unfinished(meta["path"].rpartition("/")[2])]
        for meta in sorted(candidates, key=lambda meta: (meta["last_modified"], meta["path"])):
            yield Waiting(
                name=display_name(meta["path"].rpartition("/")[2]),
                address=f"s3://{self._bucket}/{quote_path(meta['path'])}",
                size=meta["size"],
                version=_version(meta),
            )

    @contextmanager
    def open(self, file: Waiting) -> Iterator[Readable]:
        """Lend an object, one range at a time."""
        import obstore

        start = f"s3://{self._bucket}/"
        key = unquote_path(file.address.removeprefix(start))
        folder = f"{self._prefix.rstrip('/')}/" if self._prefix else ""
        if not file.address.startswith(start) or not (key == self._prefix or key.startswith(folder)):
            raise foreign_file(file, self.address)
        fetched_bytes = memoryview(b"")
        position = 0

        def check() -> None:
            with self._failures(file):
                if _version(obstore.head(self._store, key)) != file.version:
                    raise file_changed(file)

        def read(size: int) -> bytes:
            nonlocal fetched_bytes, position
            if not fetched_bytes and position < file.size:
                end = min(position + RANGE_BYTES, file.size)
                with self._failures(file):
                    answer = obstore.get(self._store, key, options={"range": (position, end), "if_match": match})
                    fetched_bytes = memoryview(answer.bytes())
                # A store that does not know If-Match ignores it.
                if _version(answer.meta) != file.version or len(fetched_bytes) != end - position:
                    raise file_changed(file)
                position = end
            piece, fetched_bytes = bytes(fetched_bytes[:size]), fetched_bytes[size:]
            return piece

        match = file.version if file.version.startswith('"') else None
        check()
        reader = CheckedReader(file, read, check)
        yield reader
        reader.leave()

    def _objects(self) -> Iterator[ObjectMeta]:
        import obstore

        with self._failures():
            if self._prefix and not self._prefix.endswith("/"):
                try:
                    yield obstore.head(self._store, self._prefix)
                except FileNotFoundError:
                    pass  # not the key of one object, then the name of a folder
                else:
                    return
            object_count = 0
            for batch in obstore.list(self._store, prefix=self._prefix or None, chunk_size=1_000):
                object_count += len(batch)
                if object_count > self._max_entries:
                    raise too_large(self.address, f"more than {self._max_entries} objects")
                yield from (meta for meta in batch if meta["size"])

    @contextmanager
    def _failures(self, file: Waiting | None = None) -> Iterator[None]:
        """Say what the store answered in the words of a handler."""
        from obstore import exceptions

        address = file.address if file else self.address
        try:
            yield
        except FileNotFoundError as error:
            raise (file_gone(file) if file else missing_source(self.address)) from error
        except exceptions.PreconditionError as error:
            raise Retryable(f"{address} changed while it was read.", code="SOURCE_FILE_CHANGED") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise _refusal(address) from error
        except (exceptions.InvalidPathError, ValueError) as error:
            raise InvalidInput(
                f"{self.address} holds a key with an empty part, as in a//b, or with . or .. for a part, which cannot "
                "be read: rename that object, or name a narrower prefix.",
                field="source",
                code="SOURCE_KEY_WRONG",
            ) from error
        except exceptions.BaseError as error:
            raise self._generic(address, str(error)) from error

    def _generic(self, address: str, text: str) -> InvalidInput | Permanent | Retryable:
        """What an error without a class of its own says; a listing has no others."""
        if "NoSuchBucket" in text:
            return missing_source(f"s3://{self._bucket}")
        if any(f"status code: {status}" in text for status in (401, 403)):
            return _refusal(address)
        return Retryable(
            f"{address} cannot be reached now, or broke off: check AWS_ENDPOINT_URL and the network.",
            code="SOURCE_UNAVAILABLE",
        )


def _store(bucket: str, access: Access, timeout_seconds: float) -> S3Store:
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise ConfigurationError("Reading from S3 needs a library that is not here: install penstock[s3].") from error
    limit = timedelta(seconds=timeout_seconds)
    optional = {"aws_session_token": access.session_token, "aws_endpoint": access.endpoint}
    return S3Store(
        bucket,
        config={name: value for name, value in optional.items() if value},  # type: ignore[arg-type]
        access_key_id=access.key_id,
        secret_access_key=access.secret,
        region=access.region,
        # Stores of one's own seldom have a host name for each bucket; Amazon's do.
        virtual_hosted_style_request=access.endpoint is None,
        client_options={
            "allow_http": (access.endpoint or "").startswith("http://"),
            "connect_timeout": limit,
            "timeout": limit,
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": limit},
    )


def _version(meta: ObjectMeta) -> str:
    return meta["e_tag"] or meta["version"] or f"{meta['last_modified'].isoformat()}-{meta['size']}"


def _refusal(address: str) -> Permanent:
    return Permanent(
        f"{address} may not be read with these keys: check AWS_ACCESS_KEY_ID and what it may do.", code="SOURCE_REFUSED"
    )
