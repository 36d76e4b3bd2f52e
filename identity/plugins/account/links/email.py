"""/email: behind the link that proves that a person reads an address."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.pages.forms import Form
from identity.pages.mails import email_of, mail_notice
from identity.pages.page import FormPage
from identity.plugins.account.links.link_page import LinkPage


class VerifyEmail(LinkPage, FormPage):
    """Asks, because opening a link proves nothing: a mail scanner may have done it."""

    template = "account/verify_email.html"

    def show(self) -> Mapping[str, object]:
        """Which address becomes whose. Raises LinkUsed."""
        subject, email = self.request.services.users.find_email_by_link(self.code)
        return {"login_name": subject.login_name, "email": email}

    def submit(self, form: Form) -> Response:
        """Make it theirs; the address that they had is told."""
        services = self.request.services
        before, email = services.users.find_email_by_link(self.code)
        services.users.verify_email(self.code)
        former = email_of(before)
        if former != email:
            mail_notice(self.request, "email_changed", before, former, language=self.language)
        return self.go_to("/email/confirmed")


class EmailConfirmed(LinkPage):
    """The end."""

    template = "account/email_confirmed.html"
