"""Who a token speaks for: a JWT with a claim that names the user, and others that make an admin or a program of them.

The algorithm is what the configuration says, never what the token says: HS256 with our own secret, or RS256 and ES256
with the keys an identity provider publishes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import jwt

from penstock.errors import ConfigurationError, NotSignedIn, StoreUnavailable
from penstock.lifecycle.bounds import CALLER
from penstock.lifecycle.callers import Caller, admin, owner
from penstock.lifecycle.states import Actor

_LEEWAY_SECONDS = 10
_LONGEST_TOKEN = 8_192
_MAX_REMEMBERED = 1_000
_GOOD_SECONDS = 60.0
"""How long a token whose signature was checked is not checked again: a key that is withdrawn counts for so long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who is signed in, or a guest."""

    user: str | None
    admin: bool = False
    is_program: bool = False
    """Is it an operator's program, such as a deployment? It may what an admin may, and acts as the system."""
    issued_at: float | None = field(default=None, compare=False)
    """When they were let in, in seconds since 1970: sessions that were ended since do not count any more."""
    expires_at: float | None = field(default=None, compare=False)
    """Until when that holds; event streams end then."""
    session: str | None = field(default=None, compare=False, repr=False)
    """The digest of their token, by which this one session can be ended."""

    @property
    def caller(self) -> Caller:
        """Who that is to the engine."""
        if self.is_program:
            return Caller(Actor.SYSTEM, self.user)
        return admin(self.user) if self.admin else owner(self.user)


GUEST = Identity(None)


def is_user_name(name: object) -> bool:
    """May somebody be called that?"""
    return isinstance(name, str) and 0 < len(name) <= CALLER.longest and name.isprintable()


class OwnSecret:
    """HS256 with a secret of our own: we can also make tokens."""

    algorithms = ("HS256",)

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def key_of(self, token: str) -> str:
        """Always the same one."""
        return self.secret


class PublishedKeys:
    """The keys an identity provider publishes; fetched when a key is not known yet, at most every few seconds."""

    algorithms = ("RS256", "ES256")

    def __init__(self, url: str) -> None:
        self._keys = jwt.PyJWKClient(url, cache_keys=True, lifespan=300, timeout=5)

    def key_of(self, token: str) -> Any:
        """The one the token's header names."""
        try:
            return self._keys.get_signing_key_from_jwt(token).key
        except jwt.PyJWKClientConnectionError as error:
            raise StoreUnavailable(
                f"the keys for tokens cannot be fetched: {error}", code="KEYS_UNAVAILABLE"
            ) from error
        except jwt.PyJWKClientError as error:
            raise jwt.InvalidTokenError(str(error)) from error


Keys = OwnSecret | PublishedKeys
"""What tokens are checked with."""


class Tokens:
    """Reads tokens, and makes them where the secret is ours."""

    def __init__(
        self,
        keys: Keys,
        *,
        user_claim: str = "sub",
        admin_claim: str = "admin",
        system_claim: str = "system",
        issuer: str | None = None,
        audience: str | None = None,
    ) -> None:
        self._keys = keys
        self._user_claim = user_claim
        self._admin_claim = admin_claim
        self._system_claim = system_claim
        self._issuer = issuer
        self._audience = audience
        self._good: dict[str, tuple[Identity, float]] = {}

    @property
    def may_wait(self) -> bool:
        """May reading a token ask another server for its key?"""
        return isinstance(self._keys, PublishedKeys)

    @property
    def makes_tokens(self) -> bool:
        """Is the secret ours?"""
        return isinstance(self._keys, OwnSecret)

    @property
    def _source(self) -> str:
        return "with 'penstock token --user NAME'" if self.makes_tokens else "from your identity provider"

    def read(self, token: str) -> Identity:
        """Who the token speaks for; :class:`NotSignedIn` says why it speaks for nobody."""
        entry = self._good.get(token)
        if entry is not None and time.time() < entry[1]:
            return entry[0]
        who, until = self._check(token)
        if len(self._good) >= _MAX_REMEMBERED:
            self._good.clear()
        self._good[token] = who, min(until, time.time() + _GOOD_SECONDS)
        return who

    def _check(self, token: str) -> tuple[Identity, float]:
        """The same by its signature, and until when that holds."""
        if len(token) > _LONGEST_TOKEN:
            raise NotSignedIn("the token is too long", code="TOKEN_INVALID")
        try:
            claims = jwt.decode(
                token,
                self._keys.key_of(token),
                algorithms=list(self._keys.algorithms),
                issuer=self._issuer,
                audience=self._audience,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", self._user_claim], "verify_aud": self._audience is not None},
            )
        except jwt.ExpiredSignatureError as error:
            raise NotSignedIn("the token has expired; get a new one", code="TOKEN_EXPIRED") from error
        except jwt.InvalidSignatureError as error:
            raise NotSignedIn(
                f"the token was signed with another key; get one {self._source}", code="TOKEN_INVALID"
            ) from error
        except jwt.DecodeError as error:
            raise NotSignedIn(
                f"that is no token: one has three parts with dots between them; get one {self._source}",
                code="TOKEN_INVALID",
            ) from error
        except jwt.PyJWTError as error:
            raise NotSignedIn(f"the token is not valid: {error}", code="TOKEN_INVALID") from error
        user, expires_at = claims[self._user_claim], float(claims["exp"])
        if not is_user_name(user):
            raise NotSignedIn("the token names no user", code="TOKEN_INVALID")
        is_program = _grants(claims, self._system_claim)
        is_admin = is_program or _grants(claims, self._admin_claim)
        # Of what is signed, not of the whole token: a signature of ES256 has a second form that is good, too.
        session = sha256(token.rpartition(".")[0].encode()).hexdigest()
        issued_at = float(claims.get("iat", 0.0))
        return Identity(user, is_admin, is_program, issued_at, expires_at, session), expires_at

    def issue(self, user: str, *, is_admin: bool = False, is_program: bool = False, seconds: float = 86_400.0) -> str:
        """A token for somebody, or for an operator's program; only where the secret is ours."""
        if not isinstance(self._keys, OwnSecret):
            raise ConfigurationError(
                "tokens come from your identity provider (PENSTOCK_JWKS_URL); Penstock cannot make any",
                code="TOKENS_FROM_ELSEWHERE",
            )
        now = time.time()  # with its fraction: who signs in again in the second of an ending is let in
        claims: dict[str, Any] = {self._user_claim: user, "iat": now, "exp": int(now + seconds)}
        if is_admin:
            _grant(claims, self._admin_claim)
        if is_program:
            _grant(claims, self._system_claim)
        if self._issuer is not None:
            claims["iss"] = self._issuer
        if self._audience is not None:
            claims["aud"] = self._audience
        return jwt.encode(claims, self._keys.secret, algorithm="HS256")


def _grants(claims: dict[str, Any], right: str) -> bool:
    """Do these claims give a right? ``NAME`` asks for true, ``NAME=VALUE`` for this text or a list with it.

    >>> _grants({"admin": True}, "admin"), _grants({"admin": "true"}, "admin")
    (True, False)
    >>> _grants({"roles": ["reader", "operator"]}, "roles=operator"), _grants({"roles": "operators"}, "roles=operator")
    (True, False)
    """
    name, names_value, value = right.partition("=")
    content = claims.get(name)
    if not names_value:
        return content is True
    return content == value or (isinstance(content, list) and value in content)


def _grant(claims: dict[str, Any], right: str) -> None:
    name, names_value, value = right.partition("=")
    claims[name] = [*claims.get(name, ()), value] if names_value else True
