"""Whether a manager may be signed in as a person, judged at the start and at every request of such a session."""

from dataclasses import dataclass

from identity.domain.errors import Denied
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import Resource
from identity.domain.sessions import SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import AccessControl
from identity.services.policies import PolicyService

PERMISSION = "user.impersonate"


@dataclass(eq=False, repr=False)
class ImpersonationRules:
    _access: AccessControl
    _policies: PolicyService

    def require_permitted(self, impersonator: SignedInAccount, subject: Subject) -> None:
        """Raise Denied with the reason, unless the manager may be signed in as the person now.

        The manager's session must have the second factor that the person's policy requires, because no proof of the
        person stands behind the impersonated one."""
        if impersonator.session.is_impersonated:
            raise Denied(gettext_lazy("You are signed in as someone else already. End that first."))
        if subject.user.id == impersonator.subject.user.id:
            raise Denied(gettext_lazy("You cannot sign in as yourself."))
        if not isinstance(subject.user, HumanUser):
            raise Denied(gettext_lazy("You can sign in only as a person."))
        if not subject.is_active:
            raise Denied(gettext_lazy("This person cannot sign in: the account or its organization is deactivated."))
        principal = self._access.load_principal(impersonator.subject)
        self._access.require(principal, PERMISSION, Resource.of_organization(subject.organization.id))
        self._access.require_not_more_privileged(principal, subject.user)
        if self._policies.lacks_factor(subject, impersonator.session.amr_methods):
            raise Denied(
                gettext_lazy("This person's policy requires a second factor: sign in with one of your own first.")
            )

    def is_permitted(self, impersonator: SignedInAccount, subject: Subject) -> bool:
        try:
            self.require_permitted(impersonator, subject)
        except Denied:
            return False
        return True
