"""Asking other hosts over HTTP: public ones alone, within one deadline, and no more of an answer than is allowed.

What people give an address for, what a page leads on to and what an operator has configured all go through here.
``docs/explanation/outbound-requests.md`` says what is promised. It needs ``httpx2`` and ``httpcore2``, which the
applications that ask others bring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.http_client.addresses import is_public
    from penstock.http_client.client import Answer, AnswerLimits, Head, HttpClient, configured_host
    from penstock.http_client.connections import trusted_certificates
    from penstock.http_client.retry_after import read_retry_after
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.http_client.addresses": "is_public",
            "penstock.http_client.client": "Answer AnswerLimits Head HttpClient configured_host",
            "penstock.http_client.connections": "trusted_certificates",
            "penstock.http_client.retry_after": "read_retry_after",
        },
    )

__all__ = [
    "Answer", "AnswerLimits", "Head", "HttpClient", "configured_host", "is_public", "read_retry_after",
    "trusted_certificates",
]  # fmt: skip
