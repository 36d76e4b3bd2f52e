"""SCIM 2.0 (RFC 7643, RFC 7644): identity providers create, change and deactivate the people of an organization."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from identity.api.entities import ManagerLevel, ManagerRole, Organization
from identity.api.pages import gettext_lazy
from identity.api.plugins import hookimpl, setting
from identity.plugins.scim.urls import ROLE_NAME, console_path

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.api.services import RecordNamespace

#: What a provisioning program may do. Without ``user_grant.write`` and ``*_manager.write`` it cannot put people into
#: groups that give roles, and it never changes people who have more permissions than itself.
PROVISIONER = ManagerRole(
    name=ROLE_NAME,
    level=ManagerLevel.ORGANIZATION,
    permissions=frozenset({"organization.read", "user.read", "user.write", "user.delete", "group.read", "group.write"}),
    description=gettext_lazy("Provisions users and groups by SCIM."),
    label=gettext_lazy("User provisioner"),
)


@dataclass(frozen=True)
class ScimSettings:
    """The settings ``identity.plugin.scim.*``."""

    verify_emails: bool = setting(
        "Let SCIM verify email addresses of domains that the organization has proven: applications then trust them. "
        "An address that another person of the organization has verified stays unverified.",
        default=False,
    )


# Inside the plugin class ``Settings`` is the plugin's attribute.
_Settings = ScimSettings


class ScimPlugin:
    """SCIM 2.0 for each organization, at /scim/v2/{organization}, and the manager role for it."""

    hookspecs = 1
    Settings = ScimSettings

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: "RecordNamespace") -> None:
        """SCIM attributes without a place in the account are stored here."""
        self._name_space = namespace

    @hookimpl
    def identity_manager_roles(self) -> Iterable[ManagerRole]:
        """The role of a provisioning program."""
        return [PROVISIONER]

    @hookimpl(optionalhook=True)
    def console_header_links(self, entity: object) -> Iterable[tuple[str, str]]:
        """A button that leads to the page of an organization."""
        if not isinstance(entity, Organization):
            return ()
        return [(gettext_lazy("Provisioning"), f"{console_path(entity.id)}/scim")]

    @hookimpl
    def identity_configure(self, config: "Configurator") -> None:
        """Add the routes, and the person's SCIM attributes to their data export."""
        from identity.plugins.scim.routes import add_scim_routes

        config.include("identity.pages")
        config.add_page_templates("identity.plugins.scim:templates")
        add_scim_routes(config, self._name_space, verifies_emails=self.settings.verify_emails)
