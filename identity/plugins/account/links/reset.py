"""/password/reset: for whoever forgot the password; and the page behind the link that comes by mail."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.pages.forms import Form
from identity.pages.held_back import RESET, held_back
from identity.pages.mails import mail_reset, works_once
from identity.pages.page import FormPage, Page
from identity.plugins.account.links.link_page import LinkPage
from identity.plugins.account.pages.password import names_of
from identity.services.attempts import TooManyAttempts

_LONGEST_LOGIN_NAME = 500
_ORGANIZATION = "organization"


class AskForReset(LinkPage, FormPage):
    """Answers the same whether the account exists or not. Where no mail can be sent it says whom to ask."""

    template = "account/ask_for_reset.html"
    fields = ("login_name",)

    @property
    def mailing(self) -> bool:
        """True if mail can be sent."""
        enabled: bool = self.request.services.mails.enabled
        return enabled

    def get(self) -> Response:
        """The form; without mail, words alone."""
        return super().get() if self.mailing else Page.get(self)

    def post(self) -> Response:
        return super().post() if self.mailing else Page.get(self)

    def whose(self) -> Organization | None:
        """The organization of the page that leads here, which names it by its domain."""
        domain = self.request.GET.get(_ORGANIZATION, "")
        found: Organization | None = self.request.services.storage.organizations.find_by_domain(domain)
        return found if found is not None and found.active else None

    def values(self) -> Mapping[str, str]:
        return {"login_name": self.request.GET.get("login_name", "")}

    def show(self) -> Mapping[str, object]:
        return {"mailing": self.mailing}

    def submit(self, form: Form) -> Response:
        login_name = form.one("login_name").strip()[:_LONGEST_LOGIN_NAME]
        if not login_name:
            raise Invalid({"login_name": say("Enter your login name or email address.")})
        try:
            mail_reset(self.request, login_name, language=self.language, of_page=self.whose())
        except TooManyAttempts as problem:
            raise held_back(problem, password=False) from None
        return self.go_to(f"{RESET}/sent")


class ResetSent(LinkPage):
    """What comes after the form, for every login name."""

    template = "account/reset_sent.html"

    def show(self) -> Mapping[str, object] | Response:
        """How long a link works; where none was sent, back."""
        if not self.request.services.mails.enabled:
            return self.redirect(RESET)
        lifetime = self.request.registry.identity.settings.link_lifetime
        return {"works_once": works_once(lifetime, self.words)}


class Reset(LinkPage, FormPage):
    """A new password. Only posting it uses the link up."""

    template = "account/reset.html"
    fields = ("new_password", "new_password_again")
    secret_fields = frozenset(fields)

    def owner(self) -> Subject:
        """Whose password it will be. Raises LinkUsed."""
        found: Subject = self.request.services.passwords.find_by_link(self.code)
        return found

    def whose(self) -> Organization | None:
        return self.owner().organization

    def show(self) -> Mapping[str, object]:
        return {
            "login_name": self.owner().login_name,
            "min_length": self.request.services.passwords.min_length(self.owner().organization.id),
        }

    def submit(self, form: Form) -> Response:
        """Keep it; all sessions of the person end."""
        password = form.one("new_password")
        self.request.services.passwords.check(
            password,
            form.again("new_password"),
            organization_id=self.owner().organization.id,
            names=names_of(self.owner()),
        )
        # Nobody waits for a lock while it is hashed.
        self.request.commit()
        try:
            hashed = self.request.services.passwords.hash(password)
        except Busy as problem:
            raise held_back(problem) from None
        self.request.services.passwords.reset(self.code, hashed)
        return self.go_to("/password/changed")


class PasswordChanged(LinkPage):
    """The end."""

    template = "account/password_changed.html"
