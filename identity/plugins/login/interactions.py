"""When which page is needed: each rule looks at how far a sign-in has come, and none at the others."""

from typing import ClassVar

from identity.domain.authentication import PASSWORD
from identity.domain.organizations import Organization
from identity.provider.assurance import FACTOR, offered
from identity.provider.consent import CONSENT, to_agree
from identity.provider.context import Context
from identity.provider.errors import (
    AccessDenied,
    AccountSelectionRequired,
    ConsentRequired,
    LoginRequired,
    OAuthError,
    UnmetAuthenticationRequirements,
)
from identity.provider.interaction import ENROL, Interaction, SignIn
from identity.services.bundle import Services

#: What is noted as done when a person refuses on the consent page.
REFUSED = "consent refused"
#: The same for somebody who does not want to set up a factor.
NOT_NOW = "factor refused"


class Create(Interaction):
    """prompt=create: a new account, also where somebody is signed in."""

    name = "create"
    description = "The user has to act on a page: to create an account."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until it is done. Raises AccessDenied where registration is closed."""
        if self.name not in sign_in.prompts or sign_in.done(self.name):
            return False
        if open_organization(sign_in, context.services) is None:
            raise AccessDenied("This organization does not let people create accounts.")
        return True

    def path(self, sign_in: SignIn) -> str:
        """The registration form."""
        return "register"


class SelectAccount(Interaction):
    """Several accounts are signed in, or the client wants the person to choose."""

    name = "select_account"
    error: ClassVar[type[OAuthError]] = AccountSelectionRequired
    description = "Several accounts are signed in and the user has to choose."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True if there is something to choose among, unless somebody has just signed in or chosen."""
        if sign_in.done(self.name) or sign_in.proved is not None or not sign_in.accounts:
            return False
        return self.name in sign_in.prompts or (sign_in.chosen is None and len(sign_in.choices) > 1)

    def path(self, sign_in: SignIn) -> str:
        """The chooser."""
        return "accounts"


class Login(Interaction):
    """Nobody is signed in who could answer, or the password is to be given again (prompt=login, max_age)."""

    name = "login"
    error: ClassVar[type[OAuthError]] = LoginRequired
    description = "The user is not signed in."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until somebody has given the right password, or a fresh session answers."""
        if sign_in.proved is not None:
            return False
        return sign_in.chosen is None or not sign_in.fresh(sign_in.chosen)

    def path(self, sign_in: SignIn) -> str:
        """The password, where it is known whose; else the login name."""
        return "password" if known_login_name(sign_in) else ""


class ProveFactor(Interaction):
    """The policy, or the client, asks for more than was proved."""

    name = FACTOR
    description = "The user has to act on a page: to prove who they are by a second factor."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have. Raises UnmetAuthenticationRequirements."""
        need = sign_in.need
        if need is None:
            return False
        silent = sign_in.request is not None and sign_in.request.silent
        if need.by_client and (silent or sign_in.done(NOT_NOW)):
            raise UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
        return True

    def path(self, sign_in: SignIn) -> str:
        """The factor that was used last, from whose page a link leads to others; else the choice among those that can
        be set up."""
        need = sign_in.need
        if need is None:
            return "factors"
        return need.by[0] if need.by else "factors/new"


class EnrolFactor(Interaction):
    """A page of the account has sent the person here to set up a factor."""

    name = ENROL
    late = True
    description = "The user has to act on a page: to set up a factor."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until it is done."""
        wanted, subject = sign_in.demands.get(ENROL), sign_in.subject
        if not wanted or subject is None or sign_in.done(self.name):
            return False
        usable = offered(context, context.services.policies.of_subject(subject))
        return any(one.name == wanted and one.possible(subject, context.services) for one in usable)

    def path(self, sign_in: SignIn) -> str:
        """Where it is set up."""
        return f"{sign_in.demands[ENROL]}/new"


class ChangePassword(Interaction):
    """The password was set by somebody else or for one use: the person chooses their own first."""

    name = "change_password"
    late = True
    description = "The user has to act on a page: to choose a new password."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True as long as the password of whoever has just given it must be changed; others need none."""
        pending = sign_in.pending
        if sign_in.proved is None or pending is None or all(proof.factor != PASSWORD for proof in pending.proofs):
            return False
        return context.services.passwords.must_change(sign_in.proved.user.id)

    def path(self, sign_in: SignIn) -> str:
        """The new password."""
        return "password/change"


class Consent(Interaction):
    """The person sees what an application receives that is not of their organization, and agrees."""

    name = CONSENT
    late = True
    error: ClassVar[type[OAuthError]] = ConsentRequired
    description = "The user has to consent."

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have agreed to all of it. Raises AccessDenied if they refused."""
        if sign_in.done(REFUSED):
            raise AccessDenied("The user refused.")
        return to_agree(sign_in, context) is not None

    def path(self, sign_in: SignIn) -> str:
        """The question."""
        return "consent"


#: In the order in which they are asked.
INTERACTIONS: tuple[Interaction, ...] = (
    Create(),
    SelectAccount(),
    Login(),
    ProveFactor(),
    ChangePassword(),
    EnrolFactor(),
    Consent(),
)


def open_organization(sign_in: SignIn, services: Services) -> Organization | None:
    """The organization in which a person can register here: the scope's, else the application's; None if closed."""
    organization = sign_in.organization_in_question
    return organization if organization is not None and services.registration.is_open(organization) else None


def known_login_name(sign_in: SignIn) -> str:
    """Whose password is to be given, where that is settled: the account that was chosen; empty otherwise."""
    if sign_in.done(SelectAccount.name) and sign_in.pending is not None and sign_in.pending.login_name:
        return sign_in.pending.login_name
    return "" if sign_in.chosen is None else sign_in.chosen.subject.login_name
