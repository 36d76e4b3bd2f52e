"""Dynamic client registration (RFC 7591, RFC 7592): programs register as applications of a project, without a manager.

What could an attacker gain? They can name a client as they like, so nothing depends on the name:

- *Rights*: a registered client is a dynamic client, whatever it sends. It always asks for consent, acts for people,
  and gets the scopes and audiences that are open to such clients. No metadata sets more, and an update passes the same
  checks as a registration.
- *Phishing*: redirect URIs are on hosts that the project allows, and the consent page says that nobody has checked the
  client.
- *Exhaustion*: requests are counted per network address, clients per project. Slots are records with unique keys, so
  parallel requests cannot exceed the limit. Unused clients are deleted.
- *Other clients*: a client is read, changed and deleted with its registration access token only, of which a digest is
  stored and which each update replaces. Unknown clients and wrong tokens get one answer.
- *Finding out projects*: an unknown project, one without registration and a wrong initial access token get one answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity.api.entities import ClientRegistration, Project
from identity.api.pages import gettext_lazy
from identity.api.plugins import hookimpl, setting

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.endpoints import Endpoint
    from identity.api.services import RecordNamespace
    from identity.plugins.management.api import OperationGroup


@dataclass(frozen=True)
class DynamicRegistrationSettings:
    """The settings ``identity.plugin.dynamic_registration.*``."""

    default_project_id: str = setting(
        "The project in which clients register that name none and have no initial access token. Clients that only know "
        "discovery need it.",
        default="",
    )


_Settings = DynamicRegistrationSettings


class DynamicRegistrationPlugin:
    """Registration of clients by themselves (RFC 7591, RFC 7592), in projects that allow it."""

    hookspecs = 1
    Settings = DynamicRegistrationSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """Initial access tokens by project, registration access tokens by client, and what limits their number."""
        self._name_space = namespace

    @hookimpl
    def identity_endpoints(self) -> "Iterable[Endpoint]":
        """The registration endpoint, which is also that of each client's configuration."""
        from identity.plugins.dynamic_registration.endpoint import build_endpoint

        return [build_endpoint(self._name_space, self.settings.default_project_id)]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """The console page of initial access tokens."""
        from identity.plugins.dynamic_registration.pages import add_registration_pages

        add_registration_pages(config, self._name_space)

    @hookimpl(optionalhook=True)
    def console_header_links(self, entity: object) -> Iterable[tuple[str, str]]:
        """A button that leads to the page of a project."""
        from identity.plugins.dynamic_registration.pages import console_path

        if not isinstance(entity, Project) or entity.client_registration is ClientRegistration.OFF:
            return ()
        return [(gettext_lazy("Initial access tokens"), console_path(entity.id))]

    @hookimpl(optionalhook=True)
    def management_operations(self) -> "Iterable[OperationGroup]":
        """Initial access tokens of a project."""
        from identity.plugins.dynamic_registration.operations import build_operations

        return [build_operations(self._name_space)]
