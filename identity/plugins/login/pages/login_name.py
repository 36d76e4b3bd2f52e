"""Step 1: the login name."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.login_names import LoginName
from identity.domain.words import say
from identity.pages.forms import Form
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import open_organization
from identity.services.sign_ins import ANOTHER_WAY

_LONGEST = 500
#: The button by which somebody asks for the instance's ways.
_ANOTHER = "another"
_MISSING, _MISSING_BY_EMAIL = say("Enter your login name."), say("Enter your login name or email address.")


class LoginNamePage(SignInPage):
    """Who wants to sign in; whether there is such an account, nobody learns here."""

    template = "login/name.html"
    fields = ("login_name", _ANOTHER)
    untyped_fields = frozenset({_ANOTHER})

    def values(self) -> Mapping[str, str]:
        return {"login_name": self.pending.login_name}

    def show(self) -> Mapping[str, object]:
        return {
            "registration": open_organization(self.sign_in, self.request.services) is not None,
            "return_line": self.return_line,
            "options": self.options,
            "by_email": self.signs_in_by_email,
            "another_way": self._has_another_way(),
        }

    def _has_another_way(self) -> bool:
        """True if the instance has other ways than the organization whose people are asked for."""
        organization, policies = self.sign_in.organization, self.request.services.policies
        if organization is None or self.sign_in.done(ANOTHER_WAY):
            return False
        return bool(policies.of(organization.id).factors != policies.of_instance().factors)

    def submit(self, form: Form) -> Response:
        if form.one(_ANOTHER):
            self.request.services.sign_ins.want_another_way(self.pending)
            return self.redirect(self.root)
        login_name = form.one("login_name").strip()
        if not login_name:
            raise Invalid({"login_name": _MISSING_BY_EMAIL if self.signs_in_by_email else _MISSING})
        if len(login_name) > _LONGEST:
            raise Invalid({"login_name": say("Use at most {length} characters.", length=_LONGEST)})
        self.request.services.sign_ins.remember_login_name(self.pending, login_name)
        return self.redirect(self.way_of(LoginName.of(login_name, self.sign_in.organization_in_question)))
