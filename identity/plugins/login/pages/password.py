"""Step 2: the password."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.authentication import BY_PASSWORD, PASSWORD
from identity.domain.errors import Invalid
from identity.domain.login_names import LoginName
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.sign_ins import try_password
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import known_login_name
from identity.provider.scope import OFFLINE_ACCESS
from identity.services.attempts import TooManyAttempts

_WRONG = say("The login name or the password is wrong. Check both and try again.")
_NOT_BY_PASSWORD = say("{organization} does not let people sign in with a password.")


class Password(SignInPage):
    """The same answer for a wrong password, an unknown name, and an account that may not sign in."""

    template = "login/password.html"
    fields = ("password",)
    secret_fields = frozenset({"password"})

    @property
    def login_name(self) -> LoginName | None:
        """Whose password: as typed on the page before, else of the account that was chosen."""
        typed = self.pending.login_name or known_login_name(self.sign_in)
        return LoginName.of(typed, self.sign_in.organization_in_question) if typed else None

    def show(self) -> Mapping[str, object] | Response:
        """Whom it is about, and what the application will receive; to step 1 if nobody said who."""
        login_name = self.login_name
        if login_name is None:
            return self.redirect(self.root)
        asked = self.sign_in.request
        chosen = self.sign_in.chosen
        organization, _ = self.whose_looks()
        return {
            "login_name": login_name.whole,
            "reset_at": "" if organization is None else organization.primary_domain,
            "again": chosen is not None and not self.sign_in.fresh(chosen),
            "received": self.received,
            "options": self.options,
            "stays_connected": asked is not None and OFFLINE_ACCESS in asked.scope,
        }

    def submit(self, form: Form) -> Response:
        login_name = self.login_name
        if login_name is None:
            return self.redirect(self.root)
        password = form.one("password")
        if not password:
            raise Invalid({"password": say("Enter your password.")})
        try:
            subject = try_password(self.request, login_name, password)
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem) from None
        if subject is None:
            raise Invalid({"password": _WRONG})
        self.require_organization(subject)
        self.require_allowed(subject, PASSWORD, _NOT_BY_PASSWORD)
        self.request.services.sign_ins.prove(self.pending, subject, (BY_PASSWORD,))
        return self.go_on()
