"""A passkey as second factor."""

from collections.abc import Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.domain.errors import Invalid
from identity.pages.factor_page import ProvePage
from identity.pages.forms import Form
from identity.plugins.passkeys.factor import Passkeys
from identity.plugins.passkeys.pages.ceremony import ANSWER, REFUSED, Attempt, answered, asked, new_challenge
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.verification import key_of
from identity.provider.factor import Factor


class ProvePasskey(ProvePage):
    """By any passkey that the person has; whether it verifies its user is up to it."""

    template = "passkeys/prove.html"
    factor: ClassVar[type[Factor]] = Passkeys

    def show(self) -> Mapping[str, object]:
        own = [Passkey.of(one.value) for one in self.enrolments]
        challenge, ticket = new_challenge(self, self._purpose)
        options = self.request.registry.passkeys.request_options(challenge, own, verification="preferred")
        return {"asked": asked("get", options, ticket)}

    def submit(self, form: Form) -> Response:
        answer, challenge, _ = answered(self, form, self._purpose)
        person = self.person
        attempt = Attempt(self, answer, challenge, key=key_of(answer), alone=False)
        try:
            return self.prove(lambda: attempt.verify(person), REFUSED, field=ANSWER)
        except Invalid:
            raise attempt.refusal() from None

    @property
    def _purpose(self) -> str:
        return f"prove {self.person.user.id}"
