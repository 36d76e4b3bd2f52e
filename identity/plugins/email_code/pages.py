"""The page that asks for a code that was mailed, and the one that has such codes asked for from now on."""

from collections.abc import Mapping
from datetime import timedelta
from secrets import randbelow
from typing import ClassVar

from pyramid.response import Response

from identity.crypto.secrets import same
from identity.domain.errors import Invalid
from identity.domain.records import NameSpace
from identity.domain.words import say
from identity.pages.factor_page import EnrolPage, FactorPage, ProvePage
from identity.pages.forms import Form
from identity.pages.mails import mail_code
from identity.pages.page import Again
from identity.plugins.email_code.factor import EmailCode, masked, proved_address
from identity.services.records import Records

LIFETIME = timedelta(minutes=10)
_CODE, _DIGITS = "code", 6
#: The button that has another one sent, and what the page's address then says.
_AGAIN, _SENT = "again", "sent"

_MISSING = say("Enter the six digits that we have sent to you.")
_WRONG = say("This code is wrong or too old. Look into the last mail, or have another code sent.")
_LIMIT = say("We have sent several codes to this address already. Use the last one, or try again in an hour.")


class Mailed(FactorPage):
    """A code is sent once when the page is shown, as its person expects who has just given a password, and then when
    they ask for it. It is good for this sign-in, and so for this browser, alone; the last one counts."""

    factor = EmailCode
    writes_when_shown = True
    #: Where codes lie until they are used.
    name_space: ClassVar[NameSpace]

    def get(self) -> Response:
        """The page, with a code on its way; another page where none can be sent."""
        if self._is_good():
            if not self.reachable:
                return self.draw({}, template="email_code/unreachable.html")
            self._send_first()
        return super().get()

    @property
    def reachable(self) -> bool:
        """True if mail can be sent, and there is a proved address."""
        return EmailCode().possible(self.person, self.request.services)

    def show(self) -> Mapping[str, object]:
        """Where the code went."""
        found = self._codes.find(_CODE, self._key)
        return {
            "address": masked(self._mailbox),
            "sent": found is not None,
            "sent_again": _SENT in self.request.GET and found is not None,
            "minutes": LIFETIME // timedelta(minutes=1),
        }

    def submit(self, form: Form) -> Response:
        if _AGAIN in form:
            self._send_another()
            return self.redirect(f"{self.request.path}?{_SENT}=again")
        code = "".join(form.one("code").split())
        if not code:
            raise Invalid({"code": _MISSING})
        return self.answer(code)

    def answer(self, code: str) -> Response:
        """What follows if this is the code. Raises Invalid, Again."""
        raise NotImplementedError

    def verified(self, code: str) -> tuple[str, ...] | None:
        """By which methods the code proves it; None if it does not. It is used up."""
        found = self._codes.find(_CODE, self._key)
        if found is None or not same(found.value["code"].encode(), code.encode("utf-8", "surrogatepass")):
            return None
        user = self.request.services.storage.users.find_subject(self.person.user.id)
        address = "" if user is None else proved_address(user, self.request.services)
        if not address or address != found.value["to"]:
            return None
        return EmailCode.methods if self._codes.take(_CODE, self._key) is not None else None

    @property
    def _mailbox(self) -> str:
        return proved_address(self.person, self.request.services)

    @property
    def _codes(self) -> Records:
        found: Records = self.request.services.records(self.name_space)
        return found

    @property
    def _key(self) -> str:
        return f"{self.pending.id}\n{self.person.user.id}"

    def _send_first(self) -> None:
        """Whoever comes back finds that it was sent."""
        code = self._keep()
        if code is not None and not self._mail(code):
            self._codes.drop(_CODE, self._key)

    def _send_another(self) -> None:
        if not self.reachable:
            return
        self._codes.drop(_CODE, self._key)
        code = self._keep()
        if code is None or not self._mail(code):
            raise Again(_LIMIT, status=429)

    def _keep(self) -> str | None:
        """A new code; None if there is one."""
        code = f"{randbelow(10**_DIGITS):0{_DIGITS}}"
        value = {"code": code, "to": self._mailbox}
        ends_at = self.request.services.now + LIFETIME
        user_id = self.person.user.id
        held = self._codes.add(_CODE, self._key, value, user_id=user_id, expires_at=ends_at, seal=True)
        return code if held is None else None

    def _mail(self, code: str) -> bool:
        return bool(self._mailbox) and mail_code(self.request, self.person, code, LIFETIME, language=self.language)


class ProveEmailCode(Mailed, ProvePage):
    """Where the code is asked for in a sign-in."""

    template = "email_code/prove.html"
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def answer(self, code: str) -> Response:
        return self.prove(lambda: self._used(code), _WRONG)

    def _used(self, code: str) -> tuple[str, ...] | None:
        methods = self.verified(code)
        if methods is not None:
            # The way that was used last comes first the next time.
            for one in self.enrolments:
                self.request.services.factors.update(one, one.value)
        return methods


class EnrolEmailCode(Mailed, EnrolPage):
    """Confirmed by one code. Whoever has it already confirms it anew."""

    template = "email_code/enrol.html"
    fields = ("code",)
    secret_fields = frozenset({"code"})

    def answer(self, code: str) -> Response:
        methods = self.tried(lambda: self.verified(code), _WRONG)
        return self.enrol({}, methods, replacing=True)
