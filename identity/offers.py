"""Offers: what the loaded plugins offer, checked and put together once, at start. Raises PluginProblem."""

from collections.abc import Callable, Mapping
from typing import Any

from identity.domain.authentication import PASSWORD
from identity.domain.managers import Role
from identity.domain.permissions import PERMISSIONS
from identity.domain.users import User
from identity.domain.words import say
from identity.ini_values import BadSetting
from identity.mailer import MailDelivery, Mailer
from identity.plugin_host import PluginHost, PluginProblem
from identity.provider.directory import Directory
from identity.provider.endpoints import ENDPOINTS
from identity.provider.factor import Factor
from identity.provider.grant import ClientRule
from identity.provider.interaction import Interaction
from identity.provider.protocol import Protocol
from identity.provider.response_type import Artifact, ResponseType
from identity.provider.scope import Scopes
from identity.services.access import Deny
from identity.services.choices import Choices, GrantChoice, HasWay, ResponseChoice
from identity.services.lookup import Lookup
from identity.services.mails import KIND
from identity.services.outbox import Delivery
from identity.settings import Settings
from identity.storage.backend import Backend
from identity.watching import Watcher

#: Plugins' word on a password: user, password, lookup → whether it is theirs, or None for no opinion.
CheckPassword = Callable[[User, str, Lookup], bool | None]


def backend(host: PluginHost, wanted: str) -> Backend:
    """The storage of this name. Raises BadSetting if no plugin offers it."""
    backends: dict[str, Backend] = host.unique("identity_storage_backends", lambda one: str(one.name), "storage")
    if wanted not in backends:
        offered = ", ".join(sorted(backends)) or "none"
        raise BadSetting("identity.storage", f'"{wanted}" is offered by no listed plugin; offered: {offered}')
    return backends[wanted]


def manager_roles(host: PluginHost) -> Mapping[str, Role]:
    """All manager roles by name."""
    roles: dict[str, Role] = host.unique("identity_manager_roles", lambda one: str(one.name), "manager role")
    for role in roles.values():
        unknown = role.permissions - PERMISSIONS
        if unknown:
            raise PluginProblem(f"The role {role.name} names unknown permissions: {', '.join(sorted(unknown))}.")
    return roles


def protocol(host: PluginHost) -> Protocol:
    """What the protocol can do."""
    return Protocol(
        grants=host.unique("identity_grant_types", lambda one: str(one.grant_type), "grant type"),
        response_types=_response_types(host),
        interactions=_interactions(host),
        factors=_factors(host),
        scopes=Scopes(_scopes(host)),
        client_authentications=host.unique(
            "identity_client_authentications", lambda one: str(one.name), "client authentication"
        ),
        directories=host.unique("identity_directories", lambda one: str(one.name), "directory"),
        sign_out_ways=host.unique("identity_sign_out_ways", lambda one: str(one.name), "way to sign out"),
        user_claims=tuple(host.implementations("identity_user_claims")),
        token_claims=tuple(host.implementations("identity_token_claims")),
        discovery=tuple(host.implementations("identity_discovery")),
        endpoints=[*ENDPOINTS],
    )


def _scopes(host: PluginHost) -> list[Any]:
    """All scopes; a name offered twice stops the start."""
    return [
        *host.unique("identity_scopes", lambda one: " ".join(one.names) or type(one).__qualname__, "scope").values()
    ]


def _response_types(host: PluginHost) -> Mapping[frozenset[str], ResponseType]:
    """All response types by their words; two with the same words stop the start."""
    named = host.unique("identity_response_types", lambda one: " ".join(sorted(one.words)), "response type")
    return {one.words: one for one in named.values()}


def deliveries(host: PluginHost, settings: Settings, mailer: Mailer) -> Mapping[str, Delivery]:
    """All ways out of the service by kind: mails, where something takes them, and what plugins offer."""
    mails = {KIND: MailDelivery(mailer)} if mailer.enabled else {}
    offered: dict[str, Delivery] = host.unique(
        "identity_deliveries", lambda one: str(one.kind), "delivery", settings=settings
    )
    if KIND in offered:
        raise PluginProblem(f'A plugin offers the delivery "{KIND}", which is the service\'s own.')
    return mails | offered


def watchers(host: PluginHost) -> list[Watcher]:
    """All that hear what the process does."""
    return [offer.value for offer in host.offers("identity_watchers")]


def choices(host: PluginHost, protocol: Protocol, *, mail: bool = True) -> Choices:
    """What applications can be registered for, and how people can sign in; ``mail`` tells whether mail can be sent."""
    offered = host.unique("identity_ways", lambda one: str(one[0]), "way to sign in").values()
    elsewhere = {one[0]: one[1] for one in offered}
    factors = protocol.factors.items()
    return Choices(
        authentication_methods=tuple(protocol.client_authentications),
        # A grant that knows no client is nothing that an application could be registered for.
        grants={
            name: GrantChoice(
                takes_codes=one.takes_codes,
                brings_refresh_tokens=one.brings_refresh_tokens,
                takes_refresh_tokens=one.takes_refresh_tokens,
                confidential=one.confidential,
            )
            for name, one in protocol.grants.items()
            if one.client is not ClientRule.NONE
        },
        responses={
            one.value: ResponseChoice(code_alone=one.issues == {Artifact.CODE}, fronts_tokens=one.fronts_tokens)
            for one in protocol.response_types.values()
        },
        ways={
            PASSWORD: say("Password"),
            **elsewhere,
            **{name: one.label for name, one in factors},
        },
        alone=frozenset(name for name, one in factors if one.alone),
        elsewhere=frozenset(elsewhere),
        second=frozenset(name for name, one in factors if not one.spare and (mail or not one.needs_mail)),
        by_mail=frozenset(name for name, one in factors if one.needs_mail),
        has=(
            *((PASSWORD, _linked_at(one)) for one in protocol.directories.values()),
            *((one[0], one[2]) for one in offered if len(one) > 2),
        ),
    )


def _linked_at(directory: Directory[Any]) -> HasWay:
    """Whether a person's password is the directory's. What the ini file names, the instance manages."""
    return lambda subject, services: directory.link_of(subject, services) is not None


def _interactions(host: PluginHost) -> Mapping[str, Interaction]:
    """All interactions by name, in the order in which they are asked: the late ones last."""
    named: dict[str, Interaction] = host.unique("identity_interactions", lambda one: str(one.name), "interaction")
    return dict(sorted(named.items(), key=lambda offer: offer[1].late))


def _factors(host: PluginHost) -> Mapping[str, Factor]:
    """All factors by name."""
    named: dict[str, Factor] = host.unique("identity_factors", lambda one: str(one.name), "factor")
    return named


def check_password(host: PluginHost) -> CheckPassword | None:
    """One callable for all plugins that know passwords. What is told of a failure could show the password."""
    decide = host.deciding(
        "identity_check_password", lambda verdict: isinstance(verdict, bool), refused=False, traceback=False
    )
    if decide is None:
        return None
    return lambda user, password, lookup: decide(user=user, password=password, lookup=lookup)


def deny(host: PluginHost) -> Deny | None:
    """One callable for all vetoes."""
    decide = host.deciding(
        "identity_deny",
        lambda reason: isinstance(reason, str) and bool(reason),
        refused="A check of this action failed.",
    )
    if decide is None:
        return None
    return lambda principal, permission, resource, lookup: decide(
        principal=principal, permission=permission, resource=resource, lookup=lookup
    )
