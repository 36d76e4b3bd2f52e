"""End everything that was opened with an account, an application or an organization."""

from dataclasses import dataclass

from identity.domain.access_revocations import AccessScope, RevokedAccess
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.records import CORE_NAMESPACE
from identity.services.access_control import AccessControl, Principal
from identity.services.applications import ApplicationService
from identity.services.base import Service
from identity.services.organizations import OrganizationService
from identity.services.service_users import ServiceUserService
from identity.services.sessions import ACCESS_RECORD_KINDS, SessionService
from identity.services.users import UserService

#: Sessions of an organization whose end each application is notified of; further ones end by one statement.
_MOST_ENDED_WITH_NOTICE = 200


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
        stored = self._storage
        # In this order, as for a single user.
        stored.authorization_requests.reset_for_organization(organization.id, except_user_ids=spared)
        sessions = self._end_with_notice(organization.id, spared)
        sessions += stored.sessions.end_for_organization(organization.id, self._now, except_user_ids=spared)
        for kind in ACCESS_RECORD_KINDS:
            stored.records.delete_for_organization(CORE_NAMESPACE, kind, organization.id, except_user_ids=spared)
        tokens = self._revoke(AccessScope(DeletionTarget.ORGANIZATION, organization.id, spared))
        found = stored.users.find_subjects(sorted(higher))
        left_out = tuple(sorted(found.values(), key=lambda subject: subject.login_name))
        return self._record_revocation(
            "organization", organization.id, organization.id, RevokedAccess(sessions, tokens, left_out)
        )

    def _end_with_notice(self, organization_id: str, spared: frozenset[str]) -> int:
        """End the sessions of some users one by one, with an event each, which notifies the applications."""
        accounts = self._storage.sessions.list_open(organization_id, self._now, _MOST_ENDED_WITH_NOTICE)
        subjects = {account.subject.user.id: account.subject for account in accounts}
        return sum(self._sessions.end_all(subject) for id_, subject in subjects.items() if id_ not in spared)

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
