"""What a newcomer gets wrong in the first hour: each is told in one line, with a code and what to do."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock import Caller, Penstock, PenstockError, admin, load_settings, owner
from penstock.errors import NotSignedIn
from penstock.http.tokens import OwnSecret, Tokens
from penstock.store.dialects.dialect import parse_url
from tests.acceptance.terminal import Terminal

INSTALLED = {"PENSTOCK_APP": "penstock.applications:app"}
NO_FOLDER = {"PENSTOCK_DATABASE_URL": "sqlite:////nowhere/at/all.db"}
SECRET = "s" * 40

COMMANDS: list[tuple[list[str], dict[str, str], str, str]] = [
    (["submit", "gret"], {}, "did you mean 'greet'?", "KIND_UNKNOWN"),
    (["worker", "--kind", "square"], {}, "did you mean 'squares'?", "KIND_UNKNOWN"),
    (["submit", "greet", '{"a": [1, NaN]}'], {}, "params.a[1] cannot be kept: it is NaN", "PAYLOAD_NOT_STORABLE"),
    (["jobs"], NO_FOLDER, "there is no folder /nowhere/at for the database all.db", "DATABASE_FOLDER_MISSING"),
    (["config", "--check"], NO_FOLDER, "make it, or name a file in one that is there", "DATABASE_FOLDER_MISSING"),
    (
        ["jobs"],
        {"PENSTOCK_LOG_LEVEL": "verbose"},
        "PENSTOCK_LOG_LEVEL: it is one of DEBUG, INFO, WARNING, ERROR (got 'verbose')",
        "CONFIGURATION_ERROR",
    ),
    (["jobs"], {"PENSTOCK_LISTEN_URL": "elsewhere"}, "it does not fit: A direct way to", "CONFIGURATION_ERROR"),
    (
        ["token", "--user", "ada"],
        {"PENSTOCK_JWKS_URL": "idp.example/keys", "PENSTOCK_JWT_ANY_AUDIENCE": "true"},
        "PENSTOCK_JWKS_URL: it does not fit: The http or https address",
        "CONFIGURATION_ERROR",
    ),
    (["token", "--user", "ada"], NO_FOLDER, "set PENSTOCK_JWT_SECRET to 32 characters or more", "SECRET_NOT_KEPT"),
    (["jobs", "--app", "twice:app"], {}, "twice.py:5 and at ", "APP_NOT_LOADED"),
]


def test_a_mistake_is_told_in_one_line_with_a_code_and_what_to_do(terminal: Terminal) -> None:
    registering = "@app.kind('greet')\ndef greet{}(item):\n    return 1\n"
    twice = "from penstock import Penstock\n\napp = Penstock()\n\n" + registering.format(1) + registering.format(2)
    (terminal.directory / "twice.py").write_text(twice)
    answers = terminal.run_each_in([(arguments, environment) for arguments, environment, _, _ in COMMANDS])
    for (arguments, _, words, code), said in zip(COMMANDS, answers, strict=True):
        assert (said.code, said.out) == (2, ""), arguments
        assert re.fullmatch(rf"penstock: [^\n]+ \({code}\)\n", said.err), (arguments, said.err)
        assert words in said.err


def test_the_kinds_of_the_installed_applications_are_not_shown_as_if_they_were_yours(terminal: Terminal) -> None:
    del terminal.environment["PENSTOCK_APP"]
    asked = ["submit", "greet"]
    unset, chosen = terminal.run_each_in([(asked, {}), (asked, INSTALLED)])
    assert "these are the kinds of the installed applications: name your own app with --app" in unset.err
    assert unset.err.endswith("or in PENSTOCK_APP (KIND_UNKNOWN)\n")
    assert "your own app" not in chosen.err


def test_a_misspelt_variable_is_pointed_out(terminal: Terminal) -> None:
    checked = terminal.run("config", "--check", PENSTOCK_DATABSE_URL="sqlite://", PENSTOCK_CATALOG_ROOTS="/photos")
    assert checked.code == 0
    wrong = "PENSTOCK_DATABSE_URL is set, and no setting has that name; did you mean PENSTOCK_DATABASE_URL?"
    assert f"to know: {wrong} (SETTING_UNKNOWN)\n" in checked.out
    assert "PENSTOCK_CATALOG_ROOTS" not in checked.out, "an application's, whether this app has it or not"


def test_a_kind_nobody_knows_any_more_is_said_wherever_somebody_looks(terminal: Terminal) -> None:
    (terminal.directory / "renamed.py").write_text("from penstock import Penstock\napp = Penstock()\n")
    old = terminal.app.submit("greet", {"name": "ada"}).job
    known, shown, listed = terminal.run_each_in(
        [
            (["show", str(old.id)], {}),
            (["show", str(old.id)], {"PENSTOCK_APP": "renamed:app"}),
            (["jobs"], {"PENSTOCK_APP": "renamed:app"}),
        ]
    )
    sentence = "no kind 'greet' is registered here, and no worker that is alive knows it: its jobs wait until one does"
    assert sentence not in known.out
    assert f"\n{sentence} (KIND_UNKNOWN)\n" in shown.out
    assert f"\n{sentence} (KIND_UNKNOWN)\n" in listed.out


def test_a_port_that_is_taken_is_said_before_a_worker_begins(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = terminal.run("serve", "--port", port, PENSTOCK_LOG_LEVEL="INFO")
    [line] = [line for line in said.err.splitlines() if not line.startswith("{")]
    taken = f"port {port} of 127.0.0.1 is taken by another program: stop that one, or choose another port with --port"
    assert (said.code, line) == (2, f"penstock: {taken} (ADDRESS_IN_USE)")
    assert "worker started" not in said.err
    nowhere = terminal.run("serve", "--host", "nowhere.invalid", PENSTOCK_JWT_SECRET=SECRET)
    assert (nowhere.code, nowhere.err.count("\n"), "(ADDRESS_NOT_USABLE)" in nowhere.err) == (2, 1, True)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("hello", "that is no token: one has three parts with dots between them"),
        ("a.b.c", "that is no token: one has three parts with dots between them"),
        (Tokens(OwnSecret("t" * 40)).issue("ada"), "the token was signed with another key"),
    ],
    ids=["a word", "three words", "another server's"],
)
def test_a_wrong_token(token: str, words: str) -> None:
    with pytest.raises(NotSignedIn, match=re.escape(words)) as refusal:
        Tokens(OwnSecret(SECRET)).read(token)
    assert refusal.value.code == "TOKEN_INVALID"
    assert str(refusal.value).endswith("get one with 'penstock token --user NAME'")


def test_a_kind_registered_twice_names_both_places() -> None:
    app = Penstock("sqlite://")
    app.kind("greet")(lambda item: 1)
    with pytest.raises(PenstockError, match=r"test_first_hour\.py:\d+ and at .*test_first_hour\.py:\d+") as refusal:
        app.kind("greet")(lambda item: 2)
    assert refusal.value.code == "KIND_REGISTERED_TWICE"


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda app: app.acting_as(cast(Caller, "ada")), "NO_CALLER"),
        (lambda app: app.acting_as(cast(Caller, None)), "NO_CALLER"),
        (lambda app: app.acting_as(owner(cast(str, 42))), "OUT_OF_BOUNDS"),
        (lambda app: app.submit("greet", owner=cast(str, 42)), "OUT_OF_BOUNDS"),
        (lambda app: app.submit("greet", owner=cast(str, owner("ada"))), "OUT_OF_BOUNDS"),
    ],
    ids=["a bare name", "nobody", "a number in a caller", "a number as owner", "a caller as owner"],
)
def test_somebody_who_is_no_caller(act: Callable[[Penstock], Any], code: str) -> None:
    app = Penstock("sqlite://")
    app.kind("greet")(lambda item: 1)
    with pytest.raises(PenstockError) as refusal:
        act(app)
    assert refusal.value.code == code
    assert "\n" not in str(refusal.value)
    app.close()


def test_canceled_twice_says_by_whom() -> None:
    app = Penstock("sqlite://")
    app.kind("greet")(lambda item: 1)
    job = app.submit("greet", owner="ada").job
    app.acting_as(admin("root")).jobs.cancel(job.id, reason="wrong file")
    with pytest.raises(PenstockError, match=r"is canceled already, by admin root \(wrong file\): ") as refusal:
        app.acting_as(owner("ada")).jobs.cancel(job.id)
    assert refusal.value.code == "TRANSITION_REFUSED"
    app.close()


def test_an_address_that_begins_with_postgres_is_understood() -> None:
    for given, understood in (
        ("postgres://ada@db.example/jobs", "postgresql"),
        ("postgres+psycopg://ada@db.example/jobs", "postgresql+psycopg"),
        ("postgresql://ada@db.example/jobs", "postgresql"),
        ("sqlite:///jobs.db", "sqlite"),
    ):
        assert parse_url(given).drivername == understood
    assert load_settings(listen_url="postgres://db.example/jobs").listen_url == "postgres://db.example/jobs"


def test_such_an_address_works(postgres_url: str) -> None:
    address = "postgres://" + postgres_url.partition("://")[2]
    with_postgres = Penstock(settings=load_settings(database_url=address, listen_url=address))
    with_postgres.system.migrate()
    assert with_postgres.jobs.list() == []
    with_postgres.close()
