"""When which page is needed: each rule looks at how far a sign-in has come, and none at the others."""

from typing import ClassVar

from identity.domain.authentication import PASSWORD_FACTOR
from identity.domain.organizations import Organization
from identity.provider.consent import CONSENT_INTERACTION, find_missing_consent
from identity.provider.context import Context
from identity.provider.errors import (
    AccessDenied,
    AccountSelectionRequired,
    ConsentRequired,
    LoginRequired,
    OAuthError,
    UnmetAuthenticationRequirements,
)
from identity.provider.interaction import ENROL_PARAMETER, Interaction, SignIn
from identity.provider.step_up import FACTOR_INTERACTION, allowed_factors
from identity.services.container import Services

#: What is noted as done when a person refuses on the consent page.
CONSENT_REFUSED_REASON = "consent refused"
#: The same for somebody who does not want to set up a factor.
FACTOR_REFUSED_REASON = "factor refused"


class CreateAccountInteraction(Interaction):
    """prompt=create: a new account, also where somebody is signed in."""

    name = "create"
    error_description = "The user has to act on a page: to create an account."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until it is done. Raises AccessDenied where registration is closed."""
        if self.name not in sign_in.prompts or sign_in.has_completed(self.name):
            return False
        if find_registration_organization(sign_in, context.services) is None:
            raise AccessDenied("This organization does not let people create accounts.")
        return True

    def path(self, sign_in: SignIn) -> str:
        """The registration form."""
        return "register"


class SelectAccountInteraction(Interaction):
    """Several accounts are signed in, or the client wants the person to choose."""

    name = "select_account"
    error: ClassVar[type[OAuthError]] = AccountSelectionRequired
    error_description = "Several accounts are signed in and the user has to choose."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True if there is something to choose among, unless somebody has just signed in or chosen."""
        if sign_in.has_completed(self.name) or sign_in.authenticated_subject is not None or not sign_in.accounts:
            return False
        return self.name in sign_in.prompts or (
            sign_in.selected_account is None and len(sign_in.selectable_accounts) > 1
        )

    def path(self, sign_in: SignIn) -> str:
        """The chooser."""
        return "accounts"


class LoginInteraction(Interaction):
    """Nobody is signed in who could answer, or the password is to be given again (prompt=login, max_age)."""

    name = "login"
    error: ClassVar[type[OAuthError]] = LoginRequired
    error_description = "The user is not signed in."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until somebody has given the right password, or a fresh session answers."""
        if sign_in.authenticated_subject is not None:
            return False
        return sign_in.selected_account is None or not sign_in.is_fresh(sign_in.selected_account)

    def path(self, sign_in: SignIn) -> str:
        """The password, where it is known whose; else the login name."""
        return "password" if known_login_name(sign_in) else ""


class ProveFactorInteraction(Interaction):
    """The policy, or the client, asks for more than was proved."""

    name = FACTOR_INTERACTION
    error_description = "The user has to act on a page: to prove who they are by a second factor."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have. Raises UnmetAuthenticationRequirements."""
        need = sign_in.step_up_requirement
        if need is None:
            return False
        silent = sign_in.request is not None and sign_in.request.is_silent
        if need.is_client_request and (silent or sign_in.has_completed(FACTOR_REFUSED_REASON)):
            raise UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
        return True

    def path(self, sign_in: SignIn) -> str:
        """The factor that was used last, from whose page a link leads to others; else the choice among those that can
        be set up."""
        need = sign_in.step_up_requirement
        if need is None:
            return "factors"
        return need.factors[0] if need.factors else "factors/new"


class EnrolFactorInteraction(Interaction):
    """A page of the account has sent the person here to set up a factor."""

    name = ENROL_PARAMETER
    runs_after_authentication = True
    error_description = "The user has to act on a page: to set up a factor."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until it is done."""
        wanted, subject = sign_in.own_page_requirements.get(ENROL_PARAMETER), sign_in.subject
        if not wanted or subject is None or sign_in.has_completed(self.name):
            return False
        usable = allowed_factors(context, context.services.policies.subject_policy(subject))
        return any(factor.name == wanted and factor.can_enrol(subject, context.services) for factor in usable)

    def path(self, sign_in: SignIn) -> str:
        """Where it is set up."""
        return f"{sign_in.own_page_requirements[ENROL_PARAMETER]}/new"


class ChangePasswordInteraction(Interaction):
    """The password was set by somebody else or for one use: the person chooses their own first."""

    name = "change_password"
    runs_after_authentication = True
    error_description = "The user has to act on a page: to choose a new password."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True as long as the password of whoever has just given it must be changed; others need none."""
        pending = sign_in.pending
        if (
            sign_in.authenticated_subject is None
            or pending is None
            or all(proof.factor != PASSWORD_FACTOR for proof in pending.proofs)
        ):
            return False
        return context.services.passwords.must_change(sign_in.authenticated_subject.user.id)

    def path(self, sign_in: SignIn) -> str:
        """The new password."""
        return "password/change"


class ConsentInteraction(Interaction):
    """The person sees what an application receives that is not of their organization, and agrees."""

    name = CONSENT_INTERACTION
    runs_after_authentication = True
    error: ClassVar[type[OAuthError]] = ConsentRequired
    error_description = "The user has to consent."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have agreed to all of it. Raises AccessDenied if they refused."""
        if sign_in.has_completed(CONSENT_REFUSED_REASON):
            raise AccessDenied("The user refused.")
        return find_missing_consent(sign_in, context) is not None

    def path(self, sign_in: SignIn) -> str:
        """The question."""
        return "consent"


#: In the order in which they are asked.
INTERACTIONS: tuple[Interaction, ...] = (
    CreateAccountInteraction(),
    SelectAccountInteraction(),
    LoginInteraction(),
    ProveFactorInteraction(),
    ChangePasswordInteraction(),
    EnrolFactorInteraction(),
    ConsentInteraction(),
)


def find_registration_organization(sign_in: SignIn, services: Services) -> Organization | None:
    """The organization in which a person can register here: the scope's, else the application's; None if closed."""
    organization = sign_in.effective_organization
    return organization if organization is not None and services.registration.is_open(organization) else None


def known_login_name(sign_in: SignIn) -> str:
    """Whose password is to be given, where that is settled: the account that was chosen; empty otherwise."""
    if (
        sign_in.has_completed(SelectAccountInteraction.name)
        and sign_in.pending is not None
        and sign_in.pending.login_name
    ):
        return sign_in.pending.login_name
    return "" if sign_in.selected_account is None else sign_in.selected_account.subject.login_name
