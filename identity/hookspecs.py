"""Every hook that a plugin may implement, by family.

========================  ==============  ==================================================================
family                    called          rule
========================  ==============  ==================================================================
setup                     once, at start  in ini order; an exception stops the start
offers                    once, at start  collected in ``ProtocolRegistry``; a duplicate name stops the start
contributions             per request     dicts merged in ini order; the first plugin that sets a key wins, and
                                          the conflict is logged; protected names are refused
decisions                 per request     the first result other than None counts; an exception refuses, and so
                                          does a result of another type, such as a coroutine
notices                   after a commit  every plugin is called; an exception is logged and affects no other
========================  ==============  ==================================================================

``lookup`` arguments are read-only: ``find_user(id)``, ``find_organization(id)``, ``find_project(id)``,
``find_application(id)``, ``list_project_roles(user_id, project_id)``, and ``find_record`` and ``list_records`` for
the plugin's own records. No hook gets a token, an assertion, a key or another secret; only
``identity_check_password`` gets a password.
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
    from identity.provider.assertion_verifier import AssertionVerifier
    from identity.provider.authorization_request_source import AuthorizationRequestSource
    from identity.provider.client_authentication import ClientAuthenticationMethod
    from identity.provider.directory import Directory
    from identity.provider.endpoint import Endpoint
    from identity.provider.factor import Factor
    from identity.provider.grant_type import Authorization, GrantType
    from identity.provider.interaction import Interaction
    from identity.provider.logout import LogoutHandler
    from identity.provider.resource_indicators import ResourceResolver
    from identity.provider.response_type import ResponseMode, ResponseType
    from identity.provider.scope import GrantedScopes, Scope
    from identity.provider.sender_constraint import SenderConstraint
    from identity.services.access_control import Principal
    from identity.services.capabilities import HasSignInMethod
    from identity.services.client_metadata import ClientMetadataSource
    from identity.services.lookup import Lookup
    from identity.services.outbox import Delivery
    from identity.settings import Settings
    from identity.signers import ExternalSigner
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
    """Register your own hookspecs before hooks are verified.

    Called once at start, before any other hook. ``host.add_hookspecs(module)`` takes a module or class with functions
    marked ``@hookspec``, so that other plugins can extend yours. Nothing is returned. An exception stops the start.

    Example::

        @hookimpl
        def identity_add_hookspecs(self, host):
            host.add_hookspecs(identity_console.hookspecs)
    """


@hookspec
def identity_record_namespace(namespace: RecordNamespace) -> None:
    """Receive the namespace of the plugin's own records.

    Called once at start, before the hooks of the next family. With ``namespace``,
    ``services.record_service(namespace)`` stores and finds the plugin's records, and no others. Nothing is returned. An
    exception stops the start.

    Example::

        @hookimpl
        def identity_record_namespace(self, namespace):
            self.namespace = namespace
    """


@hookspec
def identity_configure(config: Configurator) -> None:
    """Add routes, views and templates; runs inside ``config.include``.

    Called once at start, after all offers are collected. ``config`` is Pyramid's Configurator. Each route needs a
    ``host`` and, unless it is public, ``authenticate``; each view needs a ``permission``. Nothing is returned. An
    exception stops the start, and so does a conflict with another plugin's route. Do not start threads or open
    connections here, because workers are forked afterwards.

    Example::

        @hookimpl
        def identity_configure(self, config):
            config.add_route("status", "/status", host="base")
            config.add_view(status, route_name="status", permission=NO_PERMISSION_REQUIRED)
    """


@hookspec
def identity_lifespan(process: ServingProcess) -> AbstractContextManager[object]:  # type: ignore[empty-body]
    """Run something for as long as a process serves requests, such as a separate listener.

    Called once in each serving process, after any fork, before the first request. ``process`` reports the resources in
    use and opens services for reading. Returns a context manager, which is entered at once and exits when the process
    ends. An exception stops the process.

    Example::

        @hookimpl
        def identity_lifespan(self, process):
            return Listener(self.settings.address, process.pool_usages)
    """


# --- offers -----------------------------------------------------------------------------------------------------------


@hookspec
def identity_storage_backends() -> Iterable[Backend]:  # type: ignore[empty-body]
    """Offer storage backends; ``identity.storage`` selects one by name.

    Called once at start. Returns Backend objects, which must not connect before they are used. Every backend must pass
    ``identity.api.testing.StorageContract``. An exception stops the start.

    Example::

        @hookimpl
        def identity_storage_backends(self):
            return [RedisBackend(self.settings.url)]
    """


@hookspec
def identity_signers() -> Iterable[ExternalSigner]:  # type: ignore[empty-body]
    """Offer signers that keep signing keys outside the process, such as in a hardware security module.

    Called once at start. Returns ExternalSigner objects, which must not connect before they are used;
    ``identity.signer`` selects the one that creates new keys by its name. The signer of a key that exists stays in use.
    Each signer must pass ``identity.api.testing.SignerContract``. An exception stops the start.

    Example::

        @hookimpl
        def identity_signers(self):
            return [CloudKeys(self.settings.region)]
    """


@hookspec
def identity_client_authentication_methods() -> Iterable[ClientAuthenticationMethod]:  # type: ignore[empty-body]
    """Offer client authentication methods.

    Called once at start. Returns ClientAuthenticationMethod objects; their names appear in discovery. A request may use
    only one method. An exception stops the start.

    Example::

        @hookimpl
        def identity_client_authentication_methods(self):
            return [ClientSecretBasic()]
    """


@hookspec
def identity_client_metadata_sources() -> Iterable[ClientMetadataSource]:  # type: ignore[empty-body]
    """Offer sources that read the metadata of clients whose id is its URL.

    Called once at start. Returns ClientMetadataSource objects; the first in ini order that accepts a client id reads
    what the service has fetched from it. An exception stops the start.

    Example::

        @hookimpl
        def identity_client_metadata_sources(self):
            return [ClientIdMetadataDocuments(self.settings)]
    """


@hookspec
def identity_grant_types() -> Iterable[GrantType]:  # type: ignore[empty-body]
    """Offer grant types for the token endpoint.

    Called once at start. Returns GrantType objects; each must pass ``identity.api.testing.GrantTypeContract``. An
    exception stops the start.

    Example::

        @hookimpl
        def identity_grant_types(self):
            return [JwtBearerGrant(self.settings)]
    """


@hookspec
def identity_assertion_verifiers() -> Iterable[AssertionVerifier]:  # type: ignore[empty-body]
    """Offer verifiers of assertions that outside issuers sign, for the JWT bearer grant.

    Called once at start. Returns AssertionVerifier objects. For each assertion the first one that accepts it decides;
    those that none accepts are verified with the keys of service users. An exception stops the start.

    Example::

        @hookimpl
        def identity_assertion_verifiers(self):
            return [WorkloadTokenVerifier(self.settings.max_token_lifetime)]
    """


@hookspec
def identity_endpoints() -> Iterable[Endpoint]:  # type: ignore[empty-body]
    """Offer protocol endpoints, for programs and for browsers that applications send.

    Called once at start. Returns Endpoint values. The service derives routes, discovery members, CORS, transactions and
    the token preview from them, as for its own endpoints. The service does not start if two endpoints have the same
    name, path or discovery member. An exception stops the start.

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

    Called once at start. Returns ResponseType values; an application can use those that are enabled for it. An
    exception stops the start.

    Example::

        @hookimpl
        def identity_response_types(self):
            return [ResponseType("code id_token", frozenset({Artifact.CODE, Artifact.ID_TOKEN}))]
    """


@hookspec
def identity_response_modes() -> Iterable[ResponseMode]:  # type: ignore[empty-body]
    """Offer response modes for the authorization endpoint.

    Called once at start. Returns ResponseMode values. ``encode`` of a mode gets the client, the context of the request
    and the members of the response, and returns the members to send. An exception stops the start.

    Example::

        @hookimpl
        def identity_response_modes(self):
            return [ResponseMode("query.jwt", ResponseTransport.QUERY, encode=sign_response)]
    """


@hookspec
def identity_authorization_request_sources() -> Iterable[AuthorizationRequestSource]:  # type: ignore[empty-body]
    """Offer sources of authorization requests, which load what ``request`` or ``request_uri`` carries or references.

    Called once at start. Returns AuthorizationRequestSource objects; the first one in ini order that accepts the value
    of its parameter is used. An exception stops the start.

    Example::

        @hookimpl
        def identity_authorization_request_sources(self):
            return [PushedRequestSource()]
    """


@hookspec
def identity_sender_constraints() -> Iterable[SenderConstraint]:  # type: ignore[empty-body]
    """Offer ways to bind tokens to a key of the client.

    Called once at start. Returns SenderConstraint objects. A token request with a proof gets tokens that are bound to
    its key; an application can require a constraint by its name. An exception stops the start.

    Example::

        @hookimpl
        def identity_sender_constraints(self):
            return [DpopConstraint(self.settings)]
    """


@hookspec
def identity_resource_resolvers() -> Iterable[ResourceResolver]:  # type: ignore[empty-body]
    """Offer ways to find the project that a resource indicator names (RFC 8707).

    Called once at start. Returns ResourceResolver objects; the first that finds a project decides. With at least one,
    the authorization endpoint and the token endpoint understand ``resource``. An exception stops the start.

    Example::

        @hookimpl
        def identity_resource_resolvers(self):
            return [ProjectResources()]
    """


@hookspec
def identity_interactions() -> Iterable[Interaction]:  # type: ignore[empty-body]
    """Offer pages between an authorization request and its response.

    Called once at start. Returns Interaction objects. They are checked in the order of plugins in the ini file, those
    with ``runs_after_authentication`` last, and the page of the first required one is shown. The plugin adds the page
    itself, below ``/login/{request}``, and calls ``services.sign_ins.complete_interaction`` when the user has finished.
    An exception stops the start.

    Example::

        @hookimpl
        def identity_interactions(self):
            return [OneTimePassword(self.settings)]
    """


@hookspec
def identity_factors() -> Iterable[Factor]:  # type: ignore[empty-body]
    """Offer authentication factors besides the password.

    Called once at start. Returns Factor objects. The plugin adds their pages with ``config.add_factor_pages``: one to
    verify the factor during a sign-in, one to set it up. The core decides when a factor is required. An exception stops
    the start.

    Example::

        @hookimpl
        def identity_factors(self):
            return [TotpFactor()]
    """


@hookspec
def identity_directories() -> Iterable[Directory[Any]]:  # type: ignore[empty-body]
    """Offer directories that verify passwords and provision accounts.

    Called once at start. Returns Directory objects; the first one in ini order that is responsible for a login name is
    used. The attempt is counted before. An exception stops the start.

    Example::

        @hookimpl
        def identity_directories(self):
            return [PeopleOfTheCompany(self.settings)]
    """


@hookspec
def identity_logout_handlers() -> Iterable[LogoutHandler]:  # type: ignore[empty-body]
    """Offer handlers that also sign users out at another site.

    Called once at start. Returns LogoutHandler objects; the first one in ini order that handles one of the ended
    sessions is used, for sign-out by an application and on the service's own page. Then each may have a page of its own
    before the browser goes on (``precede_return``). An exception stops the start.

    Example::

        @hookimpl
        def identity_logout_handlers(self):
            return [SignOutOfTheWiki()]
    """


@hookspec
def identity_sign_in_methods() -> Iterable[tuple[str, str] | tuple[str, str, HasSignInMethod]]:  # type: ignore[empty-body]
    """Offer sign-in methods that replace the password and are not factors.

    Called once at start. Returns pairs: the factor name in their proofs (``services.sign_ins.add_proof``), and the
    label for users. Policies can then allow or exclude each method. An optional third member is called with a subject
    and the services, and returns True if this user could sign in with this method while holding a role at the instance:
    a user without any such method cannot get a role there. An exception stops the start.

    Example::

        @hookimpl
        def identity_sign_in_methods(self):
            return [("smartcard", "Smart card")]
    """


@hookspec
def identity_scopes() -> Iterable[Scope]:  # type: ignore[empty-body]
    """Offer scopes, by fixed name or by pattern.

    Called once at start. Returns Scope objects. Scopes that no plugin offers are dropped from requests. An exception
    stops the start.

    Example::

        @hookimpl
        def identity_scopes(self):
            return [ClaimsScope("department", frozenset({"department"}))]
    """


@hookspec
def identity_manager_roles() -> Iterable[ManagerRole]:  # type: ignore[empty-body]
    """Offer manager roles: name, level, permissions.

    Called once at start. Returns ManagerRole values, with existing permissions. An exception stops the start.

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
    """Offer checks that tell operators what to fix (``identity check``, /readyz).

    Called once at start. ``settings`` are the core's; ``open_services`` opens services for reading while a check runs:
    ``with open_services() as services``. Returns SystemCheck objects; ``run()`` of each returns None, or a sentence
    that says what to do. An exception in ``run`` counts as a failure of that check.

    Example::

        @hookimpl
        def identity_system_checks(self, settings, open_services):
            return [SystemCheck("directory", self.directory_answers)]
    """


