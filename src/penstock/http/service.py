"""What all routes share: the Penstock they serve, who signs tokens, the limits."""

from __future__ import annotations

from anyio import CapacityLimiter

from penstock.app import Penstock
from penstock.http.authentication import Authenticate, OwnAuthentication, TokenAuthentication
from penstock.http.bodies import BodyMemory
from penstock.http.change_feed import ChangeFeed
from penstock.http.ended_sessions import EndedSessions
from penstock.http.hosts import Hosts
from penstock.http.limits import RateLimit, Slots, SlotsPerKey
from penstock.http.sessions import Links
from penstock.http.signing_key import signing_secret
from penstock.http.system.metrics import Metrics
from penstock.http.system.stats_cache import StatsCache
from penstock.http.tokens import Keys, OwnSecret, PublishedKeys, Tokens

_KICKOFFS = 8
_EXPORTS = 4


class Service:
    """What one server has."""

    def __init__(
        self, app: Penstock, authenticate: Authenticate | None = None, sign_in_address: str | None = None
    ) -> None:
        self.app = app
        self.ended_sessions = EndedSessions(app, every=app.settings.session_check_seconds)
        self.tokens: Tokens | None = None
        """None where the application that we are part of says who asks."""
        self.authentication: TokenAuthentication | OwnAuthentication
        if authenticate is None:
            self.tokens = tokens_of(app)
            self.authentication = TokenAuthentication(self.tokens, self.ended_sessions)
        else:
            self.authentication = OwnAuthentication(authenticate, self.ended_sessions)
        self.sign_in_address = sign_in_address
        self.hosts = Hosts(app.settings.allowed_hosts) if app.settings.allowed_hosts else None
        """By which names we are asked; None: by any."""
        self.links = Links()
        self.change_feed = ChangeFeed(app)
        self.stats = StatsCache(app)
        self.metrics = Metrics(self.stats)
        self.kickoffs = Slots(_KICKOFFS, "kickoffs")
        self.exports = Slots(_EXPORTS, "exports to XLSX")
        self.streams = SlotsPerKey(app.settings.streams_per_user, "live streams", code="TOO_MANY_STREAMS")
        self.submissions = RateLimit(app.settings.submissions_per_minute, "submissions")
        self.guest_requests = RateLimit(app.settings.guest_requests_per_minute, "requests for work without a token")
        self.guest_reads = RateLimit(app.settings.guest_reads_per_minute, "requests without a token")
        self.body_memory = BodyMemory(app.settings.body_memory_bytes)
        self.large_json = CapacityLimiter(1)


def tokens_of(app: Penstock) -> Tokens:
    """What checks the tokens of an application, by its settings."""
    settings = app.settings
    keys: Keys
    if settings.jwks_url is not None:
        keys = PublishedKeys(settings.jwks_url)
    else:
        keys = OwnSecret(signing_secret(settings, app.system.database_file))
    return Tokens(
        keys,
        user_claim=settings.user_claim,
        admin_claim=settings.admin_claim,
        system_claim=settings.system_claim,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
    )
