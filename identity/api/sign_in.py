"""Sign-in: interactions, factors, directories, and pending sign-ins."""

from identity.domain.authentication import Acr, Proof
from identity.domain.enrolments import Enrolment
from identity.domain.login_names import LoginName
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.http.sign_in_attempts import PendingSignInContext
from identity.pages.factor_pages import EnrolPage, FactorPage, ProvePage
from identity.pages.sign_in_page import SignInPage
from identity.pages.sign_out import SignOutPage
from identity.provider.consent import find_missing_consent
from identity.provider.directory import Directory, DirectoryUnavailable
from identity.provider.factor import Factor
from identity.provider.interaction import Interaction, SignIn, StepUpRequirement
from identity.provider.logout import LogoutHandler
from identity.provider.step_up import allowed_factors
from identity.services.sign_ins import SignInUnavailable

__all__ = [
    "Acr",
    "Directory",
    "DirectoryUnavailable",
    "EnrolPage",
    "Enrolment",
    "Factor",
    "FactorPage",
    "Interaction",
    "LoginName",
    "LogoutHandler",
    "PendingAuthorization",
    "PendingSignInContext",
    "Proof",
    "ProvePage",
    "SignIn",
    "SignInPage",
    "SignInUnavailable",
    "SignOutPage",
    "SignedInAccount",
    "StepUpRequirement",
    "allowed_factors",
    "find_missing_consent",
]
