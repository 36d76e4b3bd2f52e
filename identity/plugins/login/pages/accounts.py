"""Step 3: the chooser."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyramid.response import Response

from identity.domain.sessions import SignedIn
from identity.domain.users import HumanUser
from identity.domain.words import say
from identity.pages.forms import Form
from identity.pages.frame import initials
from identity.pages.page import Again
from identity.pages.sign_in_page import SignInPage
from identity.provider.interaction import is_named

#: The value of the button for an account that is not in the list.
NEW = "new"


@dataclass(frozen=True)
class Row:
    """An account to choose; ``reference`` authorises nothing without the browser's cookies."""

    reference: str
    name: str
    initials: str
    login_name: str
    live: bool
    fits: bool


class Accounts(SignInPage):
    """The accounts of this browser, signed out ones too."""

    template = "login/accounts.html"
    fields = ("session",)

    def show(self) -> Mapping[str, object] | Response:
        """One row an account; the one that the client hints at first. On with the sign-in if there is none."""
        if not self.sign_in.accounts:
            return self.go_on()
        return {"rows": [self._row(account) for account in self._accounts()], "return_line": self.return_line}

    def submit(self, form: Form) -> Response:
        reference = form.one("session")
        chosen = next((one for one in self._accounts() if one.session.id == reference), None)
        if reference != NEW and (chosen is None or not self.sign_in.fits(chosen)):
            raise Again(say("Choose an account."))
        self.request.services.sign_ins.choose(self.pending, chosen)
        return self.go_on()

    def _accounts(self) -> list[SignedIn]:
        """The hinted one first, those that cannot be chosen last."""
        hint = "" if self.sign_in.request is None else self.sign_in.request.login_hint

        def place(one: SignedIn) -> tuple[bool, bool]:
            return not (hint and is_named(one.subject, hint)), not self.sign_in.fits(one)

        return sorted(self.sign_in.accounts, key=place)

    def _row(self, account: SignedIn) -> Row:
        user = account.subject.user
        name = user.display_name if isinstance(user, HumanUser) else user.user_name
        return Row(
            reference=account.session.id,
            name=name,
            initials=initials(name),
            login_name=account.subject.login_name,
            live=self.sign_in.live(account),
            fits=self.sign_in.fits(account),
        )
