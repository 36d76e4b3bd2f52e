"""/register: behind the link that finishes an account."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.authentication import BY_PASSWORD
from identity.domain.errors import Denied
from identity.domain.users import Subject
from identity.domain.words import say
from identity.http.sign_ins import sign_in_anew
from identity.pages.drawing import HOME
from identity.pages.errors import error_page
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.account.links.link_page import LinkPage
from identity.provider.endpoints.authorize import PATH as AUTHORIZE
from identity.services.sign_ins import NoSignIn

#: The interaction that is over with the account.
_CREATE = "create"


class Registration(LinkPage, FormPage):
    """Shows what was typed, asks for another user name if that one is taken, and makes the account."""

    template = "account/registration.html"
    fields = ("user_name",)
    leads_away = True

    def show(self) -> Mapping[str, object]:
        """What was typed. Raises LinkUsed."""
        announced = self.request.services.registration.look(self.code)
        return {"registered": announced.command, "organization": announced.organization, "taken": announced.taken}

    def values(self) -> Mapping[str, str]:
        """The user name that was typed."""
        return {"user_name": self.request.services.registration.look(self.code).command.user_name}

    def submit(self, form: Form) -> Response:
        """Make the account, and sign in: where the registration began, if that waits in this browser still."""
        registration = self.request.services.registration
        announced = registration.look(self.code)
        user_name = form.one("user_name") if announced.taken else None
        try:
            subject = registration.complete(self.code, user_name=user_name)
        except Denied:
            return error_page(
                self.request,
                403,
                say("Registration is closed"),
                [
                    say(
                        "{organization} does not let people create accounts now.",
                        organization=announced.organization.name,
                    )
                ],
            )
        return self._go_on(announced.sign_in, subject)

    def _go_on(self, sign_in_id: str, subject: Subject) -> Response:
        sign_ins = self.request.services.sign_ins
        try:
            pending = sign_ins.find(sign_in_id, self.request.browser.sign_ins.get(sign_in_id))
        except NoSignIn:
            return sign_in_anew(self.request, target=HOME, login_name=subject.login_name)
        # The password was typed in this very sign-in, and this very browser.
        sign_ins.done(sign_ins.prove(pending, subject, (BY_PASSWORD,)), _CREATE)
        return self.redirect(f"{AUTHORIZE}/{pending.id}")
