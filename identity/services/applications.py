"""Applications and their client secrets."""

from dataclasses import replace
from datetime import datetime

from identity.crypto.secrets import digest, new_client_id, new_id, new_token, same
from identity.domain.applications import MAX_LIVE_SECRETS, Application, Client, ClientSecret
from identity.domain.errors import Conflict
from identity.services.audit import Recorder
from identity.services.changes import Look, UseCases, told
from identity.services.commands.applications import RegisterApplication
from identity.storage.backend import Storage

#: Compared when there is no such client, so that an unknown id costs what a wrong secret costs.
_NO_SECRET = digest("no secret has this digest")


class Applications(UseCases):
    """OIDC clients of projects."""

    def __init__(self, storage: Storage, audit: Recorder, now: datetime, *, look: Look) -> None:
        super().__init__(storage, audit, now)
        self._look = look

    def find_client(self, client_id: str) -> Client | None:
        """The application with project and organization, active or not; nothing is proved by its id."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        # Nobody further on needs the digests, hooks least of all.
        return None if client is None else replace(client, secrets=())

    def get(self, application_id: str) -> Application:
        """The application. Raises NotFound."""
        return self._found(self._storage.applications.find(application_id), "application", application_id)

    def is_origin(self, origin: str) -> bool:
        """True if an active application has a redirect URI of this web origin."""
        with self._look() as storage:
            return storage.applications.is_origin(origin)

    def register(self, project_id: str, command: RegisterApplication) -> tuple[Application, str | None]:
        """A new application and its client secret, shown this once; None for a public client. Raises NotFound."""
        application = Application(
            id=new_client_id(), project_id=project_id, created_at=self._now, changed_at=self._now, **dict(command)
        )
        with told("project", project_id):
            self._storage.applications.add(application)
        self._record_created("application.created", "application", application, self._organization(application))
        secret = None if application.public else self._new_secret(application)
        return application, secret

    def add_secret(self, application_id: str) -> str:
        """A second live secret, shown this once, so that the first can be replaced without a gap.

        Raises NotFound; Conflict if two are live.
        """
        application = self.get(application_id)
        if len(self._storage.applications.secrets(application_id)) >= MAX_LIVE_SECRETS:
            raise Conflict("The application has two live secrets. End the older one first.")
        return self._new_secret(application)

    def replace_oldest_secret(self, application_id: str) -> str:
        """A new secret, shown this once; if two are live already, the older one ends. Raises NotFound."""
        secrets = self._storage.applications.secrets(application_id)
        if len(secrets) >= MAX_LIVE_SECRETS:
            self.remove_secret(application_id, secrets[0].id)
        return self.add_secret(application_id)

    def remove_secret(self, application_id: str, secret_id: str) -> None:
        """End one secret at once. Raises NotFound."""
        application = self.get(application_id)
        with told("client secret", secret_id):
            self._storage.applications.remove_secret(application_id, secret_id)
        self._record_secret("client_secret.removed", application, secret_id)

    def deactivate(self, application_id: str) -> Application:
        """It gets and introspects no tokens until it is reactivated. Raises NotFound."""
        before = self.get(application_id)
        return self._store("application.deactivated", before, self._next(before, "application", None, active=False))

    def reactivate(self, application_id: str) -> Application:
        """Undo deactivate. Raises NotFound."""
        before = self.get(application_id)
        return self._store("application.reactivated", before, self._next(before, "application", None, active=True))

    def remove(self, application_id: str) -> None:
        """Delete it with its secrets and tokens. Raises NotFound."""
        application = self.get(application_id)
        organization_id = self._organization(application)
        with told("application", application_id):
            self._storage.applications.remove(application_id)
        self._record_removed("application.removed", "application", application, organization_id)

    def authenticate(self, client_id: str, secret: str) -> Client | None:
        """The active client that this secret belongs to; None otherwise, with equal work."""
        with self._look() as storage:
            client = storage.applications.find_client(client_id)
        given = digest(secret)
        stored = [one.digest for one in client.secrets] if client is not None else []
        matches = [same(one, given) for one in (stored or [_NO_SECRET])]
        if client is None or not client.active or not stored or not any(matches):
            return None
        return replace(client, secrets=())

    def _new_secret(self, application: Application) -> str:
        text = new_token()
        secret = ClientSecret(id=new_id(), digest=digest(text), created_at=self._now)
        with told("application", application.id):
            self._storage.applications.add_secret(application.id, secret)
        self._record_secret("client_secret.added", application, secret.id)
        return text

    def _record_secret(self, event: str, application: Application, secret_id: str) -> None:
        self._audit.record(
            event,
            kind="application",
            id=application.id,
            organization_id=self._organization(application),
            detail={"secret_id": secret_id},
        )

    def _store(self, event: str, before: Application, after: Application) -> Application:
        with told("application", before.id):
            self._storage.applications.update(after)
        self._record_changed(event, "application", before, after, self._organization(before))
        return after

    def _organization(self, application: Application) -> str | None:
        project = self._storage.projects.find(application.project_id)
        return None if project is None else project.organization_id
