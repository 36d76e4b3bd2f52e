"""A passkey as a second factor."""

from collections.abc import Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.api.entities import Invalid
from identity.api.pages import Form
from identity.api.sign_in import Factor, ProvePage
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.pages.ceremony import (
    REFUSED_MESSAGE,
    RESPONSE_FIELD,
    AssertionAttempt,
    ceremony_request,
    new_challenge,
    read_ceremony_response,
)
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.verification import credential_id


class ProvePasskeyPage(ProvePage):
    """Accepts any passkey of the user, with or without user verification."""

    template = "passkeys/second_factor.html"
    factor: ClassVar[type[Factor]] = PasskeyFactor

    def template_variables(self) -> Mapping[str, object]:
        passkeys = [Passkey.from_json(enrolment.value) for enrolment in self.enrolments]
        challenge, ticket = new_challenge(self, self._purpose)
        options = self.request.registry.passkeys.request_options(challenge, passkeys, verification="preferred")
        return {"asked": ceremony_request("get", options, ticket)}

    def submit(self, form: Form) -> Response:
        answer, challenge, _ = read_ceremony_response(self, form, self._purpose)
        person = self.human_user
        attempt = AssertionAttempt(self, answer, challenge, key=credential_id(answer), alone=False)
        try:
            return self.prove(lambda: attempt.verify(person), REFUSED_MESSAGE, field=RESPONSE_FIELD)
        except Invalid:
            raise attempt.error_message() from None

    @property
    def _purpose(self) -> str:
        return f"prove {self.human_user.user.id}"
