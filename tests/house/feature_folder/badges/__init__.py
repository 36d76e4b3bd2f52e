"""Badges: managers award them to users, users see theirs in the account, and applications request them."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyramid.config import Configurator

from badges.endpoint import badge_endpoint
from badges.operations import badge_operations
from badges.pages import add_badge_page
from badges.records import Badges
from identity.api.endpoints import Endpoint
from identity.api.plugins import hookimpl, setting
from identity.api.services import RecordNamespace
from identity.plugins.management.api import OperationGroup


class BadgesPlugin:
    """The plugin that the entry point names."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """The keys ``identity.plugin.badges.*`` of the ini file."""

        prefix: str = setting("What every badge begins with.", default="")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: RecordNamespace) -> None:
        self.badges = Badges(namespace, self.settings.prefix)

    @hookimpl
    def identity_endpoints(self) -> Iterable[Endpoint]:
        return [badge_endpoint(self.badges)]

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        add_badge_page(config, self.badges)

    @hookimpl(optionalhook=True)
    def management_operations(self) -> Iterable[OperationGroup]:
        return [badge_operations(self.badges)]
