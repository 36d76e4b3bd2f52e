"""Collects and validates what the loaded plugins offer, once at start. Raises PluginError."""

from collections.abc import Callable, Mapping
from typing import Any

from identity.document_cache import DocumentTransport
from identity.domain.authentication import Proof
from identity.domain.managers import ManagerRole
from identity.domain.messages import gettext_lazy
from identity.domain.users import User
from identity.instrumentation import InstrumentationObserver
from identity.mailer import MailDelivery, Mailer
from identity.plugin_host import PluginError, PluginHost
from identity.provider.directory import Directory
from identity.provider.endpoint import Endpoint
from identity.provider.endpoints import CORE_ENDPOINTS
from identity.provider.factor import Factor
from identity.provider.grant_type import ClientRequirement
from identity.provider.interaction import Interaction
from identity.provider.protocol_registry import ProtocolRegistry
from identity.provider.response_type import CORE_RESPONSE_MODES, Artifact, ResponseMode, ResponseType
from identity.provider.scope import Scopes
from identity.services.access_control import DenyHook
from identity.services.capabilities import Capabilities, GrantTypeCapability, HasSignInMethod, ResponseTypeCapability
from identity.services.client_metadata import ClientMetadataClient
from identity.services.lookup import Lookup
from identity.services.mails import MAIL_KIND
from identity.services.outbox import Delivery
from identity.settings import Settings
from identity.settings_parser import InvalidSetting
from identity.signers import SOFTWARE, Signer
from identity.storage.backend import Backend

#: A plugin's password check: user, password, lookup → whether the password is right; None to pass.
PasswordCheck = Callable[[User, str, Lookup], bool | None]


def select_backend(host: PluginHost, name: str) -> Backend:
    """The storage backend of this name. Raises InvalidSetting if no plugin offers it."""
    backends: dict[str, Backend] = host.extensions_by_name(
        "identity_storage_backends", lambda item: str(item.name), "storage"
    )
    if name not in backends:
        offered = ", ".join(sorted(backends)) or "none"
        raise InvalidSetting("identity.storage", f'"{name}" is offered by no listed plugin; offered: {offered}')
    return backends[name]


def collect_signers(host: PluginHost, selected: str) -> Mapping[str, Signer]:
    """All signers of plugins by name. Raises InvalidSetting unless ``selected`` is one of them or the service's own."""
    signers: dict[str, Signer] = host.extensions_by_name("identity_signers", lambda item: str(item.name), "signer")
    if SOFTWARE in signers:
        raise PluginError(f'A plugin offers the signer "{SOFTWARE}", which is the service\'s own.')
    if selected not in (SOFTWARE, *signers):
        offered = ", ".join((SOFTWARE, *sorted(signers)))
        raise InvalidSetting("identity.signer", f'"{selected}" is offered by no listed plugin; offered: {offered}')
    return signers


def collect_manager_roles(host: PluginHost) -> Mapping[str, ManagerRole]:
    roles: dict[str, ManagerRole] = host.extensions_by_name(
        "identity_manager_roles", lambda item: str(item.name), "manager role"
    )
    for role in roles.values():
        unknown = role.permissions - ManagerRole.PERMISSIONS
        if unknown:
            raise PluginError(f"The role {role.name} names unknown permissions: {', '.join(sorted(unknown))}.")
    return roles


