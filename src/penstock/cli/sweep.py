"""``penstock sweep``."""

from __future__ import annotations

from penstock.cli.options import AppOption

_WORDS = {
    "leases_expired": ("item of a worker that is gone handed back", "items of workers that are gone handed back"),
    "retries_due": ("retry put in line", "retries put in line"),
    "never_submitted": ("job canceled that nobody submitted", "jobs canceled that nobody submitted"),
    "waited_too_long": ("job failed that no worker took in time", "jobs failed that no worker took in time"),
    "ran_too_long": ("job failed that ran too long", "jobs failed that ran too long"),
    "abandoned": ("result abandoned that nobody used", "results abandoned that nobody used"),
    "stale": ("stalled job set going", "stalled jobs set going"),
    "postponed": ("job put back in line after the clock was", "jobs put back in line after the clock was"),
}


def sweep(app: AppOption = None) -> None:
    """Make one maintenance pass, and say what it repaired.

    Running workers do the same every few seconds.

    \b
    penstock sweep
    """
    from dataclasses import asdict

    from penstock.cli.application import open_app
    from penstock.cli.texts import count_of

    with open_app(app) as penstock:
        counts: dict[str, int] = asdict(penstock.system.sweep())
        for name, count in counts.items():
            if count:
                print(count_of(count, *_WORDS.get(name, (name, name))))
        if not any(counts.values()):
            print("nothing to repair")
