"""End everything that was opened with an account, an application or an organization."""

from dataclasses import dataclass

from identity.domain.access_revocations import AccessScope, RevokedAccess
from identity.domain.deletion_impact import DeletionTarget
from identity.services.access_control import AccessControl, Principal
from identity.services.applications import ApplicationService
from identity.services.base import Service
from identity.services.organizations import OrganizationService
from identity.services.service_users import ServiceUserService
from identity.services.sessions import SessionService
from identity.services.users import UserService


@dataclass(eq=False, repr=False)
class AccessRevocationService(Service):
    """Sessions and pending sign-ins start over; tokens, codes and what can be refreshed end; remembered browsers are
    forgotten, links in mails stop working, and personal access tokens are deleted. Accounts, passwords, factors, keys,
    secrets, consents and roles stay: who has a credential can sign in again. To prevent that, deactivate the account
    first.

    The rules are those for changing the entity (security 14.4). Of an organization, users with manager roles beyond
    the caller's are left out, and so is the caller. Nothing is recorded if there was nothing to end."""

    _access: AccessControl
    _sessions: SessionService
    _users: UserService
    _service_users: ServiceUserService
    _applications: ApplicationService
    _organizations: OrganizationService

    def revoke_user(self, user_id: str, *, principal: Principal) -> RevokedAccess:
        """Raises NotFound, Denied."""
        user = self._users.get_changeable(user_id, principal)
        # Before the tokens: no live session brings new ones then.
        sessions = self._sessions.revoke_access(self._get_subject(user.id), applications=False)
        tokens = self._revoke(AccessScope(DeletionTarget.USER, user.id))
        return self._record_revocation("user", user.id, user.organization_id, RevokedAccess(sessions, tokens))

    def revoke_service_user(self, user_id: str, *, principal: Principal) -> RevokedAccess:
        """Raises NotFound, Denied."""
        user = self._service_users.get_changeable(user_id, principal)
        tokens = self._revoke(AccessScope(DeletionTarget.USER, user.id))
        return self._record_revocation("service_user", user.id, user.organization_id, RevokedAccess(0, tokens))

    def revoke_application(self, application_id: str, *, principal: Principal) -> RevokedAccess:
        """The tokens of the application, for all users. Raises NotFound, Denied."""
        application = self._applications.get_changeable(application_id, principal)
        tokens = self._revoke(AccessScope(DeletionTarget.APPLICATION, application.id))
        organization_id = self._applications.organization_id(application)
        return self._record_revocation("application", application.id, organization_id, RevokedAccess(0, tokens))

    def revoke_organization(self, organization_id: str, *, principal: Principal) -> RevokedAccess:
        """What the organization's users and applications opened, by a few statements however many they are. Raises
        NotFound."""
        organization = self._organizations.get(organization_id)
        higher = self._access.list_more_privileged_users(principal, organization.id)
        spared = higher | (frozenset() if principal.id is None else {principal.id})
        scope = AccessScope(DeletionTarget.ORGANIZATION, organization.id, spared)
        # In this order, as for a single user.
        sessions = self._sessions.end_for_organization(scope)
        tokens = self._revoke(scope)
        found = self._storage.users.find_subjects(sorted(higher))
        left_out = tuple(sorted(found.values(), key=lambda subject: subject.login_name))
        return self._record_revocation(
            "organization", organization.id, organization.id, RevokedAccess(sessions, tokens, left_out)
        )

    def _revoke(self, scope: AccessScope) -> int:
        return self._storage.tokens.revoke_all(scope, self._now)

    def _record_revocation(
        self, kind: str, id: str, organization_id: str | None, revoked: RevokedAccess
    ) -> RevokedAccess:
        if revoked.sessions or revoked.tokens:
            self._audit.record(
                f"{kind}.access_revoked",
                kind=kind,
                id=id,
                organization_id=organization_id,
                detail={
                    "sessions": revoked.sessions,
                    "tokens": revoked.tokens,
                    "left_out": [subject.user.id for subject in revoked.left_out],
                },
            )
        return revoked
