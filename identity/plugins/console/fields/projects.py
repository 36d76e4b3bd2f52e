"""Fields of projects."""

from typing import Any

from identity.domain.messages import gettext_lazy as _
from identity.domain.projects import ANY_HOST, ClientRegistration, Project
from identity.plugins.console.field_labels import FieldLabel, has_discovery_member, labelled_fields
from identity.plugins.console.fields.applications import GRANT_TYPE_DESCRIPTIONS, capability_options

_REGISTRATION = _("Client registration")
_HAS_REGISTRATION = has_discovery_member("registration_endpoint")


def _has_resource_indicators(page: Any) -> bool:
    """No member of the discovery document announces them."""
    return bool(page.request.registry.application.protocol_registry.resource_resolvers)


PROJECT_FIELDS = labelled_fields(
    Project,
    {
        "name": FieldLabel(_("Name"), _("Shown to people who sign in to its applications, and in lists.")),
        "assert_roles": FieldLabel(
            _("Role assertion"),
            _(
                "Applications always receive the roles of users in user info and introspection, even if they do not ask"
                " for them."
            ),
            value_labels={
                True: _("On: applications always receive the roles of users."),
                False: _("Off: applications receive roles only if they request them."),
            },
        ),
        "resource_uris": FieldLabel(
            _("Resource URIs"),
            _("Addresses of the project's APIs, one per line. Clients name them to get tokens for these APIs alone."),
            is_available=_has_resource_indicators,
        ),
        "open_to_dynamic_clients": FieldLabel(
            _("Open to dynamic clients"),
            _(
                "Applications that registered themselves or are known by a URL can get tokens for the project's APIs,"
                " with the consent of each person."
            ),
            value_labels={
                True: _("On: applications that no manager created can get tokens for the project's APIs."),
                False: _("Off: only applications that managers created get tokens for the project's APIs."),
            },
            is_available=has_discovery_member("registration_endpoint", "client_id_metadata_document_supported"),
        ),
        "check_roles": FieldLabel(
            _("Role check"),
            _("Users without a role in the project cannot sign in to its applications."),
            value_labels={
                True: _("On: users without a role in the project cannot sign in to its applications."),
                False: _("Off: users need no role to sign in."),
            },
        ),
        "client_registration": FieldLabel(
            _("Who may register"),
            _("Applications that register themselves here are dynamic clients. They always ask for consent."),
            section=_REGISTRATION,
            is_available=_HAS_REGISTRATION,
            value_labels={
                ClientRegistration.OFF: _("Nobody"),
                ClientRegistration.INITIAL_ACCESS_TOKEN: _("Clients with an initial access token"),
                ClientRegistration.OPEN: _("Anyone"),
            },
        ),
        "registration_redirect_hosts": FieldLabel(
            _("Hosts of redirect URIs"),
            _(
                "One per line; without any, no client can register. localhost stands for programs on the person's"
                " computer, {any_host} for every host.",
                any_host=ANY_HOST,
            ),
            section=_REGISTRATION,
            is_available=_HAS_REGISTRATION,
        ),
        "registration_grant_types": FieldLabel(
            _("Grant types of registered clients"),
            _("None selected: codes and refresh tokens."),
            section=_REGISTRATION,
            is_available=_HAS_REGISTRATION,
            options=capability_options(
                lambda capabilities: [
                    name for name, grant in capabilities.grants_by_type.items() if not grant.accepts_service_users
                ],
                GRANT_TYPE_DESCRIPTIONS,
            ),
        ),
        "registration_token_minutes": FieldLabel(
            _("Lifetime of their access tokens"),
            _("In minutes."),
            section=_REGISTRATION,
            is_available=_HAS_REGISTRATION,
        ),
        "registration_limit": FieldLabel(
            _("Most registered clients"), section=_REGISTRATION, is_available=_HAS_REGISTRATION
        ),
        "registration_unused_days": FieldLabel(
            _("Delete unused clients after"),
            _("In days. A client is unused while it has no consent and no live token."),
            section=_REGISTRATION,
            is_available=_HAS_REGISTRATION,
        ),
    },
)
