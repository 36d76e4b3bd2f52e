"""/email: the page behind an email verification link."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.entities import Organization, Subject
from identity.api.pages import Form, FormPage, Page
from identity.api.plugins import cached_property
from identity.plugins.account.one_time_links.link_page import OneTimeLinkPage


class VerifyEmailPage(OneTimeLinkPage, FormPage):
    """Requires a click, because opening a link proves nothing: a mail scanner may have done it. Only the account's user
    can confirm the address: an attacker may have requested the link, hoping that the address's owner confirms it."""

    template = "account/verify_email.html"

    @cached_property
    def signed_in_subject(self) -> Subject | None:
        """The account that gets the address, if it is signed in at this browser. Raises InvalidOneTimeLink."""
        subject, _ = self.request.services.users.find_by_email_link(self.link_secret)
        is_here = any(account.subject.user.id == subject.user.id for account in self.live_accounts)
        return subject if is_here else None

    def branding_organization(self) -> Organization | None:
        return None if self.signed_in_subject is None else self.signed_in_subject.organization

    def template_variables(self) -> Mapping[str, object]:
        if self.signed_in_subject is None:
            return {"login_name": None}
        _, email = self.request.services.users.find_by_email_link(self.link_secret)
        return {"login_name": self.signed_in_subject.login_name, "email": email}

    def submit(self, form: Form) -> Response:
        """Set the address and notify the previous one. Without a session the user signs in first."""
        if self.signed_in_subject is None:
            return self.redirect_to_sign_in(Page.ACCOUNT_PATH)
        self.request.services.users.verify_email(self.link_secret, self.signed_in_subject.user.id)
        return self.redirect_in_language("/email/confirmed")


class EmailVerifiedPage(OneTimeLinkPage):
    template = "account/email_verified.html"
