"""Federated credentials of service users and applications."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from identity.crypto.secrets import is_id, new_id
from identity.domain.applications import Application
from identity.domain.errors import Conflict, Invalid
from identity.domain.federated_credentials import (
    MAX_FEDERATED_CREDENTIALS,
    FederatedCredential,
    IssuerKind,
    conditions_error,
)
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.users import ServiceUser, Subject
from identity.services.access_control import AccessControl, Principal
from identity.services.applications import ApplicationService
from identity.services.base import Service, translate_storage_errors
from identity.services.commands.service_users import AddFederatedCredential
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.service_users import ServiceUserService
from identity.storage.paging import FIRST_PAGE, PageRequest, ResultPage

_KIND, _LABEL = "federated_credential", "federated credential"


@dataclass(eq=False, repr=False)
class FederatedCredentialService(Service):
    """Federated credentials let tokens of outside issuers stand for a service user or authenticate an application,
    which ``owner_id`` names: ids of service users and applications have different forms. Those of an application count
    while its authentication method is private_key_jwt.

    Adding one is like adding a key or a secret that belongs to everything that meets the conditions, so the same rules
    hold: Denied for service users with manager roles beyond the principal's, and for applications of the instance
    without instance.write. Agents have none. Marking one as ``instance_managed``, and removing a marked one, takes
    instance.write."""

    _access: AccessControl
    _service_users: ServiceUserService
    _applications: ApplicationService
    _uses: LastUsedTracker

    def page(self, owner_id: str, request: PageRequest = FIRST_PAGE) -> ResultPage[FederatedCredential]:
        """Newest first. Raises NotFound."""
        return self._storage.credentials.page(FederatedCredential, self._owner(owner_id).id, request)

    def get(self, owner_id: str, credential_id: str) -> FederatedCredential:
        """Raises NotFound."""
        found = self._storage.credentials.find(FederatedCredential, credential_id, self._owner(owner_id).id)
        return self._require_found(found, _LABEL, credential_id)

    def add(
        self, owner_id: str, command: AddFederatedCredential, *, principal: Principal, id: str | None = None
    ) -> FederatedCredential:
        """Add one; ``id`` restores a former id. Raises NotFound, Denied; Conflict if there are too many; Invalid for
        settings that contradict each other, conditions that identify no workload, and an issuer in the service's own
        name space."""
        owner = self._owner(owner_id, principal)
        if isinstance(owner, ServiceUser):
            self._service_users.get_for_credential(owner_id, principal)
        if command.instance_managed:
            self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        is_service_user = isinstance(owner, ServiceUser)
        credential = FederatedCredential(
            id=id or new_id(),
            user_id=owner_id if is_service_user else None,
            application_id=None if is_service_user else owner_id,
            created_at=self._now,
            **dict(command),
        )
        problems = dict(self._problems(credential))
        if problems:
            raise Invalid(problems)
        present = self._storage.credentials.list_federated_credentials(owner_id, locked=True)
        if len(present) >= MAX_FEDERATED_CREDENTIALS:
            raise Conflict(
                gettext_lazy(
                    "There are at most {n} federated credentials. Remove one first.", n=MAX_FEDERATED_CREDENTIALS
                )
            )
        with translate_storage_errors("service user" if is_service_user else "application", owner_id):
            self._storage.credentials.add(credential)
        self._record_snapshot(f"{_KIND}.added", _KIND, credential, self._organization_id(owner))
        return credential

    def remove(self, owner_id: str, credential_id: str, *, principal: Principal) -> None:
        """Delete it; the tokens obtained with it stop working, except those of people. Raises NotFound, Denied."""
        owner = self._owner(owner_id, principal)
        credential = self.get(owner_id, credential_id)
        if credential.instance_managed:
            self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        with translate_storage_errors(_LABEL, credential_id):
            self._storage.credentials.delete(FederatedCredential, owner_id, credential_id)
        self._record_snapshot(f"{_KIND}.removed", _KIND, credential, self._organization_id(owner))

    def find_with_service_user(self, user_id: str) -> tuple[Subject, tuple[FederatedCredential, ...]] | None:
        """The active service user with its federated credentials; None if there is none with any."""
        if not is_id(user_id):
            return None
        with self._look() as storage:
            found = storage.credentials.find_subject_with_federated_credentials(user_id)
        return found if found is not None and found[0].is_active else None

    def list_for_application(self, application_id: str) -> tuple[FederatedCredential, ...]:
        """Those of the application, whether or not it is active."""
        with self._look() as storage:
            return storage.credentials.list_federated_credentials(application_id)

    def record_use(self, credential: FederatedCredential) -> None:
        """Record when it was last used, without a write of this transaction."""
        self._uses.record_federated_credential(credential.id, self._now)

    def is_own_issuer(self, issuer: str) -> bool:
        """True if the issuer lies in the service's own name space: at one of its hosts."""
        try:
            host = urlsplit(issuer).hostname
        except ValueError:
            return False
        urls = (self._settings.issuer_url, self._settings.base_url, self._settings.login_url)
        return host in {urlsplit(url).hostname for url in urls}

    def _owner(self, owner_id: str, principal: Principal | None = None) -> ServiceUser | Application:
        """The service user or application; with a principal, one that it may change. Raises NotFound, Denied."""
        owners: ServiceUserService | ApplicationService = self._service_users if is_id(owner_id) else self._applications
        return owners.get(owner_id) if principal is None else owners.get_changeable(owner_id, principal)

    def _organization_id(self, owner: ServiceUser | Application) -> str | None:
        return owner.organization_id if isinstance(owner, ServiceUser) else self._applications.organization_id(owner)

    def _problems(self, credential: FederatedCredential) -> Iterator[tuple[str, str]]:
        problem = conditions_error(credential.conditions)
        if problem is not None:
            yield "conditions", problem
        is_trust_domain = credential.issuer.startswith("spiffe:")
        if is_trust_domain is not (credential.kind is IssuerKind.SPIFFE):
            yield "issuer", gettext_lazy("Only the kind SPIFFE has a trust domain, such as spiffe://example.org.")
        elif self.is_own_issuer(credential.issuer):
            yield "issuer", gettext_lazy("This is the service itself. Add a key instead.")
        if credential.kind is IssuerKind.OIDC:
            if credential.jwks or credential.jwks_uri:
                yield "jwks_uri", gettext_lazy("Leave this empty: the issuer's discovery document names its keys.")
        elif bool(credential.jwks) is bool(credential.jwks_uri):
            yield "jwks_uri", gettext_lazy("Enter the keys or their address, not both.")
