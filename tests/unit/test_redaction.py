"""Passwords and keys of addresses are hidden, however they are written, and nothing else is."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigurationError, Retryable
from penstock.redaction import hide_secrets

SECRET = "s3cret"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{SECRET}@db.example/jobs",
        f"postgresql://ada:{SECRET}@with/odd?signs#in@db.example/jobs",
        f"redis://:{SECRET}@cache.example:6379/0",
        f"amqp://ada:{SECRET}@one.example,http://two.example/",
        f"postgresql:///jobs?user=ada&password={SECRET}&host=db.example",
        f"postgresql:///jobs?host=db.example&sslpassword={SECRET}",
        f"https://shop.example/feed?api_key={SECRET}",
        f"https://shop.example/feed?p%61ssword={SECRET}",
        f"https://bucket.example/a.csv?X-Amz-Signature={SECRET}&X-Amz-Date=20260101",
        f"https://bucket.example/a.csv?sv=1&sig={SECRET}",
        f"connection failed: host=db.example password={SECRET} user=ada",
        f"connection failed: password = '{SECRET} and more'",
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    hidden = hide_secrets(f"cannot open {text} now")
    assert SECRET not in hidden
    assert "***" in hidden
    assert hidden.startswith("cannot open ")
    assert hidden.endswith(" now")
    assert hide_secrets(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:///penstock.db",
        "postgresql://ada@db.example/jobs?connect_timeout=3",
        "http://shop.example:8080/people/ada@example.org",
        "https://shop.example/?design=plain&page=2",
        "write to ada@example.org: at 12:30",
        "a password is missing",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide_secrets(text) == text


def test_an_error_never_says_one_whoever_raises_it() -> None:
    for error in (ConfigurationError(f"ftp://ada:{SECRET}@ftp.example is away"), Retryable(f"?token={SECRET} is old")):
        assert SECRET not in error.message
        assert SECRET not in str(error)
        assert SECRET not in repr(error)
