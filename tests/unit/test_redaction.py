"""Passwords and keys of addresses are hidden, however they are written, and nothing else is."""

from __future__ import annotations

import io
import json
import logging
import traceback

import pytest
import structlog

from penstock import Penstock, load_settings
from penstock.errors import ConfigurationError, PenstockError, Retryable
from penstock.logs import configure_logs
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
        f"https://models.example/v1?key={SECRET}",
        f"https://models.example/v1?alt=sse&auth={SECRET}",
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
        "https://shop.example/?keyboard=qwerty&author=ada",
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"jwt_secret": SECRET},
        {"listen_url": f"mysql://ada:{SECRET}@db.example/jobs"},
        {"listen_url": f"mysql://db.example/jobs?password={SECRET}"},
        {"pool_size": f"postgresql://ada:{SECRET}@db.example/jobs"},
    ],
)
def test_a_wrong_setting_is_not_repeated_not_even_by_a_traceback(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as told:
        load_settings(**wrong)
    assert SECRET not in "".join(traceback.format_exception(told.value))
    assert told.value.__context__ is None, "who looks behind it finds no values either"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/none",
        f"postgresql://ada@127.0.0.1:1/none?password={SECRET}",
        f"oracle://ada:{SECRET}@db.example/none",
        f"ada:{SECRET}@db.example/none",
    ],
)
def test_a_database_that_cannot_be_opened_is_named_without_its_password(url: str) -> None:
    app = Penstock(url)
    with pytest.raises(PenstockError) as told:
        app.system.check_database()
    assert SECRET not in told.value.message


@pytest.mark.usefixtures("kept_logs")
@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_line_of_the_log_says_one(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal, raising=False)
    configure_logs("INFO", stream=out)
    address = f"postgresql://ada:{SECRET}@db.example/jobs?password={SECRET}"
    log = structlog.get_logger("penstock")
    log.info(address, url=address, urls=[address], error=ValueError(address), many={"one": address})
    logging.getLogger("driver").warning("cannot reach %s", address)
    try:
        raise ValueError(f'no "{address}"')
    except ValueError:
        log.exception("it broke")
    assert SECRET not in out.getvalue()
    assert "db.example" in out.getvalue()
    if not is_terminal:
        assert all(json.loads(line) for line in out.getvalue().splitlines()), "its quotes stay in pairs"
