"""Who asks: tokens that are good, and every way in which one is not."""

from __future__ import annotations

import base64
import json
import stat
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from penstock import Penstock, Settings, load_settings
from penstock.errors import ConfigurationError, NotSignedIn, StoreUnavailable, TooManyRequests
from penstock.http.hosts import is_loopback
from penstock.http.limits import RateLimit
from penstock.http.signing_key import signing_secret
from penstock.http.tokens import Identity, OwnSecret, PublishedKeys, Tokens
from penstock.http.uvicorn_server import refuse_open_door
from penstock.lifecycle.states import Actor
from tests.http.conftest import SECRET, Served

Serve = Callable[..., Served]
OURS = Tokens(OwnSecret(SECRET))


def signed(claims: dict[str, Any], key: Any = SECRET, algorithm: str | None = "HS256", **headers: Any) -> str:
    """A token with these claims, good for a minute unless they say otherwise."""
    return jwt.encode({"exp": time.time() + 60, "sub": "ada", **claims}, key, algorithm, headers)


def unsigned() -> str:
    """A token that says it needs no signature."""
    parts = [{"alg": "none", "typ": "JWT"}, {"sub": "ada", "exp": time.time() + 60}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in parts) + "."


BAD: dict[str, tuple[Callable[[], str], str]] = {
    "empty": (lambda: "", "TOKEN_INVALID"),
    "nonsense": (lambda: "nonsense", "TOKEN_INVALID"),
    "three parts of nonsense": (lambda: "a.b.c", "TOKEN_INVALID"),
    "too long": (lambda: "x" * 100_000, "TOKEN_INVALID"),
    "another secret": (lambda: signed({}, "another secret that is long enough to be one"), "TOKEN_INVALID"),
    "another algorithm": (lambda: signed({}, SECRET, "HS512"), "TOKEN_INVALID"),
    "no algorithm": (unsigned, "TOKEN_INVALID"),
    "expired": (lambda: signed({"exp": time.time() - 3600}), "TOKEN_EXPIRED"),
    "not yet": (lambda: signed({"nbf": time.time() + 3600}), "TOKEN_INVALID"),
    "nobody": (lambda: signed({"sub": ""}), "TOKEN_INVALID"),
    "a number": (lambda: signed({"sub": 7}), "TOKEN_INVALID"),
    "a long name": (lambda: signed({"sub": "a" * 256}), "TOKEN_INVALID"),
    "a line break": (lambda: signed({"sub": "ada\n"}), "TOKEN_INVALID"),
    "for ever": (lambda: jwt.encode({"sub": "ada"}, SECRET), "TOKEN_INVALID"),
    "no subject": (lambda: jwt.encode({"exp": time.time() + 60}, SECRET), "TOKEN_INVALID"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_token_that_is_not_good_says_why(name: str) -> None:
    make, code = BAD[name]
    with pytest.raises(NotSignedIn) as told:
        OURS.read(make())
    assert told.value.code == code


@pytest.mark.parametrize("claim", [False, None, "true", 1, {}])
def test_only_true_makes_an_admin(claim: object) -> None:
    assert OURS.read(signed({"admin": claim})) == Identity("ada", admin=False)
    assert OURS.read(signed({"admin": True})) == Identity("ada", admin=True)


@pytest.mark.parametrize("claim", [False, None, "true", 1, {}])
def test_only_true_makes_a_program_which_may_what_an_admin_may(claim: object) -> None:
    assert OURS.read(signed({"system": claim})) == Identity("ada")
    program = OURS.read(signed({"system": True}))
    assert program == Identity("ada", admin=True, is_program=True)
    assert (program.caller.actor, program.caller.id) == (Actor.SYSTEM, "ada")


def test_which_claims_name_the_user_and_give_rights_is_a_setting() -> None:
    tokens = Tokens(OwnSecret(SECRET), user_claim="email", admin_claim="roles=operator", system_claim="roles=deploy")
    claims = {"sub": "7f3a", "email": "ada@example.org"}
    assert tokens.read(signed(claims)) == Identity("ada@example.org")
    assert tokens.read(signed(claims | {"roles": ["reader", "operator"]})) == Identity("ada@example.org", admin=True)
    assert tokens.read(signed(claims | {"roles": "deploy"})).is_program
    for roles in (True, "operators", ["Operator"], [["operator"]], {"operator": True}, None, ""):
        assert not tokens.read(signed(claims | {"roles": roles})).admin
    for nobody in ({}, {"email": 7}, {"email": ""}, {"email": "x" * 256}):
        with pytest.raises(NotSignedIn):
            tokens.read(signed(nobody))
    made = tokens.read(tokens.issue("bob@example.org", is_admin=True, is_program=True))
    assert made == Identity("bob@example.org", admin=True, is_program=True)


@pytest.mark.parametrize("wrong", ["", "=operator", "roles="])
def test_a_claim_that_would_give_rights_to_anybody_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_ADMIN_CLAIM"):
        load_settings(admin_claim=wrong)


def test_keys_of_an_identity_provider_need_an_audience() -> None:
    url = "https://id.example/keys"
    with pytest.raises(ConfigurationError, match="PENSTOCK_JWT_AUDIENCE") as told:
        load_settings(jwks_url=url)
    assert told.value.code == "JWT_AUDIENCE_MISSING"
    assert load_settings(jwks_url=url, jwt_audience="jobs").jwt_audience == "jobs"
    assert load_settings(jwks_url=url, jwt_any_audience=True).jwt_audience is None


def test_a_token_we_made_is_read_back() -> None:
    tokens = Tokens(OwnSecret(SECRET), admin_claim="boss", issuer="us", audience="them")
    assert tokens.read(tokens.issue("ada", is_admin=True)) == Identity("ada", admin=True)
    for other in (Tokens(OwnSecret(SECRET), issuer="someone"), Tokens(OwnSecret(SECRET), audience="others")):
        with pytest.raises(NotSignedIn):
            other.read(tokens.issue("ada"))


@pytest.fixture
def provider() -> Iterator[tuple[str, dict[str, Any]]]:
    """An identity provider's keys, at an address of their own."""
    published: dict[str, Any] = {"keys": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(published).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/keys", published
    server.shutdown()
    thread.join()
    server.server_close()


def test_tokens_of_an_identity_provider_are_checked_with_its_keys(provider: tuple[str, dict[str, Any]]) -> None:
    url, published = provider
    rsa_key, ec_key = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    for name, written in (
        ("r", jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key.public_key())),
        ("e", jwt.algorithms.ECAlgorithm.to_jwk(ec_key.public_key())),
    ):
        published["keys"].append(json.loads(written) | {"kid": name, "use": "sig"})
    tokens = Tokens(PublishedKeys(url))
    assert tokens.read(signed({}, rsa_key, "RS256", kid="r")).user == "ada"
    assert tokens.read(signed({}, ec_key, "ES256", kid="e")).user == "ada"
    stranger = rsa.generate_private_key(65537, 2048)
    forged = [
        signed({}, stranger, "RS256", kid="r"),
        signed({}, rsa_key, "RS512", kid="r"),
        signed({}, SECRET, "HS256", kid="r"),
        signed({}, rsa_key, "RS256", kid="unheard-of"),
        signed({}, rsa_key, "RS256"),
    ]
    for token in forged:
        with pytest.raises(NotSignedIn):
            tokens.read(token)
    with pytest.raises(ConfigurationError, match="identity provider"):
        tokens.issue("ada")


def test_a_session_is_the_same_however_its_token_is_signed() -> None:
    """Otherwise who altered a signature, which ES256 allows, would go on in a session that was ended."""
    key = ec.generate_private_key(ec.SECP256R1())

    class OneKey(PublishedKeys):
        def key_of(self, token: str) -> Any:
            return key.public_key()

    tokens, claims = Tokens(OneKey("https://id.example/keys")), {"exp": int(time.time()) + 60}
    first, second = (signed(claims, key, "ES256") for _ in range(2))
    assert first != second
    assert tokens.read(first).session == tokens.read(second).session
    assert tokens.read(signed(claims | {"jti": "another"}, key, "ES256")).session != tokens.read(first).session


def test_keys_that_cannot_be_had_are_nobodys_fault_but_the_servers() -> None:
    tokens = Tokens(PublishedKeys("http://127.0.0.1:9/keys"))
    with pytest.raises(StoreUnavailable) as told:
        tokens.read(signed({}, rsa.generate_private_key(65537, 2048), "RS256", kid="r"))
    assert told.value.code == "KEYS_UNAVAILABLE"


# The secret -----------------------------------------------------------------------------------------------------------


def test_an_embedded_database_gets_a_secret_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "penstock.db"
    first = signing_secret(Settings(), file)
    assert len(first) >= 32
    assert signing_secret(Settings(), file) == first
    kept = tmp_path / "penstock.db.secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [kept.name]
    assert signing_secret(Settings(), tmp_path / "other.db") != first
    kept.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        signing_secret(Settings(), file)


def test_many_who_start_at_once_have_one_secret(tmp_path: Path) -> None:
    found: list[str] = []
    together = threading.Barrier(8)

    def start() -> None:
        together.wait()
        found.append(signing_secret(Settings(), tmp_path / "penstock.db"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(found)) == 1
    assert len(found) == 8


def test_a_server_others_can_reach_needs_a_secret() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        assert is_loopback(host)
        refuse_open_door(Settings(), host)
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.org"):
        with pytest.raises(ConfigurationError) as told:
            refuse_open_door(Settings(), host)
        assert told.value.code == "JWT_SECRET_MISSING"
        refuse_open_door(load_settings(jwt_secret=SECRET), host)
    with pytest.raises(ConfigurationError, match="PENSTOCK_JWT_SECRET"):
        signing_secret(Settings(), None)
    with pytest.raises(ConfigurationError, match="at least 32"):
        load_settings(jwt_secret="short")
    with pytest.raises(ConfigurationError, match="both set"):
        load_settings(jwt_secret=SECRET, jwks_url="https://id.example/keys")


# Over HTTP ------------------------------------------------------------------------------------------------------------


def test_every_route_of_jobs_wants_a_token(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    job = app.submit("held", {}, owner="ada").job
    paths = served.client(None).get("/openapi.json").json()["paths"]
    asked = 0
    for path, methods in paths.items():
        if not path.startswith("/api/"):
            continue
        for method in methods:
            address = path.replace("{job_id}", str(job.id))
            nobody = served.client(None).request(method, address)
            assert (nobody.status_code, nobody.json()["code"]) == (401, "TOKEN_MISSING"), (method, path)
            assert nobody.headers["www-authenticate"] == "Bearer"
            forged = served.client(None, token="forged").request(method, address)
            assert (forged.status_code, forged.json()["code"]) == (401, "TOKEN_INVALID"), (method, path)
            asked += 1
    assert asked >= 5
    basic = served.client(None).get("/api/jobs", headers={"Authorization": "Basic YTpi"})
    assert (basic.status_code, basic.json()["code"]) == (401, "TOKEN_INVALID")


def test_a_bucket_is_refilled_as_time_passes() -> None:
    moment = 0.0
    limit = RateLimit(60, "requests", now=lambda: moment)
    for _ in range(60):
        limit.take("ada")
    limit.take("bob")
    with pytest.raises(TooManyRequests) as told:
        limit.take("ada")
    assert told.value.retry_after == pytest.approx(1.0)
    moment = 1.0
    limit.take("ada")
    with pytest.raises(TooManyRequests):
        limit.take("ada")
    moment = 1000.0
    for _ in range(60):
        limit.take("ada")
    with pytest.raises(TooManyRequests):
        limit.take("ada")


def test_a_limit_does_not_grow_with_those_who_ask() -> None:
    limit = RateLimit(1, "requests", now=lambda: 0.0)
    for number in range(20_000):
        limit.take(str(number))
    assert len(limit._buckets) <= 10_000