@hookspec
def identity_observers() -> Iterable[InstrumentationObserver]:  # type: ignore[empty-body]
    """Offer observers of durations (hashes, signatures, statements) and of sign-in outcomes.

    Called once at start, before anything is opened. Returns InstrumentationObserver objects. An exception stops the
    start.

    Example::

        @hookimpl
        def identity_observers(self):
            return [SlowStatements(self.settings.threshold)]
    """


@hookspec
def identity_deliveries(settings: Settings) -> Iterable[Delivery]:  # type: ignore[empty-body]
    """Offer deliveries, which send audit events to other systems.

    Called once at start. ``settings`` are the core's. Returns Delivery objects. The message about an event is stored in
    the outbox, in the transaction that writes the event, so it cannot be lost. It is sent after the commit, until the
    receiver accepts it. An exception stops the start.

    Example::

        @hookimpl
        def identity_deliveries(self, settings):
            return [SyslogDelivery(self.settings.host)]
    """


# --- contributions ----------------------------------------------------------------------------------------------------


@hookspec
def identity_discovery(document: Mapping[str, object]) -> Mapping[str, object]:  # type: ignore[empty-body]
    """Add members to the discovery document.

    Called once per process, when the document is first built. ``document`` is the document so far. Returns the members
    to add; existing members cannot be changed. An exception stops the start.

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

    Called for each such response. ``user`` is the person or service user, ``scopes`` are the granted scopes, ``lookup``
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

    Called for each token that is issued. ``authorization`` is the result of the grant, ``granted`` has the scopes and
    the audience, ``lookup`` reads more. Returns claims as ``identity_user_claims`` does, with the same limits. An
    exception fails the request, unless ``identity.hook_failure`` is ``ignore``.

    Example::

        @hookimpl
        def identity_token_claims(self, authorization, granted, lookup):
            return {"tenant": self.tenants[authorization.organization.id]}
    """


