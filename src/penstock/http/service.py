"""What all routes share: the Penstock they serve, who signs tokens, the limits."""

from __future__ import annotations

from anyio import CapacityLimiter

from penstock.app import Penstock
from penstock.http.bodies import BodyMemory
from penstock.http.change_feed import ChangeFeed
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

    def __init__(self, app: Penstock) -> None:
        self.app = app
        self.tokens = tokens_of(app)
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
        admin_claim=settings.admin_claim,
        system_claim=settings.system_claim,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
    )
