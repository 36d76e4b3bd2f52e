"""/register: behind the link that finishes an account."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.authentication import BY_PASSWORD
from identity.domain.errors import Denied
from identity.domain.organizations import Organization
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.sign_ins import sign_in_anew
from identity.lazily import lazily
from identity.pages.drawing import HOME
from identity.pages.errors import error_page
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.page import FormPage
from identity.pages.registration import NAMES, SECRETS, typed_account
from identity.plugins.account.links.link_page import LinkPage
from identity.services.commands import decode
from identity.services.commands.users import RegisterUser
from identity.services.registration import Announced
from identity.services.sign_ins import NoSignIn

#: The interaction that is over with the account.
_CREATE = "create"


class Registration(LinkPage, FormPage):
    """In the browser in which it was typed, shows it, asks for another user name if that one is taken, and makes the
    account. Anywhere else a stranger may have typed it, with a password that they know: nothing of it is shown or kept
    but the address, and whoever reads its mail types all of it."""

    template = "account/registration.html"
    fields = (*NAMES, *SECRETS)
    secret_fields = frozenset(SECRETS)

    @lazily
    def announced(self) -> Announced:
        """What the link announces. Raises LinkUsed."""
        found: Announced = self.request.services.registration.look(self.code)
        return found

    @lazily
    def pending(self) -> PendingAuthorization | None:
        """The sign-in in which it was typed, if that waits in this browser still."""
        request, request_id = self.request, self.announced.sign_in
        try:
            found: PendingAuthorization = request.services.sign_ins.find(
                request_id, request.browser.sign_ins.get(request_id)
            )
        except NoSignIn:
            return None
        return found

    def whose(self) -> Organization | None:
        return self.announced.organization

    def show(self) -> Mapping[str, object]:
        return {
            "email": self.announced.command.email,
            "organization": self.announced.organization,
            "registered": None if self.pending is None else self.announced.command,
            "taken": self.announced.taken,
            "min_length": self.request.services.passwords.min_length(self.announced.organization.id),
        }

    def values(self) -> Mapping[str, str]:
        return {} if self.pending is None else {"user_name": self.announced.command.user_name}

    def submit(self, form: Form) -> Response:
        """Make the account, and sign in: where the registration began, if that waits in this browser still."""
        announced, pending = self.announced, self.pending
        command, hashed = announced.command, None
        if pending is None:
            command, hashed = self._typed(form)
        elif announced.taken:
            command = decode(RegisterUser, {**dict(command), "user_name": form.one("user_name")})
        try:
            subject = self.request.services.registration.complete(self.code, command, hashed)
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
        return self._go_on(pending, subject)

    def _typed(self, form: Form) -> tuple[RegisterUser, str]:
        command = typed_account(self.request, self.announced.organization, form, self.announced.command.email)
        # Nobody waits for a lock while it is hashed.
        self.request.commit()
        try:
            return command, self.request.services.passwords.hash(form.one("password"))
        except Busy as problem:
            raise held_back(problem, password=False) from None

    def _go_on(self, pending: PendingAuthorization | None, subject: Subject) -> Response:
        if pending is None:
            return sign_in_anew(self.request, target=HOME, login_name=subject.login_name)
        # The password was typed in this very sign-in, and this very browser.
        sign_ins = self.request.services.sign_ins
        sign_ins.done(sign_ins.prove(pending, subject, (BY_PASSWORD,)), _CREATE)
        return self.redirect(f"/login/{pending.id}/registered")
