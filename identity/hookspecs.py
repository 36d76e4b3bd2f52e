"""Every hook that a plugin may implement, by family.

========================  ==============  ==================================================================
family                    called          rule
========================  ==============  ==================================================================
setup                     once, at start  in ini order; an exception stops the start
offers                    once, at start  frozen into ``Protocol``; two offers of one name stop the start
contributions             per request     dicts merged in ini order; the first writer of a key wins, the clash
                                          is logged; protected names are refused
decisions                 per request     the first answer other than None counts; an exception refuses, and so
                                          does an answer of another type, such as what is yet to be awaited
notices                   after a commit  every plugin is told; a failing one is logged and harms no other
========================  ==============  ==================================================================

``lookup`` arguments are read-only: ``find_user(id)``, ``find_organization(id)``, ``find_project(id)``,
``find_application(id)``, ``list_project_roles(user_id, project_id)``, and ``find_record`` and ``list_records`` for what
the plugin keeps itself. No hook is handed a token, an assertion, a key, a password or another secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from pluggy import HookspecMarker

if TYPE_CHECKING:
    from pyramid.config import Configurator

    from identity.domain.audit import AuditEvent
    from identity.domain.managers import ManagerRole
    from identity.domain.permissions import Resource
    from identity.domain.records import RecordNamespace
    from identity.domain.users import User
    from identity.extension_points import CliCommand, ServicesFactory, ServingProcess, SystemCheck
    from identity.instrumentation import InstrumentationObserver
    from identity.provider.client_authentication import ClientAuthenticationMethod
    from identity.provider.directory import Directory
    from identity.provider.endpoint import Endpoint
    from identity.provider.factor import Factor
    from identity.provider.grant_type import Authorization, GrantType
    from identity.provider.interaction import Interaction
    from identity.provider.logout_handler import LogoutHandler
    from identity.provider.response_type import ResponseType
    from identity.provider.scope import GrantedScopes, Scope
    from identity.services.access_control import Principal
    from identity.services.capabilities import HasSignInMethod
    from identity.services.lookup import Lookup
    from identity.services.outbox import Delivery
    from identity.settings import Settings
    from identity.storage.backend import Backend


class HookspecRegistrar(Protocol):
    def add_hookspecs(self, module: ModuleType | type) -> None:
        """Register further hookspecs."""


#: The major version of these hooks; ``Plugin.hookspecs`` must equal it. Additions keep it, removals raise it.
HOOKSPEC_VERSION = 1

hookspec = HookspecMarker("identity")

# --- setup ------------------------------------------------------------------------------------------------------------


@hookspec
def identity_add_hookspecs(host: HookspecRegistrar) -> None:
    """Register hookspecs of your own before hooks are verified.

    Called once at start, before any other hook. ``host.add_hookspecs(module)`` takes a module or class with
    functions marked ``@hookspec``, so that further plugins can extend yours. Nothing is returned. An exception stops
    the start.

    Example::

        @hookimpl
        def identity_add_hookspecs(self, host):
            host.add_hookspecs(identity_console.hookspecs)
    """


@hookspec
def identity_record_namespace(namespace: RecordNamespace) -> None:
    """Take the namespace in which the plugin keeps records of its own.

    Called once at start, before anything is offered. ``namespace`` is the plugin's alone: with it,
    ``services.record_service(namespace)`` stores and finds what the plugin keeps, and nothing else. An exception
    stops the start. Nothing is returned.

    Example::

        @hookimpl
        def identity_record_namespace(self, namespace):
            self.namespace = namespace
    """


@hookspec
def identity_configure(config: Configurator) -> None:
    """Add routes, views and templates; runs inside ``config.include``.

    Called once at start, after all offers are collected. ``config`` is Pyramid's Configurator; every route states
    ``host`` and, unless it is public, ``authenticate``; every view a ``permission``. Nothing is returned. An exception
    stops the start, and so does a conflict with another plugin's route. Start no threads and open no connections here:
    workers are forked afterwards, and have neither.

    Example::

        @hookimpl
        def identity_configure(self, config):
            config.add_route("status", "/status", host="base")
            config.add_view(status, route_name="status", permission=NO_PERMISSION_REQUIRED)
    """


@hookspec
def identity_lifespan(process: ServingProcess) -> AbstractContextManager[object]:  # type: ignore[empty-body]
    """Do something for as long as a process answers requests, such as to listen at an address of one's own.

    Called once in each process that answers requests, after any fork, when it is about to begin. ``process`` shows what
    the process has in use, and opens services to read. Returns a context manager, which is entered then and left when
    the process ends. An exception stops the process.

    Example::

        @hookimpl
        def identity_lifespan(self, process):
            return Listener(self.settings.address, process.pool_usages)
    """


# --- offers -----------------------------------------------------------------------------------------------------------


@hookspec
def identity_storage_backends() -> Iterable[Backend]:  # type: ignore[empty-body]
    """Offer storage backends; ``identity.storage`` selects one by name.

    Called once at start. Returns Backend objects; they open nothing until they are used. Every backend passes
    ``identity.api.testing.StorageContract``. An exception stops the start.

    Example::

        @hookimpl
        def identity_storage_backends(self):
            return [RedisBackend(self.settings.url)]
    """


@hookspec
def identity_client_authentication_methods() -> Iterable[ClientAuthenticationMethod]:  # type: ignore[empty-body]
    """Offer ways in which a client proves who it is.

    Called once at start. Returns ClientAuthenticationMethod objects; their names appear in discovery. A request may use
    one way only. An exception stops the start.

    Example::

        @hookimpl
        def identity_client_authentication_methods(self):
            return [ClientSecretBasic()]
    """


@hookspec
def identity_grant_types() -> Iterable[GrantType]:  # type: ignore[empty-body]
    """Offer grant types for the token endpoint.

    Called once at start. Returns GrantType objects; each passes ``identity.api.testing.GrantTypeContract``. An
    exception stops the start.

    Example::

        @hookimpl
        def identity_grant_types(self):
            return [JwtBearerGrant(self.settings)]
    """


@hookspec
def identity_endpoints() -> Iterable[Endpoint]:  # type: ignore[empty-body]
    """Offer protocol endpoints, for programs and for browsers that applications send.

    Called once at start. Returns Endpoint values. From them follow routes, members of the discovery document, CORS,
    transactions and the token preview, as for the service's own endpoints. A name, a path or a member of the discovery
    document that another endpoint has stops the start, and so does an exception.

    Example::

        @hookimpl
        def identity_endpoints(self):
            return [
                Endpoint(
                    name="device",
                    path="/oauth/v2/device",
                    host=EndpointHost.BASE,
                    methods=("POST",),
                    discovery_member="device_authorization_endpoint",
                    writes=True,
                    handle=self.start_device,
                )
            ]
    """


@hookspec
def identity_response_types() -> Iterable[ResponseType]:  # type: ignore[empty-body]
    """Offer response types for the authorization endpoint.

    Called once at start. Returns ResponseType values; an application uses those that are enabled for it. An exception
    stops the start.

    Example::

        @hookimpl
        def identity_response_types(self):
            return [ResponseType("code id_token", frozenset({Artifact.CODE, Artifact.ID_TOKEN}))]
    """


@hookspec
def identity_interactions() -> Iterable[Interaction]:  # type: ignore[empty-body]
    """Offer pages that can stand between an authorization request and its answer.

    Called once at start. Returns Interaction objects; they are asked in order, plugins in ini order and late ones last,
    and the page of the first one required is shown. The plugin adds the page itself, below ``/login/{request}``, and
    calls ``services.sign_ins.complete_interaction`` when it is finished. An exception stops the start.

    Example::

        @hookimpl
        def identity_interactions(self):
            return [OneTimePassword(self.settings)]
    """


@hookspec
def identity_factors() -> Iterable[Factor]:  # type: ignore[empty-body]
    """Offer factors: ways to prove who one is besides a password.

    Called once at start. Returns Factor objects. The plugin adds their pages (``config.add_factor_pages``): one to
    prove the factor in a sign-in, one to set it up. When it is asked for, the core decides. An exception stops the
    start.

    Example::

        @hookimpl
        def identity_factors(self):
            return [TotpFactor()]
    """


@hookspec
def identity_directories() -> Iterable[Directory[Any]]:  # type: ignore[empty-body]
    """Offer directories that know people by login name and password, and bring those whom the service does not know.

    Called once at start. Returns Directory objects; the first in ini order that has a say about a login name is asked.
    The attempt is counted before. An exception stops the start.

    Example::

        @hookimpl
        def identity_directories(self):
            return [PeopleOfTheCompany(self.settings)]
    """


@hookspec
def identity_logout_handlers() -> Iterable[LogoutHandler]:  # type: ignore[empty-body]
    """Offer ways by which people sign out elsewhere, too, whose session ends at this browser.

    Called once at start. Returns LogoutHandler objects; the first in ini order that concerns one of the sessions is
    taken, where an application asks and on the service's own page alike. An exception stops the start.

    Example::

        @hookimpl
        def identity_logout_handlers(self):
            return [SignOutOfTheWiki()]
    """


@hookspec
def identity_sign_in_methods() -> Iterable[tuple[str, str] | tuple[str, str, HasSignInMethod]]:  # type: ignore[empty-body]
    """Offer ways to sign in that stand for the password and are no factor of the plugin's own.

    Called once at start. Returns pairs: the factor that their proofs name (``services.sign_ins.add_proof``), and what
    people know it as. A policy can then allow or leave out each. A third member, if there is one, is called with a
    subject and the services, and tells whether this person could sign in so with a role at the instance: without any
    way nobody is given one. An exception stops the start.

    Example::

        @hookimpl
        def identity_sign_in_methods(self):
            return [("smartcard", "Smart card")]
    """


@hookspec
def identity_scopes() -> Iterable[Scope]:  # type: ignore[empty-body]
    """Offer scopes, by fixed name or by pattern.

    Called once at start. Returns Scope objects. A scope that no plugin offers is dropped from a request. An exception
    stops the start.

    Example::

        @hookimpl
        def identity_scopes(self):
            return [ClaimsScope("department", frozenset({"department"}))]
    """


@hookspec
def identity_manager_roles() -> Iterable[ManagerRole]:  # type: ignore[empty-body]
    """Offer manager roles: name, level, permissions.

    Called once at start. Returns ManagerRole values, whose permissions must be known ones. An exception stops the
    start.

    Example::

        @hookimpl
        def identity_manager_roles(self):
            permissions = frozenset({"audit_event.read"})
            return [ManagerRole(name="ORG_AUDITOR", level=ManagerLevel.ORGANIZATION, permissions=permissions)]
    """


@hookspec
def identity_commands() -> Iterable[CliCommand]:  # type: ignore[empty-body]
    """Offer subcommands of the ``identity`` program.

    Called once when the program runs with an ini file. Returns CliCommand objects. An exception stops the program.

    Example::

        @hookimpl
        def identity_commands(self):
            return [CliCommand("sync", "Bring users over from the directory.", add_arguments, run)]
    """


@hookspec
def identity_system_checks(settings: Settings, open_services: ServicesFactory) -> Iterable[SystemCheck]:  # type: ignore[empty-body]
    """Offer checks that tell an operator what to fix (``identity check``, /readyz).

    Called once at start. ``settings`` are the core's; ``open_services`` opens services to read what is stored, while a
    check runs: ``with open_services() as services``. Returns SystemCheck objects; each one's ``run()`` returns
    None or a sentence that says what to do. An exception in ``run`` counts as a failure of that check.

    Example::

        @hookimpl
        def identity_system_checks(self, settings, open_services):
            return [SystemCheck("directory", self.directory_answers)]
    """


@hookspec
def identity_observers() -> Iterable[InstrumentationObserver]:  # type: ignore[empty-body]
    """Offer observers: they hear how long hashes, signatures and statements took, and what sign-ins came to.

    Called once at start, before anything is opened. Returns InstrumentationObserver objects. An
    exception stops the start.

    Example::

        @hookimpl
        def identity_observers(self):
            return [SlowStatements(self.settings.threshold)]
    """


@hookspec
def identity_deliveries(settings: Settings) -> Iterable[Delivery]:  # type: ignore[empty-body]
    """Offer ways out of the service: what is to be sent elsewhere when an audit event is written.

    Called once at start. ``settings`` are the core's. Returns Delivery objects. What one has to tell of an event is put
    into the outbox in the transaction that writes the event, so nothing is lost, and sent after the commit until the
    other side takes it. An exception stops the start.

    Example::

        @hookimpl
        def identity_deliveries(self, settings):
            return [SyslogDelivery(self.settings.host)]
    """


# --- contributions ----------------------------------------------------------------------------------------------------


@hookspec
def identity_discovery(document: Mapping[str, object]) -> Mapping[str, object]:  # type: ignore[empty-body]
    """Add members to the discovery document.

    Called once per process, when the document is first built. ``document`` is what stands so far. Returns the members
    to add; members that exist cannot be changed. An exception stops the start.

    Example::

        @hookimpl
        def identity_discovery(self, document):
            return {"service_documentation": "https://docs.example.com"}
    """


@hookspec
def identity_user_claims(  # type: ignore[empty-body]
    user: User, scopes: tuple[str, ...], lookup: Lookup
) -> Mapping[str, object]:
    """Add claims about a user, for userinfo, id_token and introspection.

    Called for each such answer. ``user`` is the person or service user, ``scopes`` are the granted ones, ``lookup``
    reads more. Returns claims that serialize as JSON, at most 4 KiB; reserved names (sub, iss, aud …) are refused. An
    exception fails the request, unless ``identity.hook_failure`` is ``ignore``.

    Example::

        @hookimpl
        def identity_user_claims(self, user, scopes, lookup):
            record = lookup.find_record(self.namespace, "department", user.id)
            return {"department": record.value["name"]} if record and "department" in scopes else {}
    """


@hookspec
def identity_token_claims(  # type: ignore[empty-body]
    authorization: Authorization, granted: GrantedScopes, lookup: Lookup
) -> Mapping[str, object]:
    """Add claims to a JWT access token.

    Called each time one is minted. ``authorization`` is what the grant established, ``granted`` the scopes and the
    audience, ``lookup`` reads more. Returns claims as ``identity_user_claims`` does, under the same limits. An
    exception fails the request, unless ``identity.hook_failure`` is ``ignore``.

    Example::

        @hookimpl
        def identity_token_claims(self, authorization, granted, lookup):
            return {"tenant": self.tenants[authorization.organization.id]}
    """


# --- decisions --------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def identity_check_password(user: User, password: str, lookup: Lookup) -> bool | None:
    """Say whether this password belongs to this user.

    Called for each attempt that is not held back, before the stored hash is looked at. ``user`` is the person,
    ``password`` what was typed, ``lookup`` reads more. Returns True or False to decide, None to leave it to the next
    plugin or the stored hash. No other hook sees a password: do not keep it, do not log it. An exception refuses, and
    so does anything else that is returned, also if it counts as true.

    Example::

        @hookimpl
        def identity_check_password(self, user, password, lookup):
            return self.directory.bind(user.user_name, password) if user.id in self.directory else None
    """


@hookspec(firstresult=True)
def identity_deny(principal: Principal, permission: str, resource: Resource, lookup: Lookup) -> str | None:
    """Refuse an action that roles would allow; return the reason.

    Called for each action that roles allow, and for each organization, project, grant and audit event that a list,
    a choice or an exported document would show, but never for the operator on the machine. ``principal`` is who asks,
    ``permission`` what for, ``resource`` where; ``lookup`` reads more. Returns a sentence to refuse, which leaves a row
    out of a list, None for no opinion. There is no way to allow what roles do not, so the verdict does not depend on
    the order of plugins. An exception refuses, and so does anything else that is returned.

    Example::

        @hookimpl
        def identity_deny(self, principal, permission, resource, lookup):
            return "Changes are frozen." if self.frozen and not permission.endswith(".read") else None
    """


# --- notices ----------------------------------------------------------------------------------------------------------


@hookspec
def identity_audit_event_recorded(event: AuditEvent) -> None:
    """Learn of an audit event, after its transaction is committed.

    Called once per event, in the process that wrote it; a refused attempt is an event too. ``event`` holds no secret.
    Nothing is returned; an exception is logged and no other plugin notices. Do not block here: hand slow work to a
    thread, or what must not be lost to ``identity_deliveries``.

    Example::

        @hookimpl
        def identity_audit_event_recorded(self, event):
            self.counter.labels(event.event).inc()
    """
