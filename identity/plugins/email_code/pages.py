"""The pages that prove and enrol email codes."""

from collections.abc import Mapping
from datetime import timedelta
from secrets import randbelow
from typing import ClassVar

from pyramid.response import Response

from identity.api.crypto import constant_time_equal
from identity.api.entities import Invalid
from identity.api.pages import Form, FormRedisplay, TransactionalMails, gettext_lazy
from identity.api.services import RecordNamespace, RecordService
from identity.api.sign_in import EnrolPage, FactorPage, ProvePage
from identity.plugins.email_code.factor import EmailCodeFactor, mask_email, verified_email

CODE_LIFETIME = timedelta(minutes=10)
_CODE_RECORD_KIND, _CODE_LENGTH = "code", 6
#: The resend button, and the parameter that confirms it.
_RESEND_FIELD, _SENT_PARAM = "again", "sent"

_MISSING = gettext_lazy("Enter the six digits that we have sent to you.")
_WRONG = gettext_lazy("This code is wrong or too old. Check the latest mail, or have another code sent.")
_LIMIT_MESSAGE = gettext_lazy(
    "We have sent several codes to this address already. Use the last one, or try again in an hour."
)


class _EmailCodePage(FactorPage):
    """A code is sent when the page is first shown, and when the user requests another one. It is valid for this
    sign-in, and so this browser, only; the last code counts.
    """

    factor = EmailCodeFactor
    writes_on_get = True
    #: The unused codes.
    record_namespace: ClassVar[RecordNamespace]

    def get(self) -> Response:
        """The page, with a code sent; redirects if none can be sent."""
        if self._accepts_request():
            if not self.can_receive_mail:
                return self.render({}, template="email_code/no_verified_email.html")
            self._send_first_code()
        return super().get()

    @property
    def can_receive_mail(self) -> bool:
        """True if mail is configured and there is a verified address."""
        return EmailCodeFactor().can_enrol(self.human_user, self.request.services)

    def template_variables(self) -> Mapping[str, object]:
        record = self._code_records.find(_CODE_RECORD_KIND, self._key)
        return {
            "address": mask_email(self._verified_email),
            "sent": record is not None,
            "sent_again": _SENT_PARAM in self.request.GET and record is not None,
            "minutes": CODE_LIFETIME // timedelta(minutes=1),
        }

    def submit(self, form: Form) -> Response:
        if _RESEND_FIELD in form:
            self._send_another_code()
            return self.redirect(f"{self.request.path}?{_SENT_PARAM}=again")
        code = "".join(form.text("code").split())
        if not code:
            raise Invalid({"code": _MISSING})
        return self.accept_code(code)

    def accept_code(self, code: str) -> Response:
        """Handle a code after its check. Raises Invalid, FormRedisplay."""
        raise NotImplementedError

    def redeem_code(self, code: str) -> tuple[str, ...] | None:
        """Redeem the code; the authentication methods that it proves, or None if it is wrong."""
        record = self._code_records.find(_CODE_RECORD_KIND, self._key)
        if record is None or not constant_time_equal(
            record.value["code"].encode(), code.encode("utf-8", "surrogatepass")
        ):
            return None
        user = self.request.services.storage.users.find_subject(self.human_user.user.id)
        address = "" if user is None else verified_email(user, self.request.services)
        if not address or address != record.value["to"]:
            return None
        return EmailCodeFactor.methods if self._code_records.consume(_CODE_RECORD_KIND, self._key) is not None else None

    @property
    def _verified_email(self) -> str:
        return verified_email(self.human_user, self.request.services)

    @property
    def _code_records(self) -> RecordService:
        record_service: RecordService = self.request.services.record_service(self.record_namespace)
        return record_service

    @property
    def _key(self) -> str:
        return f"{self.pending_authorization.id}\n{self.human_user.user.id}"

    def _send_first_code(self) -> None:
        """Returning to the page does not send another code."""
        code = self._store_new_code()
        if code is not None and not self._send_code(code):
            self._code_records.delete(_CODE_RECORD_KIND, self._key)

    def _send_another_code(self) -> None:
        if not self.can_receive_mail:
            return
        self._code_records.delete(_CODE_RECORD_KIND, self._key)
        code = self._store_new_code()
        if code is None or not self._send_code(code):
            raise FormRedisplay(_LIMIT_MESSAGE, status=429)

    def _store_new_code(self) -> str | None:
        """A new code; None if there is one."""
        code = f"{randbelow(10**_CODE_LENGTH):0{_CODE_LENGTH}}"
        value = {"code": code, "to": self._verified_email}
        ends_at = self.request.services.now + CODE_LIFETIME
        user_id = self.human_user.user.id
        record = self._code_records.add(
            _CODE_RECORD_KIND, self._key, value, user_id=user_id, expires_at=ends_at, seal=True
        )
        return code if record is None else None

    def _send_code(self, code: str) -> bool:
        return bool(self._verified_email) and TransactionalMails(self.request, self.language).queue_email_code(
            self.human_user, code, CODE_LIFETIME
        )


class ProveEmailCodePage(_EmailCodePage, ProvePage):
    """Asks for the code during a sign-in."""

    template = "email_code/prove.html"
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def accept_code(self, code: str) -> Response:
        return self.prove(lambda: self._redeem_code(code), _WRONG)

    def _redeem_code(self, code: str) -> tuple[str, ...] | None:
        methods = self.redeem_code(code)
        if methods is not None:
            # The last used factor is offered first next time.
            for enrolment in self.enrolments:
                self.request.services.factors.update_after_use(enrolment, enrolment.value)
        return methods


class EnrolEmailCodePage(_EmailCodePage, EnrolPage):
    """Confirmed by one code. An existing enrolment is confirmed again."""

    template = "email_code/enrol.html"
    fields = ("code",)
    secret_fields = frozenset({"code"})

    def accept_code(self, code: str) -> Response:
        methods = self.verify_counted(lambda: self.redeem_code(code), _WRONG)
        return self.enrol({}, methods, replaces_existing=True)
