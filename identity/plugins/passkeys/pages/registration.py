"""Passkey registration."""

import secrets
from collections.abc import Mapping
from typing import ClassVar

from pyramid.response import Response

from identity.api.crypto import decode_base64url, encode_base64url
from identity.api.entities import Conflict
from identity.api.pages import Form, FormRedisplay, gettext_lazy
from identity.api.sign_in import EnrolPage, Factor, FactorPage
from identity.plugins.passkeys.default_names import suggest_name
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.interactions import PasskeyUpgrade
from identity.plugins.passkeys.pages.ceremony import (
    RESPONSE_FIELD,
    CeremonyRequest,
    ceremony_request,
    log,
    new_challenge,
    read_ceremony_response,
)
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import PasskeyRelyingParty
from identity.plugins.passkeys.verification import AuthenticatorNotAllowed, VerificationFailed, verify_registration

_USER_HANDLE_LENGTH = 32
_USER_HANDLE_KEY = "user_handle"


class _RegistrationPage(FactorPage):
    """A page on which the browser creates a passkey."""

    factor: ClassVar[type[Factor]] = PasskeyFactor
    #: True if the user is not asked.
    is_automatic: ClassVar[bool] = False

    def template_variables(self) -> Mapping[str, object]:
        return {"asked": self._ceremony()}

    def _ceremony(self) -> CeremonyRequest:
        present = [Passkey.from_json(enrolment.value) for enrolment in self.enrolments]
        handle = present[0].user_handle if present else secrets.token_bytes(_USER_HANDLE_LENGTH)
        challenge, ticket = new_challenge(self, self._purpose, **{_USER_HANDLE_KEY: encode_base64url(handle)})
        name = self.organization_label(self.human_user.organization)
        options = self._relying_party.creation_options(
            challenge, self.human_user, handle, present, name=name, is_automatic=self.is_automatic
        )
        return ceremony_request("create", options, ticket)

    def _read_passkey(self, form: Form) -> Passkey:
        """The created passkey. Raises FormRedisplay, VerificationFailed, AuthenticatorNotAllowed."""
        answer, challenge, content = read_ceremony_response(self, form, self._purpose)
        handle = decode_base64url(content[_USER_HANDLE_KEY])
        return verify_registration(answer, self._relying_party, challenge, handle, is_automatic=self.is_automatic)

    def _suggest_name(self, passkey: Passkey) -> str:
        existing_names = {enrolment.name for enrolment in self.enrolments}
        return suggest_name(passkey, self.request.browser_state.user_agent, self.translator, existing_names)

    @property
    def _relying_party(self) -> PasskeyRelyingParty:
        party: PasskeyRelyingParty = self.request.registry.passkeys
        return party

    @property
    def _purpose(self) -> str:
        return f"{'save' if self.is_automatic else 'add'} {self.human_user.user.id}"


class RegisterPasskeyPage(_RegistrationPage, EnrolPage):
    """On this device, in a password manager, or on a security key: the browser offers the choice."""

    template = "passkeys/registration.html"

    def submit(self, form: Form) -> Response:
        try:
            passkey = self._read_passkey(form)
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
        methods = passkey.authentication_methods(user_verified=passkey.user_verified)
        return self.enrol(passkey.to_json(), methods, name=self._suggest_name(passkey), key=passkey.id_text)


class UpgradeToPasskeyPage(_RegistrationPage):
    """After a sign-in with a password, the browser may save a passkey without a question (conditional creation,
    WebAuthn Level 3 §5.1.3). The sign-in continues in any case, and the new passkey proves nothing in it."""

    template = "passkeys/upgrade.html"
    interaction = PasskeyUpgrade.name
    is_automatic = True

    def submit(self, form: Form) -> Response:
        if form.text(RESPONSE_FIELD):
            try:
                self._store(self._read_passkey(form))
            except (VerificationFailed, FormRedisplay, Conflict) as problem:
                log.info("no passkey was saved after a sign-in with a password: %s", problem)
        self.request.services.sign_ins.complete_interaction(self.pending_authorization, self.interaction)
        return self.redirect_to_next()

    def _store(self, passkey: Passkey) -> None:
        services = self.request.services
        services.factors.enrol(
            self.human_user,
            self.factor.name,
            passkey.to_json(),
            name=self._suggest_name(passkey),
            key=passkey.id_text,
        )
        self._relying_party.store_rp_id(services)
