"""A new passkey."""

import secrets
from collections.abc import Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.crypto import base64url
from identity.domain.words import say
from identity.pages.factor_page import EnrolPage
from identity.pages.forms import Form
from identity.pages.page import Again
from identity.plugins.passkeys.factor import Passkeys
from identity.plugins.passkeys.names import name_of
from identity.plugins.passkeys.pages.ceremony import answered, asked, log, new_challenge
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import RelyingParty
from identity.plugins.passkeys.verification import NotProven, WrongAuthenticator, added
from identity.provider.factor import Factor

_HANDLE_LENGTH = 32
_HANDLE = "user_handle"


class AddPasskey(EnrolPage):
    """On this device, in a password manager, or on a security key: the browser lets the person choose."""

    template = "passkeys/add.html"
    factor: ClassVar[type[Factor]] = Passkeys

    def show(self) -> Mapping[str, object]:
        present = self._present
        handle = present[0].user_handle if present else secrets.token_bytes(_HANDLE_LENGTH)
        challenge, ticket = new_challenge(self, self._purpose, **{_HANDLE: base64url.encode(handle)})
        name = self.name_of(self.person.organization)
        options = self._party.creation_options(challenge, self.person, handle, present, name=name)
        return {"asked": asked("create", options, ticket)}

    def submit(self, form: Form) -> Response:
        answer, challenge, content = answered(self, form, self._purpose)
        try:
            passkey = added(answer, self._party, challenge, base64url.decode(content[_HANDLE]))
        except WrongAuthenticator as problem:
            log.info("a passkey was not added: %s", problem)
            organization = self.name_of(self.person.organization)
            raise Again(
                say(
                    "{organization} lets people use certain security keys alone, and this is none.",
                    organization=organization,
                )
            ) from None
        except NotProven as problem:
            log.info("a passkey was not added: %s", problem)
            raise Again(say("This passkey could not be added. Try again.")) from None
        self._party.keep(self.request.services)
        taken = {one.name for one in self.enrolments}
        name = name_of(passkey, self.request.browser.user_agent, self.words, taken)
        methods = passkey.methods(user_verified=passkey.user_verified)
        return self.enrol(passkey.stored(), methods, name=name, key=passkey.key)

    @property
    def _present(self) -> list[Passkey]:
        return [Passkey.of(one.value) for one in self.enrolments]

    @property
    def _party(self) -> RelyingParty:
        party: RelyingParty = self.request.registry.passkeys
        return party

    @property
    def _purpose(self) -> str:
        return f"add {self.person.user.id}"
