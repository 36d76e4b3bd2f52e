"""A plugin that adds grant types, a scope with its claim, a sign-in page, a console page and a storage backend."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyramid.config import Configurator

from identity.api.entities import Organization, User
from identity.api.grants import GrantType, Scope
from identity.api.pages import NavigationItem
from identity.api.plugins import hookimpl, setting
from identity.api.services import Lookup, Principal, RecordNamespace
from identity.api.sign_in import Interaction
from identity.api.storage import Backend
from identity.plugins.console.api import add_console_routes
from sample_plugin import console_page, page
from sample_plugin.grant_type import Delegation
from sample_plugin.interaction import DoorPinInteraction
from sample_plugin.scope import CLAIM, SCOPE, department_scope
from sample_plugin.storage import SampleBackend
from sample_plugin.token_exchange import TokenExchange


class SamplePlugin:
    """The class that the entry point names. The service creates one instance per process, with its settings."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """The keys ``identity.plugin.sample.*`` of the ini file."""

        department: str = setting("The department that every user of this installation works for.", default="")
        door: bool = setting("Whether people give a code of their own after their password.", default=False)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_grant_types(self) -> Iterable[GrantType]:
        """The delegation grant and token exchange."""
        return [Delegation(), TokenExchange()]

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        """The scope "department"."""
        return [department_scope()]

    @hookimpl
    def identity_user_claims(self, user: User, scopes: tuple[str, ...], lookup: Lookup) -> Mapping[str, object]:
        """The claim "department", if its scope was granted and the setting has a value."""
        department = self.settings.department
        return {CLAIM: department} if SCOPE in scopes and department else {}

    @hookimpl
    def identity_interactions(self) -> Iterable[Interaction]:
        """The door PIN, if enabled."""
        return [DoorPinInteraction()] if self.settings.door else []

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        """Add the sign-in page and the console page."""
        if self.settings.door:
            page.configure(config, self.record_namespace)
            add_console_routes(config, console_page.ROUTES)

    @hookimpl(optionalhook=True)
    def console_navigation(self, principal: Principal, organization: Organization | None) -> Iterable[NavigationItem]:
        """The navigation entry of the console page."""
        return [console_page.navigation_item(organization)] if self.settings.door and organization is not None else []

    @hookimpl
    def identity_record_namespace(self, namespace: RecordNamespace) -> None:
        """Called once before requests: keep the namespace in which door PINs are stored."""
        self.record_namespace = namespace

    @hookimpl
    def identity_storage_backends(self) -> Iterable[Backend]:
        """The storage backend "sample"."""
        return [SampleBackend()]
