"""Applications and their client secrets."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from identity.crypto.certificates import is_certificate_name
from identity.crypto.secrets import find_matching_digest, new_client_id, new_id, new_token, token_digest
from identity.crypto.signature_keys import InvalidKey
from identity.domain.applications import (
    CERTIFICATE_NAME_FIELDS,
    CLIENT_SECRET_JWT,
    MAX_LIVE_SECRETS,
    RESPONSE_ALGORITHM_FIELDS,
    SELF_SIGNED_TLS_CLIENT_AUTH,
    TLS_CLIENT_AUTH,
    Application,
    ApplicationClient,
    ApplicationOrigin,
    ApplicationType,
    ClientSecret,
    ConsentRule,
    logout_uri_error,
    redirect_uri_error,
)
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.projects import URL_CLIENTS_PROJECT_ID, ClientRegistration, Project
from identity.domain.records import CORE_NAMESPACE
from identity.domain.security_profiles import find_profile_conflicts
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.key_sets import parse_stored_key_set
from identity.services.access_control import AccessControl, Principal
from identity.services.audit import dump_fields
from identity.services.base import translate_storage_errors
from identity.services.capabilities import IMPLICIT, Capabilities
from identity.services.client_metadata import ClientMetadataClient, ClientMetadataUnavailable, metadata_error
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.consents import CONSENT_KIND
from identity.services.crud import DeactivatableEntityService
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.legal_holds import LegalHoldService
from identity.services.projects import ProjectService
from identity.services.records import RecordService
from identity.services.signing_keys import SigningKeyService
from identity.services.subject_identifiers import SubjectIdentifierService
from identity.storage.errors import DuplicateValue
from identity.storage.paging import iterate_rows

#: The default authentication method of each application type.
_METHODS: Mapping[ApplicationType, str] = {
    ApplicationType.WEB: "client_secret_basic",
    ApplicationType.NATIVE: "none",
    ApplicationType.BROWSER: "none",
    ApplicationType.API: "client_secret_basic",
}

#: The kind of record with the text of a secret, sealed, by its id.
_SECRET_TEXT = "client_secret"  # noqa: S105 - a name
_ADDRESSES = ("redirect_uris", "post_logout_redirect_uris")
_LOGOUT_ADDRESSES = ("backchannel_logout_uri", "frontchannel_logout_uri")


@dataclass(eq=False, repr=False)
class ApplicationService(DeactivatableEntityService[Application]):
    """OIDC clients of projects. A deactivated one neither gets nor introspects tokens.

    Some belong to the instance: those of its own project, whose secrets introspect the tokens that manage the
    instance, and those that may manage on behalf of their users. Creating or changing one raises Denied unless
    ``principal`` has instance.write, and so does ``consent=never``. Callers check all other permissions."""

    kind = "application"
    store = "applications"

    _access: AccessControl
    _projects: ProjectService
    _choices: Capabilities
    _uses: LastUsedTracker
    _client_metadata: ClientMetadataClient | None
    _signing_keys: Callable[[], SigningKeyService]
    _release_connection: Callable[[], None]
    _count_request: Callable[[], object]
    _records: Callable[[], RecordService]
    _subject_identifiers: Callable[[], SubjectIdentifierService]
    _read_document: Callable[[str, str], bytes | None]
    _legal_holds: Callable[[], LegalHoldService]

    def find_requesting_client(self, client_id: str) -> ApplicationClient | None:
        """The client of an authorization request: an application, or a client known by its URL as its metadata
        describes it now. Such a client is stored with the first consent, and all requests but this one know it as it
        was at the last consent. Raises ClientMetadataUnavailable."""
        metadata = self._client_metadata
        if metadata is None or not self._accepts_metadata(client_id):
            return self.find_client(client_id)
        stored = self.find_client(client_id)
        if stored is not None and (not stored.is_active or stored.project.id != URL_CLIENTS_PROJECT_ID):
            return None
        instance = self._instance()
        command = metadata.find(client_id)
        if command is None:
            # Nothing is held while the metadata is fetched.
            self._release_connection()
            command = metadata.fetch(client_id)
        with self._look() as storage:
            organization = None if instance is None else storage.organizations.find(instance.organization_id)
        if organization is None:
            return None
        project = self._url_clients_project(organization.id) if stored is None else stored.project
        try:
            application = self._described_application(client_id, command, stored)
        except Invalid as refusal:
            raise ClientMetadataUnavailable(metadata_error(refusal)) from None
        return ApplicationClient(application, (), project, organization)

    def store_url_client(self, client: ApplicationClient) -> None:
        """Store a client known by its URL as a person has just agreed to it. If several people agree at once, one of
        them stores it: those who saw another document are asked again. New clients are limited per network address,
        since anyone can publish any number. Raises TooManyAttempts."""
        application = client.application
        before = self._storage.applications.find(client.id)
        if before is None:
            self._count_request()
            if self._storage.projects.find(client.project.id) is None:
                with suppress(DuplicateValue):
                    self._storage.projects.add(client.project)
            with suppress(DuplicateValue):
                self._storage.applications.add(application)
                self._record_event("application.created", application, client.organization.id, dump_fields(application))
            return
        with suppress(Conflict):
            self._update("application.changed", before, replace(application, changed_at=self._now))

    def find_client(self, client_id: str) -> ApplicationClient | None:
        """The application with its project and organization, active or not. This does not authenticate the client. One
        known by a URL that is not accepted any more is not active."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        if client is not None and client.application.is_known_by_url and not self._accepts_metadata(client_id):
            client = replace(client, application=replace(client.application, active=False))
        # Callers do not need the digests, and hooks must not see them.
        return None if client is None else _without_secrets(client)

    def list_unused_clients(self) -> Iterator[str]:
        """The ids of dynamic clients that nobody uses, after the days that their project gives them. Those that
        registered themselves stay while registration is off."""
        live_at = self._tokens_live_at()
        for organization in iterate_rows(self._storage.organizations.page):
            for project in iterate_rows(partial(self._storage.projects.page, organization.id)):
                if project.client_registration is ClientRegistration.OFF and project.id != URL_CLIENTS_PROJECT_ID:
                    continue
                for application in iterate_rows(partial(self._storage.applications.page, project.id)):
                    if self._is_unused(application, project, live_at):
                        yield application.id

    def remove_unused_client(self, application_id: str) -> bool:
        """Delete the client unless it is used again. Raises NotFound."""
        application = self.get(application_id)
        if not self._is_unused(application, self._projects.get(application.project_id), self._tokens_live_at()):
            return False
        self._remove(application)
        return True

    def _tokens_live_at(self) -> datetime | None:
        """When tokens have to be live to keep their client, which is deleted with its tokens. None under a legal hold,
        which keeps tokens that have ended, too."""
        return None if self._legal_holds().list_holds() else self._now

    def _is_unused(self, application: Application, project: Project, live_at: datetime | None) -> bool:
        """True for an old dynamic client without a consent, and without tokens that keep it. One that is known by its
        URL and deactivated stays: it would be active again after the next consent."""
        is_blocked = application.is_known_by_url and not application.active
        if not application.is_dynamic or is_blocked:
            return False
        if self._now < application.created_at + timedelta(days=project.registration_unused_days):
            return False
        if self._storage.tokens.has_family(application.id, live_at=live_at):
            return False
        records = self._storage.records
        return not records.list_for_owner(CORE_NAMESPACE, CONSENT_KIND, application_id=application.id)

    def is_web_origin(self, origin: str) -> bool:
        """True if an active application has a redirect URI of this web origin."""
        with self._look() as storage:
            return storage.applications.is_registered_origin(origin)

    def can_change(self, owner: Project | Application, *, principal: Principal) -> bool:
        """True if the caller, who may change applications in general, may change the project's, or this one."""
        return not self.is_instance_managed(owner) or self.can_set_privileged_fields(principal)

    def can_set_privileged_fields(self, principal: Principal) -> bool:
        """True if the caller may let applications manage on behalf of users, and skip consent."""
        return self._access.is_permitted(principal, INSTANCE_WRITE, Resource.INSTANCE)

    def register_with_secret(
        self,
        project_id: str,
        command: RegisterApplication,
        *,
        principal: Principal,
        origin: ApplicationOrigin = ApplicationOrigin.MANAGER,
    ) -> tuple[Application, str | None]:
        """Register an application; returns it and its client secret, shown only once, or None for a client without one.
        Raises NotFound, Denied; Invalid for values that the service does not offer and for settings that contradict
        each other."""
        application = self.register(project_id, command, principal=principal, origin=origin)
        return application, self._new_secret(application)[1] if application.uses_client_secret else None

    def register(
        self,
        project_id: str,
        command: RegisterApplication,
        *,
        principal: Principal,
        id: str | None = None,
        origin: ApplicationOrigin = ApplicationOrigin.MANAGER,
    ) -> Application:
        """The same without a secret, which can be added later; ``id`` is the former client id. With another ``origin``
        the application is a dynamic client, which the instance's own project cannot have. Raises NotFound, Denied,
        Invalid."""
        values = {**self.type_defaults(command.type), **self._decoded_values(command), "origin": origin}
        if origin is not ApplicationOrigin.MANAGER:
            values["consent"] = ConsentRule.ALWAYS
        application = self._new_entity(Application, id=id or new_client_id(), project_id=project_id, **values)
        if application.is_dynamic and self._projects.is_own_project(project_id):
            raise Conflict(gettext_lazy("The instance's own project has only applications that managers create."))
        self._require_instance_permission(application, principal)
        application = self._check_consistency(application, command)
        self._signing_keys().require_active(None, application, RESPONSE_ALGORITHM_FIELDS)
        self._check_sector(None, application)
        self._add(
            "application.created", application, self._organization_id(application), parent=("project", project_id)
        )
        return application

    def change(
        self,
        application_id: str,
        command: ChangeApplication,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> Application:
        """Change the application. One that no longer uses a secret loses its secrets; one that begins to has none
        yet. Secrets from before cannot sign for client_secret_jwt, and their texts are forgotten after it. Raises
        NotFound, Denied, Conflict; Invalid for values that the service does not offer and for settings that contradict
        each other."""
        before = self._get_authorized(application_id, principal)
        after = self._next_version(before, command, expected_version=expected_version, **self._decoded_values(command))
        if after.consent is not before.consent or after.may_manage:
            self._require_instance_permission(after, principal)
        after = self._check_consistency(after, command)
        self._signing_keys().require_active(before, after, RESPONSE_ALGORITHM_FIELDS)
        self._check_sector(before, after)
        after = self._update("application.changed", before, after)
        if CLIENT_SECRET_JWT == before.authentication_method != after.authentication_method:
            self._records().delete_by_owner(_SECRET_TEXT, application_id=application_id)
        if not after.uses_client_secret:
            for secret in self._storage.applications.list_secrets(application_id):
                self.remove_secret(application_id, secret.id, principal=principal)
        return after

    def list_secrets(self, application_id: str) -> tuple[ClientSecret, ...]:
        """Its live secrets, oldest first. Raises NotFound."""
        return self._storage.applications.list_secrets(self.get(application_id).id)

    def add_secret(self, application_id: str, *, principal: Principal) -> tuple[ClientSecret, str]:
        """Add a second live secret, so that the first can be replaced without a gap. Its text is shown only once.
        Raises NotFound, Denied; Conflict if two are live, and for a client without secrets."""
        application = self._get_authorized(application_id, principal)
        if application.is_public:
            raise Conflict(
                gettext_lazy("The application is public and has no secret. Choose another authentication method first.")
            )
        if not application.uses_client_secret:
            raise Conflict(gettext_lazy("The application authenticates without a secret. Choose another method first."))
        if len(self._storage.applications.list_secrets(application_id, locked=True)) >= MAX_LIVE_SECRETS:
            raise Conflict(gettext_lazy("The application has two live secrets. Revoke the older one first."))
        return self._new_secret(application)

    def replace_oldest_secret(self, application_id: str, *, principal: Principal) -> str:
        """A new secret, shown only once. If two are live already, the older one is revoked. Raises NotFound, Denied."""
        secrets = self._storage.applications.list_secrets(application_id, locked=True)
        if len(secrets) >= MAX_LIVE_SECRETS:
            self.remove_secret(application_id, secrets[0].id, principal=principal)
        _, text = self.add_secret(application_id, principal=principal)
        return text

    def remove_secret(self, application_id: str, secret_id: str, *, principal: Principal) -> None:
        """Revoke a secret and the tokens that the application got for itself with it. Raises NotFound, Denied."""
        application = self._get_authorized(application_id, principal)
        with translate_storage_errors("client secret", secret_id):
            self._storage.applications.remove_secret(application_id, secret_id)
        if application.authentication_method == CLIENT_SECRET_JWT:
            self._records().delete(_SECRET_TEXT, secret_id)
        self._record_secret("client_secret.removed", application, secret_id)

    def authenticate(self, client_id: str, secret: str) -> ApplicationClient | None:
        """The active client with this secret, or None. Both take equal work."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        stored = {item.id: item.digest for item in client.secrets} if client is not None else {}
        matching = find_matching_digest(stored, secret)
        if client is None or matching is None or not client.is_active:
            return None
        self._uses.record_client_secret(matching, self._now)
        return ApplicationClient(client.application, (), client.project, client.organization, matching)

    def has_unusable_secrets(self, application: Application) -> bool:
        """True if it has secrets that cannot sign, although it uses client_secret_jwt."""
        if application.authentication_method != CLIENT_SECRET_JWT:
            return False
        ids = [secret.id for secret in self.list_secrets(application.id)]
        return len(self._records().find_many(_SECRET_TEXT, ids)) < len(ids)

    def list_signing_secrets(self, client: ApplicationClient) -> tuple[tuple[ApplicationClient, str], ...]:
        """The live secrets with which it can sign assertions, each with the client that it authenticates: those that
        were created while it used client_secret_jwt. The service keeps no others."""
        with self._look() as storage:
            ids = [secret.id for secret in storage.applications.list_secrets(client.id)]
        texts = self._records().find_many(_SECRET_TEXT, ids)
        return tuple((replace(client, secret_id=id), texts[id].value["text"]) for id in ids if id in texts)

    def record_secret_use(self, secret_id: str) -> None:
        """Record that the secret was used just now."""
        self._uses.record_client_secret(secret_id, self._now)

    def type_defaults(self, type: ApplicationType) -> dict[str, Any]:
        """Defaults for fields that a command leaves out: the authorization code flow if the service offers it, and no
        sign-in for an API."""
        values: dict[str, Any] = {"authentication_method": _METHODS[type]}
        if type is not ApplicationType.API:
            responses = self._choices.responses_by_type.items()
            values["response_types"] = frozenset(name for name, capability in responses if capability.is_code_only)
            values["grant_types"] = self._choices.select_grant_types(lambda grant: grant.accepts_codes)
        return values

    def _accepts_metadata(self, client_id: str) -> bool:
        return self._client_metadata is not None and self._client_metadata.accepts(client_id)

    def _url_clients_project(self, organization_id: str) -> Project:
        return Project(
            id=URL_CLIENTS_PROJECT_ID,
            organization_id=organization_id,
            name="Clients known by their URL",
            created_at=self._now,
            changed_at=self._now,
        )

    def _described_application(
        self, client_id: str, command: RegisterApplication, stored: ApplicationClient | None
    ) -> Application:
        """The application that the metadata describes, judged by the rules for all applications. What metadata cannot
        say, managers may have set for a stored one. Raises Invalid."""
        values = {**self.type_defaults(command.type), **self._decoded_values(command)}
        # Whatever the metadata says: people always agree first, and there are no tokens without them.
        values |= {"consent": ConsentRule.ALWAYS, "may_manage": False, "development": False}
        values["origin"] = ApplicationOrigin.METADATA_DOCUMENT
        values["grant_types"] &= self._choices.select_grant_types(
            lambda grant: grant.accepts_codes or grant.accepts_refresh_tokens
        )
        if stored is None:
            application = self._new_entity(Application, id=client_id, project_id=URL_CLIENTS_PROJECT_ID, **values)
            return self._check_consistency(application, command)
        before = stored.application
        application = self._check_consistency(replace(before, **values), command)
        return application if application == before else replace(application, version=before.version + 1)

    def _authorize(self, application: Application, principal: Principal) -> None:
        if self.is_instance_managed(application):
            self._require_instance_permission(application, principal)

    def _require_instance_permission(self, application: Application, principal: Principal) -> None:
        """Raise Denied if the application needs instance.write and the caller lacks it."""
        beyond = self.is_instance_managed(application) or application.consent is ConsentRule.NEVER
        if beyond and not self.can_set_privileged_fields(principal):
            raise Denied(
                gettext_lazy(
                    "Only instance managers can change applications of the instance's own project, give "
                    "an application management access, or waive consent."
                ),
                permission=INSTANCE_WRITE,
            )

    def is_instance_managed(self, owner: Project | Application) -> bool:
        """True for the instance's own project, its applications, those known by their URL, and those that may manage on
        behalf of users."""
        project_id = owner.id if isinstance(owner, Project) else owner.project_id
        manages = isinstance(owner, Application) and owner.may_manage
        return manages or project_id == URL_CLIENTS_PROJECT_ID or self._projects.is_own_project(project_id)

    def _decoded_values(self, command: RegisterApplication | ChangeApplication) -> dict[str, Any]:
        """The command's values, checked against what is offered, without duplicates. Raises Invalid."""
        values = {name: value for name, value in dict(command).items() if value is not None}
        problems: dict[str, str] = {}
        if command.response_types is not None:
            # The order of the values of a response type has no meaning.
            offered = {frozenset(name.split()): name for name in self._choices.response_types}
            values["response_types"] = frozenset(
                offered.get(frozenset(name.split()), name) for name in command.response_types
            )
        for field, known in self._choices.application_field_values.items():
            value = values.get(field, ())
            unknown = ({value} if isinstance(value, str) else {*value}) - {*known}
            if unknown:
                problems[field] = gettext_lazy(
                    "{name} is not offered here. Choose from {names}.",
                    name=", ".join(sorted(unknown)),
                    names=", ".join(known),
                )
        if problems:
            raise Invalid(problems)
        for field in _ADDRESSES:
            if field in values:
                values[field] = tuple(dict.fromkeys(values[field]))
        return values

    def _check_consistency(
        self, application: Application, command: RegisterApplication | ChangeApplication
    ) -> Application:
        """The application, with grant type implicit exactly if it has a response type with tokens (RFC 7591 §2.1).
        Raises Invalid, with all fields at once, if the settings contradict each other."""
        tokens = self._choices.uses_front_channel(application.response_types)
        problems = {**dict(_problems(application)), **dict(self._problems_of_grants(application))}
        if application.security_profile is not None:
            problems |= dict(self._find_profile_conflicts(application))
        if IMPLICIT in (command.grant_types or ()) and not tokens:
            problems.setdefault(
                "grant_types", gettext_lazy("Choose a response type with id_token too: implicit is one of those.")
            )
        if problems:
            raise Invalid(problems)
        explicit_grant_types = application.grant_types - {IMPLICIT}
        return replace(application, grant_types=explicit_grant_types | ({IMPLICIT} if tokens else set()))

    def _problems_of_grants(self, application: Application) -> Iterator[tuple[str, str]]:
        """What the grant types' own rules find wrong with the application."""
        chosen, choices = application.grant_types, self._choices
        confidential = sorted(chosen & choices.select_grant_types(lambda grant: grant.requires_confidential_client))
        if application.is_public and confidential:
            yield (
                "grant_types",
                gettext_lazy(
                    "A public client has no credentials, so it cannot use {name}.", name=", ".join(confidential)
                ),
            )
        bringing = choices.select_grant_types(lambda grant: grant.issues_refresh_tokens)
        refreshing = choices.select_grant_types(lambda grant: grant.accepts_refresh_tokens)
        if chosen & refreshing and not chosen & bringing:
            names = " / ".join(name for name in choices.grants_by_type if name in bringing)
            sentence = gettext_lazy("Choose {names} too: refresh tokens come with it alone.", names=names)
            yield "grant_types", sentence if names else gettext_lazy("None of these grant types issues refresh tokens.")

    def _check_sector(self, before: Application | None, after: Application) -> None:
        """Raise Invalid unless the document at ``sector_identifier_uri`` lists all redirect URIs (OpenID Connect Core
        §8.1); it is read when one of them changes. Create the salt for the first pairwise application."""
        uri, listed = after.sector_identifier_uri, (after.sector_identifier_uri, after.redirect_uris)
        if uri and (before is None or listed != (before.sector_identifier_uri, before.redirect_uris)):
            # What clients that registered themselves name is fetched in a share of their own.
            organization_id = None if after.is_dynamic else self._organization_id(after)
            document = self._read_document(uri, organization_id or "")
            missing = set(after.redirect_uris) - _read_uris(document)
            if missing:
                sentence = gettext_lazy("The document does not list {uri}.", uri=min(missing))
                raise Invalid({"sector_identifier_uri": sentence})
        if after.has_pairwise_subjects and (before is None or not before.has_pairwise_subjects):
            self._subject_identifiers().ensure_salt()

    def _find_profile_conflicts(self, application: Application) -> Iterator[tuple[str, str]]:
        yield from find_profile_conflicts(application, self._choices.authentication_methods)
        # People sign in through the authorization endpoint alone.
        sign_in_grants = application.grant_types & self._choices.select_grant_types(
            lambda grant: grant.issues_refresh_tokens and not grant.accepts_codes
        )
        if sign_in_grants:
            yield (
                "grant_types",
                gettext_lazy(
                    "The profile {profile} does not allow {names}.",
                    profile=application.security_profile,
                    names=", ".join(sorted(sign_in_grants)),
                ),
            )

    def _new_secret(self, application: Application) -> tuple[ClientSecret, str]:
        text = new_token()
        secret = ClientSecret(id=new_id(), digest=token_digest(text), created_at=self._now)
        with translate_storage_errors("application", application.id):
            self._storage.applications.add_secret(application.id, secret)
        if application.authentication_method == CLIENT_SECRET_JWT:
            self._records().add(_SECRET_TEXT, secret.id, {"text": text}, application_id=application.id, seal=True)
        self._record_secret("client_secret.added", application, secret.id)
        return secret, text

    def _record_secret(self, event: str, application: Application, secret_id: str) -> None:
        self._audit.record(
            event,
            kind="application",
            id=application.id,
            organization_id=self._organization_id(application),
            detail={"secret_id": secret_id},
        )

    def _organization_id(self, application: Application) -> str | None:
        project = self._storage.projects.find(application.project_id)
        return None if project is None else project.organization_id


def _without_secrets(client: ApplicationClient) -> ApplicationClient:
    return ApplicationClient(client.application, (), client.project, client.organization)


def _key_problems(application: Application) -> Iterator[tuple[str, str]]:
    if application.jwks and application.jwks_uri:
        yield "jwks_uri", gettext_lazy("Enter the keys or their address, not both.")
    elif application.authentication_method == SELF_SIGNED_TLS_CLIENT_AUTH and not (
        application.jwks or application.jwks_uri
    ):
        yield "jwks_uri", gettext_lazy("Enter the address of the application's public keys, or the keys.")
    if application.jwks and not _has_assertion_key(application):
        yield "jwks", gettext_lazy("None of these keys can be used here. RSA keys need at least 2048 bits.")


def _dynamic_client_problems(application: Application) -> Iterator[tuple[str, str]]:
    if not application.is_dynamic:
        return
    if application.consent is not ConsentRule.ALWAYS:
        yield "consent", gettext_lazy("No manager created this application, so everyone is asked for consent.")
    if application.may_manage:
        yield "may_manage", gettext_lazy("No manager created this application, so it cannot manage.")


def _certificate_problems(application: Application) -> Iterator[tuple[str, str]]:
    """RFC 8705 §2.1.2."""
    names = application.certificate_names
    if len(names) > 1 or (application.authentication_method == TLS_CLIENT_AUTH and not names):
        field = next(iter(names), CERTIFICATE_NAME_FIELDS[0])
        yield field, gettext_lazy("Enter the subject of the certificate or one of its alternative names, and only one.")
    for field, name in names.items():
        if not is_certificate_name(field, name):
            yield (
                field,
                gettext_lazy("Write it as in {example}, without spaces after the commas.", example=_SUBJECT_EXAMPLE)
                if field == CERTIFICATE_NAME_FIELDS[0]
                else gettext_lazy("{name} cannot be in a certificate here.", name=name),
            )


_SUBJECT_EXAMPLE = "CN=app,O=Example,C=CH"
_NO_DOCUMENT = gettext_lazy("At this address there is no JSON list of addresses.")


def _read_uris(body: bytes | None) -> set[str]:
    try:
        document = None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, list) or not all(isinstance(item, str) for item in document):
        raise Invalid({"sector_identifier_uri": _NO_DOCUMENT})
    return set(document)