# --- decisions --------------------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def identity_check_password(user: User, password: str, lookup: Lookup) -> bool | None:
    """Decide whether this password belongs to this user.

    Called for each attempt that is not rate limited, before the stored hash is checked. ``user`` is the person,
    ``password`` the entered password, ``lookup`` reads more. Returns True or False to decide, or None to leave the
    decision to the next plugin or the stored hash. No other hook sees a password: do not store or log it. An exception
    refuses the attempt, and so does any other return value, even a true one.

    Example::

        @hookimpl
        def identity_check_password(self, user, password, lookup):
            return self.directory.bind(user.user_name, password) if user.id in self.directory else None
    """


@hookspec(firstresult=True)
def identity_deny(principal: Principal, permission: str, resource: Resource, lookup: Lookup) -> str | None:
    """Refuse an action that roles would allow; return the reason.

    Called for each action that roles allow, and for each organization, project, grant and audit event in a list, a
    choice or an exported document, but never for the operator on the machine. ``principal`` is the caller,
    ``permission`` the permission and ``resource`` its place; ``lookup`` reads more. Returns a sentence to refuse, which
    removes the row from a list, or None to abstain. A plugin cannot allow what roles do not, so the order of plugins
    does not matter. An exception refuses, and so does any other return value.

    Example::

        @hookimpl
        def identity_deny(self, principal, permission, resource, lookup):
            return "Changes are frozen." if self.frozen and not permission.endswith(".read") else None
    """


# --- notices ----------------------------------------------------------------------------------------------------------


@hookspec
def identity_audit_event_recorded(event: AuditEvent) -> None:
    """React to an audit event after its transaction has committed.

    Called once per event, in the process that wrote it; a refused attempt is an event too. ``event`` contains no
    secret. Nothing is returned; an exception is logged and does not affect other plugins. Do not block here: run slow
    work in a thread, and use ``identity_deliveries`` for messages that must not be lost.

    Example::

        @hookimpl
        def identity_audit_event_recorded(self, event):
            self.counter.labels(event.event).inc()
    """
