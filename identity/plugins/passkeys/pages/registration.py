"""Passkey registration."""

import secrets
from collections.abc import Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.api.crypto import decode_base64url, encode_base64url
from identity.api.pages import Form, FormRedisplay, gettext_lazy
from identity.api.sign_in import EnrolPage, Factor
from identity.plugins.passkeys.default_names import suggest_name
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.pages.ceremony import ceremony_request, log, new_challenge, read_ceremony_response
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import PasskeyRelyingParty
from identity.plugins.passkeys.verification import AuthenticatorNotAllowed, VerificationFailed, verify_registration

_USER_HANDLE_LENGTH = 32
_USER_HANDLE_KEY = "user_handle"


class RegisterPasskeyPage(EnrolPage):
    """On this device, in a password manager, or on a security key: the browser offers the choice."""

    template = "passkeys/registration.html"
    factor: ClassVar[type[Factor]] = PasskeyFactor

    def template_variables(self) -> Mapping[str, object]:
        present = [Passkey.from_json(enrolment.value) for enrolment in self.enrolments]
        handle = present[0].user_handle if present else secrets.token_bytes(_USER_HANDLE_LENGTH)
        challenge, ticket = new_challenge(self, self._purpose, **{_USER_HANDLE_KEY: encode_base64url(handle)})
        name = self.organization_label(self.human_user.organization)
        options = self._relying_party.creation_options(challenge, self.human_user, handle, present, name=name)
        return {"asked": ceremony_request("create", options, ticket)}

    def submit(self, form: Form) -> Response:
        answer, challenge, content = read_ceremony_response(self, form, self._purpose)
        try:
            passkey = verify_registration(
                answer, self._relying_party, challenge, decode_base64url(content[_USER_HANDLE_KEY])
            )
        except AuthenticatorNotAllowed as problem:
            log.info("a passkey was not added: %s", problem)
            organization = self.organization_label(self.human_user.organization)
            raise FormRedisplay(
                gettext_lazy(
                    "{organization} allows only certain security keys, and this is not one of them.",
                    organization=organization,
                )
            ) from None
        except VerificationFailed as problem:
            log.info("a passkey was not added: %s", problem)
            raise FormRedisplay(gettext_lazy("This passkey could not be added. Try again.")) from None
        self._relying_party.store_rp_id(self.request.services)
        existing_names = {enrolment.name for enrolment in self.enrolments}
        name = suggest_name(passkey, self.request.browser_state.user_agent, self.translator, existing_names)
        methods = passkey.authentication_methods(user_verified=passkey.user_verified)
        return self.enrol(passkey.to_json(), methods, name=name, key=passkey.id_text)

    @property
    def _relying_party(self) -> PasskeyRelyingParty:
        party: PasskeyRelyingParty = self.request.registry.passkeys
        return party

    @property
    def _purpose(self) -> str:
        return f"add {self.human_user.user.id}"
