"""Applications and their client secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from identity.crypto.secrets import constant_time_equal, new_client_id, new_id, new_token, token_digest
from identity.domain.applications import (
    MAX_LIVE_SECRETS,
    Application,
    ApplicationClient,
    ApplicationType,
    ClientSecret,
    ConsentRule,
    redirect_uri_error,
)
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_RESOURCE
from identity.domain.projects import Project
from identity.services.access_control import AccessControl, Principal
from identity.services.base import TransactionState, translate_storage_errors
from identity.services.capabilities import IMPLICIT, Capabilities
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.crud import DeactivatableEntityService
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.projects import ProjectService

#: Compared when there is no such client, so that an unknown id costs what a wrong secret costs.
_NO_SECRET = token_digest("no secret has this digest")

#: What follows from the type where nothing is said of it.
_METHODS: Mapping[ApplicationType, str] = {
    ApplicationType.WEB: "client_secret_basic",
    ApplicationType.NATIVE: "none",
    ApplicationType.BROWSER: "none",
    ApplicationType.API: "client_secret_basic",
}

_ADDRESSES = ("redirect_uris", "post_logout_redirect_uris")

#: What it takes to decide for people whom an application does not belong to.
INSTANCE_WRITE = "instance.write"


class ApplicationService(DeactivatableEntityService[Application]):
    """OIDC clients of projects. One that is deactivated gets and introspects no tokens.

    Some of them are the instance's: those of its own project, whose secret opens the tokens with which the instance is
    managed, and those that may manage in their users' names. Whatever makes or changes one raises Denied unless ``by``
    holds instance.write, and so does ``consent=never``. What else the caller may is for addresses and documents to say.
    """

    kind = "application"
    store = "applications"

    def __init__(
        self,
        state: TransactionState,
        access: AccessControl,
        projects: ProjectService,
        choices: Capabilities,
        uses: LastUsedTracker,
    ) -> None:
        super().__init__(state)
        self._access, self._projects, self._choices, self._uses = access, projects, choices, uses

    def find_client(self, client_id: str) -> ApplicationClient | None:
        """The application with project and organization, active or not; nothing is proved by its id."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        # Nobody further on needs the digests, hooks least of all.
        return None if client is None else _without_secrets(client)

    def is_web_origin(self, origin: str) -> bool:
        """True if an active application has a redirect URI of this web origin."""
        with self._look() as storage:
            return storage.applications.is_registered_origin(origin)

    def can_change(self, owner: Project | Application, *, principal: Principal) -> bool:
        """True if whoever may change applications of a project may change those of this one, or this very one."""
        return not self._is_of_instance(owner) or self.can_set_privileged_fields(principal)

    def can_set_privileged_fields(self, principal: Principal) -> bool:
        """True if the caller may let applications manage, and leave people unasked."""
        return self._access.is_permitted(principal, INSTANCE_WRITE, INSTANCE_RESOURCE)

    def register_with_secret(
        self, project_id: str, command: RegisterApplication, *, principal: Principal
    ) -> tuple[Application, str | None]:
        """A new application and its client secret, shown this once; None for a public client.

        Raises NotFound, Denied; Invalid for what the service does not offer, and for settings that do not fit each
        other.
        """
        application = self.register(project_id, command, principal=principal)
        return application, None if application.is_public else self._new_secret(application)[1]

    def register(
        self,
        project_id: str,
        command: RegisterApplication,
        *,
        principal: Principal,
        id: str | None = None,  # noqa: A002
    ) -> Application:
        """The same without a secret, which it can get later; ``id`` is a client id that it had before.

        Raises NotFound, Denied, Invalid.
        """
        values = {**self.type_defaults(command.type), **self._given(command)}
        application = self._new_entity(Application, id=id or new_client_id(), project_id=project_id, **values)
        self._govern(application, principal)
        application = self._consistent(application, command)
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
        """The changed application. One that becomes public loses its secrets; one that was gets one on request.

        Raises NotFound, Denied, Conflict; Invalid for what the service does not offer, and for settings that do not fit
        each other.
        """
        before = self._get_authorized(application_id, principal)
        after = self._next_version(before, command, expected_version=expected_version, **self._given(command))
        if after.consent is not before.consent or after.may_manage:
            self._govern(after, principal)
        after = self._consistent(after, command)
        after = self._update("application.changed", before, after)
        if after.is_public:
            for secret in self._storage.applications.list_secrets(application_id):
                self.remove_secret(application_id, secret.id, principal=principal)
        return after

    def list_secrets(self, application_id: str) -> tuple[ClientSecret, ...]:
        """Its live secrets, oldest first. Raises NotFound."""
        return self._storage.applications.list_secrets(self.get(application_id).id)

    def add_secret(self, application_id: str, *, principal: Principal) -> tuple[ClientSecret, str]:
        """A second live secret and its text, shown this once, so that the first can be replaced without a gap.

        Raises NotFound, Denied; Conflict if two are live, and for a public client.
        """
        application = self._get_authorized(application_id, principal)
        if application.is_public:
            raise Conflict(
                gettext_lazy("The application is public and has no secret. Choose another authentication method first.")
            )
        if len(self._storage.applications.list_secrets(application_id, locked=True)) >= MAX_LIVE_SECRETS:
            raise Conflict(gettext_lazy("The application has two live secrets. Revoke the older one first."))
        return self._new_secret(application)

    def replace_oldest_secret(self, application_id: str, *, principal: Principal) -> str:
        """A new secret, shown this once; if two are live already, the older one ends. Raises NotFound, Denied."""
        secrets = self._storage.applications.list_secrets(application_id, locked=True)
        if len(secrets) >= MAX_LIVE_SECRETS:
            self.remove_secret(application_id, secrets[0].id, principal=principal)
        _, text = self.add_secret(application_id, principal=principal)
        return text

    def remove_secret(self, application_id: str, secret_id: str, *, principal: Principal) -> None:
        """End one secret, and the tokens that the application got for itself by it. Raises NotFound, Denied."""
        application = self._get_authorized(application_id, principal)
        with translate_storage_errors("client secret", secret_id):
            self._storage.applications.remove_secret(application_id, secret_id)
        self._record_secret("client_secret.removed", application, secret_id)

    def authenticate(self, client_id: str, secret: str) -> ApplicationClient | None:
        """The active client that this secret belongs to; None otherwise, with equal work."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        given = token_digest(secret)
        stored = client.secrets if client is not None else ()
        if not stored:
            constant_time_equal(_NO_SECRET, given)
        matching = [client_secret.id for client_secret in stored if constant_time_equal(client_secret.digest, given)]
        if client is None or not client.is_active or not matching:
            return None
        self._uses.record_client_secret(matching[0], self._now)
        return ApplicationClient(client.application, (), client.project, client.organization, matching[0])

    def type_defaults(self, type: ApplicationType) -> dict[str, Any]:  # noqa: A002
        """What follows from the type where a command says nothing, by its fields: people sign in with a code, if the
        service offers that, and nobody signs in to an API."""
        values: dict[str, Any] = {"authentication_method": _METHODS[type]}
        if type is not ApplicationType.API:
            responses = self._choices.responses_by_type.items()
            values["response_types"] = frozenset(
                name for name, response_type_capability in responses if response_type_capability.is_code_only
            )
            values["grant_types"] = self._choices.select_grant_types(
                lambda grant_type_capability: grant_type_capability.accepts_codes
            )
        return values

    def _authorize(self, thing: Application, principal: Principal) -> None:
        if self._is_of_instance(thing):
            self._govern(thing, principal)

    def _govern(self, application: Application, principal: Principal) -> None:
        """Raise Denied if only who manages the instance could make an application what this one is."""
        beyond = self._is_of_instance(application) or application.consent is ConsentRule.NEVER
        if beyond and not self.can_set_privileged_fields(principal):
            raise Denied(
                gettext_lazy(
                    "Only who manages the instance can change applications of its own project, let an application"
                    " manage, or leave people unasked."
                ),
                permission=INSTANCE_WRITE,
            )

    def _is_of_instance(self, of: Project | Application) -> bool:
        if isinstance(of, Project):
            return self._projects.is_own_project(of.id)
        return of.may_manage or self._projects.is_own_project(of.project_id)

    def _given(self, command: RegisterApplication | ChangeApplication) -> dict[str, Any]:
        """What the command says, known names alone and each once. Raises Invalid."""
        given = {name: value for name, value in dict(command).items() if value is not None}
        problems: dict[str, str] = {}
        if command.response_types is not None:
            offered = {
                frozenset(response_type.split()): response_type for response_type in self._choices.response_types
            }
            named = {
                response_type: offered.get(frozenset(response_type.split()), response_type)
                for response_type in command.response_types
            }
            given["response_types"] = frozenset(named.values())
        for field, known in self._choices.application_field_values.items():
            value = given.get(field, ())
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
            if field in given:
                given[field] = tuple(dict.fromkeys(given[field]))
        return given

    def _consistent(self, application: Application, command: RegisterApplication | ChangeApplication) -> Application:
        """The application with the grant type implicit exactly if it has a response type with tokens (RFC 7591 §2.1).

        Raises Invalid, for every field at once, unless the settings fit each other.
        """
        tokens = self._choices.uses_front_channel(application.response_types)
        problems = {**dict(_problems(application)), **dict(self._problems_of_grants(application))}
        if IMPLICIT in (command.grant_types or ()) and not tokens:
            problems.setdefault(
                "grant_types", gettext_lazy("Choose a response type with id_token too: implicit is one of those.")
            )
        if problems:
            raise Invalid(problems)
        others = application.grant_types - {IMPLICIT}
        return replace(application, grant_types=others | ({IMPLICIT} if tokens else set()))

    def _problems_of_grants(self, application: Application) -> Iterator[tuple[str, str]]:
        """What is wrong with its grant types, by what each says of itself."""
        chosen, choices = application.grant_types, self._choices
        confidential = sorted(
            chosen
            & choices.select_grant_types(
                lambda grant_type_capability: grant_type_capability.requires_confidential_client
            )
        )
        if application.is_public and confidential:
            yield (
                "grant_types",
                gettext_lazy(
                    "A public client has no credentials, so it cannot use {name}.", name=", ".join(confidential)
                ),
            )
        bringing = choices.select_grant_types(lambda grant_type_capability: grant_type_capability.issues_refresh_tokens)
        if (
            chosen
            & choices.select_grant_types(lambda grant_type_capability: grant_type_capability.accepts_refresh_tokens)
            and not chosen & bringing
        ):
            names = " / ".join(name for name in choices.grants_by_type if name in bringing)
            sentence = gettext_lazy("Choose {names} too: refresh tokens come with it alone.", names=names)
            yield "grant_types", sentence if names else gettext_lazy("No grant type here brings refresh tokens.")

    def _new_secret(self, application: Application) -> tuple[ClientSecret, str]:
        text = new_token()
        secret = ClientSecret(id=new_id(), digest=token_digest(text), created_at=self._now)
        with translate_storage_errors("application", application.id):
            self._storage.applications.add_secret(application.id, secret)
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

    def _organization_id(self, thing: Application) -> str | None:
        project = self._storage.projects.find(thing.project_id)
        return None if project is None else project.organization_id


def _without_secrets(client: ApplicationClient) -> ApplicationClient:
    return ApplicationClient(client.application, (), client.project, client.organization)


def _problems(application: Application) -> Iterator[tuple[str, str]]:
    if application.type is ApplicationType.API:
        if application.response_types:
            yield "response_types", gettext_lazy("Nobody signs in to an API, so it has no response types.")
        for field in _ADDRESSES:
            if getattr(application, field):
                yield field, gettext_lazy("Nobody signs in to an API, so it has no redirect URIs.")
        return
    if application.response_types and not application.redirect_uris:
        yield "redirect_uris", gettext_lazy("Enter the address to which people return after signing in.")
    for field in _ADDRESSES:
        for uri in getattr(application, field):
            problem = redirect_uri_error(uri, type=application.type, development=application.development)
            if problem is not None:
                yield field, problem
                break
