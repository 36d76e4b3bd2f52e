"""Sign-in interactions: each rule decides from the state of a sign-in whether its page is needed."""

from typing import ClassVar

from identity.api.endpoints import (
    AccessDenied,
    AccountSelectionRequired,
    ConsentRequired,
    Context,
    LoginRequired,
    OAuthError,
    UnmetAuthenticationRequirements,
)
from identity.api.entities import Organization
from identity.api.services import Services
from identity.api.sign_in import Interaction, Proof, SignIn, allowed_factors, find_missing_consent

#: Recorded when the user refuses on the consent page.
CONSENT_REFUSED_REASON = "consent refused"
#: Recorded when the user refuses to enrol a factor.
FACTOR_REFUSED_REASON = "factor refused"


class CreateAccountInteraction(Interaction):
    """prompt=create: a new account, even if an account is signed in."""

    name = "create"
    error_description = "The user has to act on a page: to create an account."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until it is done. Raises AccessDenied if registration is closed."""
        if self.name not in sign_in.prompts or sign_in.has_completed(self.name):
            return False
        if find_registration_organization(sign_in, context.services) is None:
            raise AccessDenied("This organization does not let people create accounts.")
        return True

    def path(self, sign_in: SignIn) -> str:
        return "register"


class SelectAccountInteraction(Interaction):
    """Several accounts are signed in, or the client requests the choice."""

    name = "select_account"
    error: ClassVar[type[OAuthError]] = AccountSelectionRequired
    error_description = "Several accounts are signed in and the user has to choose."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True if there is a choice, unless the user has just signed in or chosen."""
        if sign_in.has_completed(self.name) or sign_in.authenticated_subject is not None or not sign_in.accounts:
            return False
        return self.name in sign_in.prompts or (
            sign_in.selected_account is None and len(sign_in.selectable_accounts) > 1
        )

    def path(self, sign_in: SignIn) -> str:
        return "accounts"


class LoginInteraction(Interaction):
    """No usable session exists, or the client requires a new authentication (prompt=login, max_age)."""

    name = "login"
    error: ClassVar[type[OAuthError]] = LoginRequired
    error_description = "The user is not signed in."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the password is verified or a recent session is accepted."""
        if sign_in.authenticated_subject is not None:
            return False
        return sign_in.selected_account is None or not sign_in.is_fresh(sign_in.selected_account)

    def path(self, sign_in: SignIn) -> str:
        """The password page if the account is known, else the login name page."""
        return "password" if known_login_name(sign_in) else ""


class ProveFactorInteraction(Interaction):
    """The policy or the client requires more factors than were proved."""

    name = Interaction.FACTOR
    error_description = "The user has to act on a page: to prove who they are by a second factor."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the requirement is met. Raises UnmetAuthenticationRequirements."""
        need = sign_in.step_up_requirement
        if need is None:
            return False
        silent = sign_in.request is not None and sign_in.request.is_silent
        if need.is_client_request and (silent or sign_in.has_completed(FACTOR_REFUSED_REASON)):
            raise UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
        return True

    def path(self, sign_in: SignIn) -> str:
        """The page of the last used factor, which links to the others; else the choice of factors to enrol."""
        need = sign_in.step_up_requirement
        if need is None:
            return "factors"
        return need.factors[0] if need.factors else "factors/new"


class EnrolFactorInteraction(Interaction):
    """The account pages started this sign-in to enrol a factor."""

    name = SignIn.ENROL_PARAMETER
    runs_after_authentication = True
    error_description = "The user has to act on a page: to set up a factor."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        factor_name, subject = sign_in.own_page_requirements.get(SignIn.ENROL_PARAMETER), sign_in.subject
        if not factor_name or subject is None or sign_in.has_completed(self.name):
            return False
        usable = allowed_factors(context, context.services.policies.subject_policy(subject))
        return factor_name in usable and usable[factor_name].can_enrol(subject, context.services)

    def path(self, sign_in: SignIn) -> str:
        return f"{sign_in.own_page_requirements[SignIn.ENROL_PARAMETER]}/new"


class ChangePasswordInteraction(Interaction):
    """The password was set by a manager or is temporary: the user must choose a new one."""

    name = "change_password"
    runs_after_authentication = True
    error_description = "The user has to act on a page: to choose a new password."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True while the password just entered must be changed; users who entered none are not affected."""
        pending = sign_in.pending
        if (
            sign_in.authenticated_subject is None
            or pending is None
            or all(proof.factor != Proof.PASSWORD_FACTOR for proof in pending.proofs)
        ):
            return False
        return context.services.passwords.must_change(sign_in.authenticated_subject.user.id)

    def path(self, sign_in: SignIn) -> str:
        return "password/change"


class ConsentInteraction(Interaction):
    """The user agrees to what an application of another organization receives."""

    name = Interaction.CONSENT
    runs_after_authentication = True
    error: ClassVar[type[OAuthError]] = ConsentRequired
    error_description = "The user has to consent."

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the user agreed to all of it. Raises AccessDenied after a refusal."""
        if sign_in.has_completed(CONSENT_REFUSED_REASON):
            raise AccessDenied("The user refused.")
        return find_missing_consent(sign_in, context) is not None

    def path(self, sign_in: SignIn) -> str:
        return "consent"


#: In the order of the sign-in.
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
    """The organization of a new account: the scope's, else the application's; None if registration is closed."""
    organization = sign_in.effective_organization
    return organization if organization is not None and services.registration.is_open(organization) else None


def known_login_name(sign_in: SignIn) -> str:
    """The login name of the chosen account; empty if none is chosen."""
    if (
        sign_in.has_completed(SelectAccountInteraction.name)
        and sign_in.pending is not None
        and sign_in.pending.login_name
    ):
        return sign_in.pending.login_name
    return "" if sign_in.selected_account is None else sign_in.selected_account.subject.login_name
