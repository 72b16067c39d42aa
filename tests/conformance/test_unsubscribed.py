"""Messages that nobody subscribes to: nothing is lost, and people are told."""

from __future__ import annotations

from collections.abc import Callable

from structlog.testing import capture_logs

from penstock import Penstock
from penstock.clock import ManualClock

PATIENCE = 30.0
Open = Callable[..., Penstock]


def test_topics_that_nobody_subscribes_to_are_named_in_the_log_once_they_have_waited_for_a_minute(
    open_app: Open,
) -> None:
    clock = ManualClock()
    shop, cron = open_app(clock=clock), open_app(clock=clock)
    shop.messages.subscribe("orders")(print)
    shop.messages.publish("odrers", 1, key="k")
    shop.messages.publish("odrers", 2)
    shop.messages.publish("orders", 3)

    def named_by(app: Penstock) -> list[dict[str, int]]:
        with capture_logs() as lines:
            app.system.sweep()
        return [line["topics"] for line in lines if line["log_level"] == "error"]

    clock.advance(59)
    assert named_by(shop) == [], "its subscriber may be on its way"
    clock.advance(2)
    assert named_by(shop) == [{"odrers": 2}]
    assert named_by(shop) == [], "once is enough"
    assert named_by(cron) == [{"odrers": 2}], "another process knows nothing of that"
    cron.messages.publish("bills", 4)
    clock.advance(61)
    assert named_by(shop) == [{"bills": 1}]
    assert shop.messages.backlog().unsubscribed == 3, "nothing is lost"
    shop.messages.subscribe("odrers")(print)
    assert named_by(shop) == []
    assert shop.messages.backlog().waiting == 1


def test_a_worker_names_them_too(open_app: Open) -> None:
    clock = ManualClock()
    shop = open_app(clock=clock, sweep_seconds=0.05)
    shop.messages.publish("odrers", 1)
    clock.advance(61)
    with capture_logs() as lines, shop.working() as worker:
        worker.signals.listen()
        assert worker.signals.wait("swept", times=2, timeout=PATIENCE)
    named = [line for line in lines if line["event"] == "messages wait that no running worker subscribes to"]
    assert [(line["topics"], line["dropped_after_days"]) for line in named] == [({"odrers": 1}, 30.0)]
