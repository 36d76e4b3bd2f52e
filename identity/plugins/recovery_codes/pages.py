"""The pages that prove a recovery code and generate new ones."""

import base64
from collections.abc import Mapping

from pyramid.response import Response

from identity.api.crypto import PasswordHasher
from identity.api.entities import Invalid
from identity.api.pages import Form, gettext_lazy
from identity.api.sign_in import EnrolPage, FactorPage, ProvePage
from identity.plugins.recovery_codes.factor import (
    RecoveryCodesFactor,
    code_prefix,
    generate_codes,
    normalize_code,
    remove_code,
)

_MISSING = gettext_lazy("Enter one of your recovery codes.")
_WRONG = gettext_lazy("This is not one of your recovery codes, or it has already been used.")


class _RecoveryCodesPage(FactorPage):
    factor = RecoveryCodesFactor

    @property
    def password_hasher(self) -> PasswordHasher:
        hasher: PasswordHasher = self.request.registry.application.process_state.hasher
        return hasher


class ProveRecoveryCodePage(_RecoveryCodesPage, ProvePage):
    """Accepts each code once."""

    template = "recovery_codes/prove.html"
    fields = ("code", "remember")
    secret_fields = frozenset({"code"})

    def submit(self, form: Form) -> Response:
        code = form.text("code")
        if not normalize_code(code):
            raise Invalid({"code": _MISSING})
        return self.prove(lambda: self._redeem_code(code), _WRONG)

    def _redeem_code(self, code: str) -> tuple[str, ...] | None:
        (enrolment, *_) = (*self.enrolments, None)
        stored = None if enrolment is None else enrolment.value["codes"].get(code_prefix(code))
        # The same work whether or not the code exists.
        if not self.password_hasher.verify(stored, normalize_code(code)).is_match or enrolment is None:
            return None
        left = remove_code(enrolment.value, code)
        factors = self.request.services.factors
        used = factors.update_after_use(enrolment, left)
        factors.record_backup_code_used(used, self.human_user, len(left["codes"]))
        return RecoveryCodesFactor.methods


class EnrolRecoveryCodesPage(_RecoveryCodesPage, EnrolPage):
    """Generates ten codes and shows them once. Earlier codes become invalid."""

    template = "recovery_codes/enrol.html"

    def template_variables(self) -> Mapping[str, object]:
        """Whether earlier codes become invalid."""
        return {"renewing": bool(self.enrolments)}

    def submit(self, form: Form) -> Response:
        codes = generate_codes()
        with self.rate_limited():
            hashes = {code_prefix(code): self.password_hasher.hash(normalize_code(code)) for code in codes}
        self.store_enrolment({"codes": hashes}, replacing=True)
        # Generating codes proves nothing.
        self.complete_sign_in_step(())
        host = self.request.registry.application.settings.login_url
        text = "\n".join((host, self.human_user.login_name, "", *codes, ""))
        variables = {
            "codes": codes,
            "file": "data:text/plain;charset=utf-8;base64," + base64.b64encode(text.encode()).decode(),
            "go_on_at": self.context.resume_path,
        }
        return self.render(variables, template="recovery_codes/new_codes.html")
