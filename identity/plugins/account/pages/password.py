"""/account/password: a new password, for whoever knows the present one."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.cookies import headers_for
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.page import FormPage
from identity.plugins.account.pages.account_page import SECURITY, AccountPage
from identity.provider.known_browser import known_browser


class Password(AccountPage, FormPage):
    """The present password, then the new one."""

    template = "account/password.html"
    section = SECURITY
    fields = ("current_password", "new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def show(self) -> Mapping[str, object]:
        return {
            "login_name": self.subject.login_name,
            "min_length": self.request.services.passwords.min_length(self.subject),
            "ends_access": self.request.registry.identity.settings.password_change_ends_access,
        }

    def submit(self, form: Form) -> Response:
        """Keep the new one and this session; all others end."""
        current, new = form.one("current_password"), form.one("new_password")
        self._check(form, current, new)
        subject = self.prove(current)
        try:
            hashed = self.request.services.passwords.hash(new)
        except Busy as problem:
            raise held_back(problem) from None
        self.request.services.passwords.change(subject, hashed, keep=self.account.session.id)
        response = self.redirect(self.done(SECURITY))
        # The new password ended that too, at every browser.
        cookies = known_browser(subject.user.id, self.request.browser, self.request.services)
        response.headerlist.extend(headers_for(self.request, tuple(cookies)))
        return response

    def _check(self, form: Form, current: str, new: str) -> None:
        """Raise Invalid for all that can be said before anything is tried."""
        problems: dict[str, str] = {}
        if not current:
            problems["current_password"] = say("Enter your present password.")
        try:
            self.request.services.passwords.check(
                new,
                form.again("new_password"),
                whose=self.subject,
                names=names_of(self.subject),
            )
        except Invalid as refused:
            problems |= refused.fields
        if problems:
            raise Invalid(problems)


def names_of(subject: Subject) -> tuple[str, ...]:
    """What is no password of this person."""
    email = subject.user.profile.email if isinstance(subject.user, HumanUser) else ""
    return subject.user.user_name, subject.login_name, email
