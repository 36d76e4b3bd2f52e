"""/email: behind the link that proves that a person reads an address."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.http.sign_ins import sign_in_anew
from identity.lazily import lazily
from identity.pages.drawing import HOME
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.links.link_page import LinkPage


class VerifyEmail(LinkPage, FormPage):
    """Asks, because opening a link proves nothing: a mail scanner may have done it.

    Only the account itself takes the address: a stranger may have asked for the link, to have somebody who reads the
    mail confirm it.
    """

    template = "account/verify_email.html"

    @lazily
    def signed_in(self) -> Subject | None:
        """Whose address it becomes, if they are signed in at this browser. Raises LinkUsed."""
        subject, _ = self.request.services.users.find_email_by_link(self.code)
        sessions = self.request.services.sessions
        here = sessions.of_browser(self.request.browser.sessions.values())
        return next((subject for one in here if one.subject.user.id == subject.user.id and sessions.live(one)), None)

    def whose(self) -> Organization | None:
        return None if self.signed_in is None else self.signed_in.organization

    def show(self) -> Mapping[str, object]:
        """Which address becomes whose, to whoever it belongs to. Raises LinkUsed."""
        if self.signed_in is None:
            return {"login_name": None}
        _, email = self.request.services.users.find_email_by_link(self.code)
        return {"login_name": self.signed_in.login_name, "email": email}

    def submit(self, form: Form) -> Response:
        """Make it theirs; the address that they had is told. Somebody who is not signed in signs in first."""
        if self.signed_in is None:
            return sign_in_anew(self.request, target=HOME)
        self.request.services.users.verify_email(self.code, self.signed_in.user.id)
        return self.go_to("/email/confirmed")


class EmailConfirmed(LinkPage):
    """The end."""

    template = "account/email_confirmed.html"
