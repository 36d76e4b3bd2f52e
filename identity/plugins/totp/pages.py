"""The pages that prove and enrol an authenticator app."""

from collections.abc import Mapping
from typing import ClassVar

from markupsafe import Markup
from pyramid.response import Response

from identity.api.entities import Invalid, display_name_error
from identity.api.pages import Form, gettext_lazy
from identity.api.services import RecordNamespace, RecordService
from identity.api.sign_in import EnrolPage, ProvePage
from identity.plugins.totp.factor import TotpFactor, new_secret, otpauth_uri, verify_code

_DRAFT_RECORD_KIND = "draft"
#: Letters per group of the secret shown for typing.
_GROUP_SIZE = 4

_MISSING = gettext_lazy("Enter the six digits that your app shows.")
_WRONG = gettext_lazy("This code is wrong or has already been used. Enter the one that your app shows now.")


class ProveTotpPage(ProvePage):
    """Accepts a code of any enrolled app, once."""

    template = "totp/prove.html"
    factor = TotpFactor
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def template_variables(self) -> Mapping[str, object]:
        """The names under which the apps show the code."""
        return {"issuer": self.organization_label(self.human_user.organization)}

    def submit(self, form: Form) -> Response:
        code = form.text("code")
        if not code.strip():
            raise Invalid({"code": _MISSING})
        return self.prove(lambda: self._verify_code(code), _WRONG)

    def _verify_code(self, code: str) -> tuple[str, ...] | None:
        services = self.request.services
        for enrolment in self.enrolments:
            step = verify_code(enrolment.value["secret"], code, services.now, last_used_step=enrolment.value["step"])
            if step is not None:
                services.factors.update_after_use(enrolment, {**enrolment.value, "step": step})
                return TotpFactor.methods
        return None


class EnrolTotpPage(EnrolPage):
    """The secret is created when the page is first shown, and shown until the first valid code."""

    template = "totp/enrol.html"
    factor = TotpFactor
    fields = ("code", "name")
    secret_fields = frozenset({"code"})
    writes_on_get = True
    #: The unconfirmed secrets.
    record_namespace: ClassVar[RecordNamespace]

    def initial_values(self) -> Mapping[str, str]:
        return {"name": str(self.translator.gettext(TotpFactor.label))}

    def template_variables(self) -> Mapping[str, object]:
        """The secret as a QR code, as text, and as a link for the device that shows the page."""
        secret = self._draft_secret
        address = otpauth_uri(secret, self.human_user.login_name, self.organization_label(self.human_user.organization))
        import segno

        picture = segno.make_qr(address, error="l").svg_inline(
            omitsize=True, light="#fff", svgclass=None, lineclass=None
        )
        groups = [secret[at : at + _GROUP_SIZE] for at in range(0, len(secret), _GROUP_SIZE)]
        # Rendered by segno from a URI of ours.
        return {"picture": Markup(picture), "secret": " ".join(groups), "address": address}  # noqa: S704

    def submit(self, form: Form) -> Response:
        code, name = form.text("code"), form.text("name").strip()
        problems: dict[str, str] = {} if code.strip() else {"code": _MISSING}
        name_wrong = display_name_error(name)
        if name_wrong is not None:
            problems["name"] = name_wrong
        if problems:
            raise Invalid(problems)
        secret = self._draft_secret
        step = verify_code(secret, code, self.request.services.now)
        if step is None:
            raise Invalid({"code": _WRONG})
        self._draft_records.delete(_DRAFT_RECORD_KIND, self._draft_key)
        # If two windows submit, one stores the secret.
        return self.enrol({"secret": secret, "step": step}, TotpFactor.methods, name=name, key=secret)

    @property
    def _draft_records(self) -> RecordService:
        record_service: RecordService = self.request.services.record_service(self.record_namespace)
        return record_service

    @property
    def _draft_key(self) -> str:
        """One key per sign-in and user: another user of the same sign-in gets another secret."""
        return f"{self.pending_authorization.id}\n{self.human_user.user.id}"

    @property
    def _draft_secret(self) -> str:
        record = self._draft_records.find(_DRAFT_RECORD_KIND, self._draft_key)
        if record is None:
            draft = {"secret": new_secret()}
            ends_at, user_id = self.pending_authorization.expires_at, self.human_user.user.id
            stored = self._draft_records.add(
                _DRAFT_RECORD_KIND, self._draft_key, draft, user_id=user_id, expires_at=ends_at, seal=True
            )
            return draft["secret"] if stored is None else str(stored.value["secret"])
        return str(record.value["secret"])
