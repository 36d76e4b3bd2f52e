"""The management API: JSON under /management/v1, with a bearer token meant for the own project."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity import hookimpl

if TYPE_CHECKING:
    from pyramid.config import Configurator

PREFIX = "/management/v1"


class Plugin:
    """Adds the API's routes on the base host."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """None."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Every resource of the API."""
        from identity.plugins.management.views import instance, me

        for resource in (me, instance):
            resource.configure(config, PREFIX)