def build_protocol_registry(host: PluginHost) -> ProtocolRegistry:
    return ProtocolRegistry(
        grant_types=host.extensions_by_name("identity_grant_types", lambda item: str(item.grant_type), "grant type"),
        response_types=_collect_response_types(host),
        response_modes=_collect_response_modes(host),
        authorization_request_sources=host.extensions_by_name(
            "identity_authorization_request_sources", lambda item: str(item.name), "source of authorization requests"
        ),
        sender_constraints=host.extensions_by_name(
            "identity_sender_constraints", lambda item: str(item.name), "sender constraint"
        ),
        resource_resolvers=host.extensions_by_name(
            "identity_resource_resolvers", lambda item: str(item.name), "resolver of resource indicators"
        ),
        interactions=_collect_interactions(host),
        factors=_collect_factors(host),
        scopes=Scopes(_collect_scopes(host)),
        client_authentication_methods=host.extensions_by_name(
            "identity_client_authentication_methods", lambda item: str(item.name), "client authentication"
        ),
        assertion_verifiers=host.extensions_by_name(
            "identity_assertion_verifiers", lambda item: str(item.name), "assertion verifier"
        ),
        directories=host.extensions_by_name("identity_directories", lambda item: str(item.name), "directory"),
        logout_handlers=host.extensions_by_name(
            "identity_logout_handlers", lambda item: str(item.name), "way to sign out"
        ),
        user_claims=tuple(host.implementations("identity_user_claims")),
        token_claims=tuple(host.implementations("identity_token_claims")),
        discovery=tuple(host.implementations("identity_discovery")),
        endpoints=_collect_endpoints(host),
    )


def _collect_endpoints(host: PluginHost) -> tuple[Endpoint, ...]:
    """The service's own endpoints, then those of plugins. Raises PluginError if two have the same name, path or
    discovery member.
    """
    endpoints: list[Endpoint] = [*CORE_ENDPOINTS]
    offered = [(offer.plugin, offer.value) for offer in host.extensions("identity_endpoints")]
    host.record_offers("endpoint", [(plugin, endpoint.path) for plugin, endpoint in offered])
    for plugin, endpoint in offered:
        for other in endpoints:
            if (
                endpoint.name == other.name
                or endpoint.path == other.path
                or endpoint.discovery_member == other.discovery_member is not None
            ):
                raise PluginError(
                    f'The plugin "{plugin}" offers the endpoint "{endpoint.name}" at {endpoint.path}; there is'
                    f' "{other.name}" at {other.path} ({other.discovery_member or "not in discovery"}) already.'
                )
        endpoints.append(endpoint)
    return tuple(endpoints)


def _collect_scopes(host: PluginHost) -> list[Any]:
    """All scopes. Raises PluginError for a scope that two plugins offer."""
    return [
        *host.extensions_by_name(
            "identity_scopes", lambda item: " ".join(item.names) or type(item).__qualname__, "scope"
        ).values()
    ]


def _collect_response_types(host: PluginHost) -> Mapping[frozenset[str], ResponseType]:
    """All response types by their values. Raises PluginError if two have the same values."""
    named = host.extensions_by_name(
        "identity_response_types", lambda item: " ".join(sorted(item.values)), "response type"
    )
    return {item.values: item for item in named.values()}


def _collect_response_modes(host: PluginHost) -> Mapping[str, ResponseMode]:
    """All response modes by name. Raises PluginError if a plugin offers one of the service's own."""
    offered: dict[str, ResponseMode] = host.extensions_by_name(
        "identity_response_modes", lambda item: str(item.value), "response mode"
    )
    for name in offered.keys() & CORE_RESPONSE_MODES.keys():
        raise PluginError(f'A plugin offers the response mode "{name}", which is the service\'s own.')
    return {**CORE_RESPONSE_MODES, **offered}


def collect_deliveries(host: PluginHost, settings: Settings, mailer: Mailer) -> Mapping[str, Delivery]:
    """All deliveries by kind: mail and those of plugins."""
    offered: dict[str, Delivery] = host.extensions_by_name(
        "identity_deliveries", lambda item: str(item.kind), "delivery", settings=settings
    )
    if MAIL_KIND in offered:
        raise PluginError(f'A plugin offers the delivery "{MAIL_KIND}", which is the service\'s own.')
    return {MAIL_KIND: MailDelivery(mailer), **offered}


def create_client_metadata_client(host: PluginHost, transport: DocumentTransport) -> ClientMetadataClient | None:
    """None if no plugin reads metadata of clients."""
    sources = host.extensions_by_name(
        "identity_client_metadata_sources", lambda item: str(item.name), "source of client metadata"
    )
    return ClientMetadataClient(transport, sources.values()) if sources else None


