"""Deleting one's account: the question, and the way back during a sign-in."""

import unicodedata
from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Conflict, Invalid, NotFound
from identity.domain.users import HumanUser
from identity.domain.words import say
from identity.http.cookies import headers_for
from identity.pages.forms import Form
from identity.pages.page import Again, FormPage
from identity.pages.sign_in_page import SignInPage
from identity.plugins.account.interactions import KeepAccount
from identity.plugins.account.pages.account_page import DATA, LEAVING, AccountPage
from identity.provider.request import Cookie, CookieKind


class Delete(AccountPage, FormPage):
    """Asks for the user name, from whoever has just proved who they are. Not there where the policy does not allow
    it."""

    template = "account/delete.html"
    section = DATA
    needs_fresh = True
    fields = ("confirm_name",)

    def show(self) -> Mapping[str, object]:
        """What follows. Raises NotFound."""
        if not self.request.services.deletions.allowed(self.subject):
            raise NotFound("page", DATA)
        return {"user_name": self.subject.user.user_name}

    def submit(self, form: Form) -> Response:
        self.show()
        name = self.subject.user.user_name
        if _comparable(form.one("confirm_name")) != _comparable(name):
            raise Invalid({"confirm_name": say("Type {name} to confirm.", name=name)})
        try:
            self.request.services.deletions.ask(self.subject)
        except Conflict as refused:
            raise Again(refused.args[0], status=409) from None
        response = self.redirect(LEAVING)
        for header, value in headers_for(self.request, (Cookie(CookieKind.SESSION, self.account.session.id),)):
            response.headers.add(header, value)
        return response


class Keep(SignInPage):
    """Asks whoever has proved who they are whether the account is to stay. Without an answer nobody is signed in."""

    template = "account/keep.html"

    def show(self) -> Mapping[str, object] | Response:
        """When it goes; on with the sign-in if it is not this page's turn."""
        subject = self.sign_in.subject
        if subject is None or not isinstance(subject.user, HumanUser) or not self.is_next(KeepAccount.name):
            return self.go_on()
        return {"login_name": subject.login_name, "day": subject.user.deletion_at}

    def submit(self, form: Form) -> Response:
        subject = self.sign_in.subject
        if subject is not None and self.is_next(KeepAccount.name):
            self.request.services.deletions.withdraw(subject)
        return self.go_on()


def _comparable(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()
