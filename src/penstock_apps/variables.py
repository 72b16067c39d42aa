"""Every environment variable that an application reads, with its default and what it means: for people who look.

Each application reads and checks its own where it begins; a test holds this list to what they read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """One of them."""

    name: str
    default: str
    meaning: str
    secret: bool = False

    @property
    def value(self) -> str:
        """What it is now; of a secret only whether there is one."""
        given = os.environ.get(self.name)
        if given is None:
            return self.default
        return "***" if self.secret else given


VARIABLES: dict[str, tuple[Variable, ...]] = {
    "documents": (
        Variable(
            "DOCUMENTS_TIMEOUT",
            "60s",
            "The longest one document may take; its process is killed then, and the document tried again.",
        ),
        Variable(
            "DOCUMENTS_MEMORY",
            "1024MiB",
            "The most memory the process that reads a document may take; beyond it the document fails.",
        ),
        Variable(
            "DOCUMENTS_MAX_BYTES",
            "50MiB",
            "The largest document; a larger one gets a job that fails with DOCUMENT_TOO_LARGE.",
        ),
        Variable(
            "DOCUMENTS_QUEUE_LIMIT",
            "1000",
            "The most document jobs that may wait; one more fails at once with QUEUE_OVERLOAD.",
        ),
        Variable(
            "DOCUMENTS_WAIT_LIMIT",
            "3600s",
            "The longest a document job may wait for a worker; then it fails with QUEUE_WAIT_EXCEEDED.",
        ),
    ),
    "catalogs": (
        Variable("PENSTOCK_CATALOG_ROOTS", "", "Folders below which catalogs may lie, separated by ':'."),
        Variable("PENSTOCK_THUMBNAILS_DIRECTORY", "penstock-thumbnails", "The folder that keeps thumbnails."),
        Variable("PENSTOCK_TAGGERS", "", "module:function of what names tags for a photo, separated by commas."),
    ),
    "recipes": (
        Variable("RECIPE_TTL_DAYS", "30", "How long a parsed page is good for, in days."),
        Variable("RECIPE_PARSE_JOB_ABANDON_MINUTES", "4320", "How long a finished job waits to be saved, in minutes."),
        Variable("RECIPE_PARSE_STALE_MINUTES", "15", "A parse that takes longer than this has failed, in minutes."),
        Variable("RECIPE_PARSE_JOB_PRUNE_RESULTS", "false", "Whether the result of an abandoned job is dropped."),
        Variable("RECIPE_PARSED_ELSEWHERE", "false", "Whether pages are parsed by who reads the requests' topic."),
        Variable("KAFKA_TOPIC_PARSE_REQUEST", "parse-requests", "The topic requests are sent to."),
        Variable("KAFKA_TOPIC_PARSE_RESULT", "parse-results", "The topic results are read from."),
        Variable("PENSTOCK_FETCH_ALLOW_HOSTS", "", "Private hosts that may be fetched from all the same, by commas."),
        Variable("PENSTOCK_FETCH_TIMEOUT", "20s", "The longest a page may take to come."),
        Variable("PENSTOCK_FETCH_MAX_BYTES", "5MiB", "The largest page."),
        Variable("PENSTOCK_LLM_URL", "", "An OpenAI-compatible endpoint for pages nothing else can read."),
        Variable("PENSTOCK_LLM_MODEL", "", "The model asked there."),
        Variable("PENSTOCK_LLM_KEY", "", "The key to it.", secret=True),
    ),
    "products": (
        Variable("PRODUCT_PROVIDERS", "", "The path of a JSON file that describes the retailers products are at."),
        Variable("MAX_ATTEMPTS_ERROR", "3", "Tries of a product whose look-up fails."),
        Variable("MAX_ATTEMPTS_NOT_FOUND", "2", "Tries of a product that is not found, each asking another way."),
    ),
    "files from elsewhere": (
        Variable("PENSTOCK_INGEST_BUCKETS", "", "Buckets files may be taken in from, separated by commas."),
        Variable("PENSTOCK_INGEST_FTP_HOSTS", "", "FTP servers likewise, host or host:port, separated by commas."),
        Variable("PENSTOCK_INGEST_FTP_USER", "anonymous", "The account on those servers."),
        Variable("PENSTOCK_INGEST_FTP_PASSWORD", "", "Its password.", secret=True),
        Variable("AWS_ACCESS_KEY_ID", "", "The key to the buckets."),
        Variable("AWS_SECRET_ACCESS_KEY", "", "Its other half.", secret=True),
        Variable("AWS_SESSION_TOKEN", "", "A key for a while has one.", secret=True),
        Variable("AWS_REGION", "", "Where the buckets are."),
        Variable("AWS_ENDPOINT_URL", "", "Who serves them, if not Amazon."),
    ),
}