def collect_observers(host: PluginHost) -> list[InstrumentationObserver]:
    return [offer.value for offer in host.extensions("identity_observers")]


def build_capabilities(host: PluginHost, protocol: ProtocolRegistry) -> Capabilities:
    """What applications can be registered for, and how people can sign in."""
    offered = host.extensions_by_name("identity_sign_in_methods", lambda item: str(item[0]), "way to sign in").values()
    methods = {item[0]: item[1] for item in offered}
    factors = protocol.factors.items()
    return Capabilities(
        authentication_methods=tuple(protocol.client_authentication_methods),
        sender_constraints=tuple(protocol.sender_constraints),
        # A grant type without clients cannot be registered for an application.
        grants_by_type={
            name: GrantTypeCapability(
                accepts_codes=grant_type.accepts_codes,
                issues_refresh_tokens=grant_type.issues_refresh_tokens,
                accepts_refresh_tokens=grant_type.accepts_refresh_tokens,
                requires_confidential_client=grant_type.requires_confidential_client,
                accepts_service_users=grant_type.client_requirement is ClientRequirement.OR_SERVICE_USER,
            )
            for name, grant_type in protocol.grant_types.items()
            if grant_type.client_requirement is not ClientRequirement.NONE
        },
        responses_by_type={
            response_type.value: ResponseTypeCapability(
                is_code_only=response_type.artifacts == {Artifact.CODE},
                uses_front_channel=response_type.uses_front_channel,
            )
            for response_type in protocol.response_types.values()
        },
        sign_in_methods={
            Proof.PASSWORD_FACTOR: gettext_lazy("Password"),
            **methods,
            **{name: factor.label for name, factor in factors},
        },
        passwordless_factors=frozenset(name for name, factor in factors if factor.is_passwordless),
        federated_methods=frozenset(methods),
        second_factors=frozenset(name for name, factor in factors if not factor.is_backup),
        mail_factors=frozenset(name for name, factor in factors if factor.needs_mail),
        sign_in_method_checks=(
            *((Proof.PASSWORD_FACTOR, _is_directory_account(directory)) for directory in protocol.directories.values()),
            *((item[0], item[2]) for item in offered if len(item) > 2),
        ),
        directories=protocol.directories,
    )


def _is_directory_account(directory: Directory[Any]) -> HasSignInMethod:
    """Returns whether a user's password is the directory's. The instance manages all directories in the ini file."""
    return lambda subject, services: directory.linked_entry_id(subject, services) is not None


def _collect_interactions(host: PluginHost) -> Mapping[str, Interaction]:
    """All interactions by name in the order in which they run; late ones come last."""
    named: dict[str, Interaction] = host.extensions_by_name(
        "identity_interactions", lambda item: str(item.name), "interaction"
    )
    return dict(sorted(named.items(), key=lambda offer: offer[1].runs_after_authentication))


def _collect_factors(host: PluginHost) -> Mapping[str, Factor]:
    named: dict[str, Factor] = host.extensions_by_name("identity_factors", lambda item: str(item.name), "factor")
    return named


def combine_password_checks(host: PluginHost) -> PasswordCheck | None:
    """One callable for all password checks of plugins. Errors are not logged in detail, because they could contain
    the password.
    """
    decide = host.combine_decisions(
        "identity_check_password", lambda answer: isinstance(answer, bool), on_failure=False, traceback=False
    )
    if decide is None:
        return None
    return lambda user, password, lookup: decide(user=user, password=password, lookup=lookup)


def combine_deny_hooks(host: PluginHost) -> DenyHook | None:
    """One callable for all deny hooks."""
    decide = host.combine_decisions(
        "identity_deny",
        lambda reason: isinstance(reason, str) and bool(reason),
        on_failure="A check of this action failed.",
    )
    if decide is None:
        return None
    return lambda principal, permission, resource, lookup: decide(
        principal=principal, permission=permission, resource=resource, lookup=lookup
    )
