"""Place: where a page of the console lies, what its address names, and which permission it takes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyramid.config import Configurator
from pyramid.request import Request

from identity.http.targets import Target
from identity.pages.page import Page
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.things import OfThing


@dataclass(frozen=True)
class Place:
    """``path`` is what follows /console; ``target`` finds what it names, and 404 for what one may not know of."""

    path: str
    page: type[Page]
    permission: str
    target: Callable[[Request], Target]


def of_things(*pages: type[OfThing[Any]]) -> tuple[Place, ...]:
    """Where pages of a thing lie."""
    return tuple(Place(f"{one.path}{one.at}", one, one.permission(), one.target) for one in pages)


def add_places(config: Configurator, places: Iterable[Place]) -> None:
    """A route and a view for each, for whoever is signed in and holds the permission."""
    for place in places:
        name = "console" + place.path.replace("/", ".").replace("{", "").replace("}", "")
        config.add_page(
            name,
            CONSOLE + place.path,
            place.page,
            permission=place.permission,
            authenticate="session",
            factory=place.target,
        )
