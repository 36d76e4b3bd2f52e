"""Step 1: the login name."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.names import whole_login_name
from identity.domain.words import say
from identity.pages.forms import Form
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import open_organization, organization_in_question

_LONGEST = 500


class LoginName(SignInPage):
    """Who wants to sign in; whether there is such an account, nobody learns here."""

    template = "login/name.html"
    fields = ("login_name",)

    def values(self) -> Mapping[str, str]:
        return {"login_name": self.pending.login_name}

    def show(self) -> Mapping[str, object]:
        return {
            "registration": open_organization(self.sign_in, self.request.services) is not None,
            "return_line": self.return_line,
            "options": self.options,
        }

    def submit(self, form: Form) -> Response:
        login_name = form.one("login_name").strip()
        if not login_name:
            raise Invalid({"login_name": say("Enter your login name.")})
        if len(login_name) > _LONGEST:
            raise Invalid({"login_name": say("Use at most {length} characters.", length=_LONGEST)})
        sign_ins = self.request.services.sign_ins
        login_name = self._whole(login_name)
        sign_ins.remember_login_name(self.pending, login_name)
        return self.redirect(self.way_of(login_name))

    def _whole(self, login_name: str) -> str:
        """A bare name is one of the organization in question, whether or not anybody has it there."""
        organization = organization_in_question(self.sign_in)
        return login_name if organization is None else whole_login_name(login_name, organization.primary_domain)
