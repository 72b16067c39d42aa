"""The applications that are installed here: found by their entry points, chosen by ``PENSTOCK_APPLICATIONS``.

``penstock.applications:app`` is what the command line and the workers use unless ``PENSTOCK_APP`` names another: a
Penstock with all of them. One that lacks a library is left out, and whoever submits a job of its kinds or asks at its
addresses is told which extra brings it; one that was asked for by name is refused.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from penstock.app import Penstock
from penstock.application import Application
from penstock.errors import ConfigurationError

GROUP = "penstock.applications"
_ALL, _NONE = "all", "none"


def find_applications() -> dict[str, Application[Any]]:
    """Every application that is installed, by its name."""
    return {point.name: _load(point) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def choose_applications(names: str) -> list[Application[Any]]:
    """The applications of a list of names, or ``all`` of them; one that is not there is refused."""
    there = find_applications()
    if names.strip() == _ALL:
        return list(there.values())
    chosen_names = [] if names.strip() in ("", _NONE) else [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen_names:
        if name not in there:
            raise ConfigurationError(
                f"PENSTOCK_APPLICATIONS names {name!r}; installed are {', '.join(there) or 'none'}",
                code="APPLICATION_UNKNOWN",
            )
    return [there[name] for name in chosen_names]


def install_applications(app: Penstock) -> Penstock:
    """Bring in the applications that the settings choose."""
    names = app.settings.applications
    for application in choose_applications(names):
        if names.strip() == _ALL and leave_out(app, application):
            continue
        app.install(application)
    return app


def leave_out(app: Penstock, application: Application[Any]) -> bool:
    """Leave an application out if it lacks a library; who asks for something of it is told so."""
    lacking = application.why_missing()
    if lacking is None:
        return False
    app.missing_applications.append(application)
    app.kinds.absent.update(dict.fromkeys(application.kinds, lacking))
    return True


def _load(point: EntryPoint) -> Application[Any]:
    try:
        application = point.load()
    except Exception as error:
        raise ConfigurationError(
            f"the application {point.name} cannot be loaded from {point.value}: {type(error).__name__}: {error}",
            code="APPLICATION_BROKEN",
        ) from error
    if not isinstance(application, Application):
        raise ConfigurationError(f"{point.value} is no Application", code="APPLICATION_BROKEN")
    return application


@cache
def _app() -> Penstock:
    return install_applications(Penstock())


def __getattr__(name: str) -> Penstock:
    if name == "app":
        return _app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