def _subject_problems(application: Application) -> Iterator[tuple[str, str]]:
    if not application.has_pairwise_subjects:
        return
    if not application.sector:
        yield (
            "sector_identifier_uri",
            gettext_lazy("Enter the address of a list of all redirect URIs: they have several hosts, or none."),
        )
    if application.may_manage:
        # The management API knows users by their ids.
        yield "subject_type", gettext_lazy("An application that manages knows people by their public identifier.")


def _has_assertion_key(application: Application) -> bool:
    algorithms = {application.token_endpoint_auth_signing_alg or name for name in SignatureAlgorithm.names()}
    try:
        return any(key.algorithms & algorithms for key in parse_stored_key_set(application.jwks))
    except InvalidKey:
        return False


def _problems(application: Application) -> Iterator[tuple[str, str]]:
    yield from _key_problems(application)
    yield from _dynamic_client_problems(application)
    yield from _certificate_problems(application)
    if application.type is ApplicationType.API:
        if application.response_types:
            yield "response_types", gettext_lazy("An API has no sign-in, so it has no response types.")
        for field in _ADDRESSES:
            if getattr(application, field):
                yield field, gettext_lazy("An API has no sign-in, so it has no redirect URIs.")
        return
    yield from _subject_problems(application)
    for field in _LOGOUT_ADDRESSES:
        uri = getattr(application, field)
        problem = logout_uri_error(uri, development=application.development) if uri else None
        if problem is not None:
            yield field, problem
    if application.response_types and not application.redirect_uris:
        yield "redirect_uris", gettext_lazy("Enter the address that people return to after signing in.")
    for field in _ADDRESSES:
        for uri in getattr(application, field):
            problem = redirect_uri_error(uri, type=application.type, development=application.development)
            if problem is not None:
                yield field, problem
                break
