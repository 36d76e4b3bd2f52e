"""Ceremonies: pages that request a passkey from the browser (WebAuthn Level 3 §7)."""

import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from identity.api.crypto import decode_base64url, encode_base64url
from identity.api.entities import NotFound, Subject
from identity.api.pages import Form, FormPage, FormRedisplay, gettext_lazy
from identity.api.plugins import cached_property
from identity.api.sign_in import Enrolment, SignInPage
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.passkey import Passkey
from identity.plugins.passkeys.relying_party import PasskeyRelyingParty
from identity.plugins.passkeys.verification import SignCountRegressed, VerificationFailed, verify_authentication

log = logging.getLogger(__name__)

#: Lifetime of a challenge, and its length in bytes.
CHALLENGE_LIFETIME, _CHALLENGE_LENGTH = timedelta(minutes=5), 32

RESPONSE_FIELD, _FORM_TOKEN_FIELD = "answer", "ticket"

NEEDS_SCRIPT = gettext_lazy(
    "Your device did not respond. Passkeys need JavaScript: allow it here, or use another method."
)
REFUSED_MESSAGE = gettext_lazy("This passkey was not accepted. Try again, or use another method.")
CLONED_MESSAGE = gettext_lazy(
    "This passkey was not accepted: a copy of it seems to exist. Use another method, then remove it from your account."
)


@dataclass(frozen=True, slots=True)
class CeremonyRequest:
    """The form's data for the script: the method of navigator.credentials, its options, and the ticket that identifies
    the challenge."""

    method: str
    options: str
    form_token: str
    is_conditional: bool = False


def new_challenge(page: SignInPage, purpose: str, **content: str) -> tuple[bytes, str]:
    """A challenge, and the single-use ticket that returns it with ``content``."""
    challenge = secrets.token_bytes(_CHALLENGE_LENGTH)
    content = {"challenge": encode_base64url(challenge), **content}
    return challenge, page.request.services.form_tokens.issue(
        _form_token_binding(page, purpose), content, CHALLENGE_LIFETIME
    )


def ceremony_request(
    method: str, options: Mapping[str, object], ticket: str, *, autofill: bool = False
) -> CeremonyRequest:
    return CeremonyRequest(method, json.dumps(options), ticket, autofill)


def read_ceremony_response(page: SignInPage, form: Form, purpose: str) -> tuple[str, bytes, Mapping[str, Any]]:
    """The browser's response, its challenge, and the content stored with the challenge. Raises FormRedisplay if there
    is no response, or the challenge is used, expired, or belongs to another page, sign-in or user."""
    answer = form.text(RESPONSE_FIELD)
    if not answer:
        raise FormRedisplay(NEEDS_SCRIPT)
    content = page.request.services.form_tokens.redeem(_form_token_binding(page, purpose), form.text(_FORM_TOKEN_FIELD))
    if content is None:
        raise FormRedisplay(FormPage.EXPIRED_FORM_MESSAGE)
    return answer, decode_base64url(content["challenge"]), content


def _form_token_binding(page: SignInPage, purpose: str) -> str:
    return f"passkey {page.pending_authorization.id} {purpose}"


class AssertionAttempt:
    """An attempt to prove a passkey; verify it after the attempt is counted."""

    def __init__(self, page: SignInPage, answer: str, challenge: bytes, *, key: str, alone: bool) -> None:
        self._page = page
        self._answer, self._challenge = answer, challenge
        self._key = key
        self._alone = alone
        self._copied = False

    @cached_property
    def enrolment(self) -> Enrolment | None:
        """The passkey's enrolment, of any user. A lookup before the attempt is counted remains valid: the enrolment is
        changed only if it is still the same."""
        found: Enrolment | None = self._page.request.services.factors.find_by_key(PasskeyFactor.name, self._key)
        return found

    def verify(self, person: Subject) -> tuple[str, ...] | None:
        """The authentication methods (RFC 8176) that the passkey proves; None if it fails. Raises Conflict."""
        services, enrolment = self._page.request.services, self.enrolment
        if enrolment is None or enrolment.user_id != person.user.id:
            return None
        party: PasskeyRelyingParty = self._page.request.registry.passkeys
        try:
            after, methods = verify_authentication(
                self._answer, party, self._challenge, Passkey.from_json(enrolment.value), is_passwordless=self._alone
            )
        except VerificationFailed as problem:
            log.info("a passkey was refused: %s", problem)
            if isinstance(problem, SignCountRegressed):
                self._copied = True
                services.factors.record_suspected_clone(person, enrolment)
            return None
        try:
            services.factors.update_after_use(enrolment, after.to_json())
        except NotFound:
            return None
        return methods

    def error_message(self) -> FormRedisplay:
        """The message for a failed attempt. The record of a cloned passkey is committed."""
        return FormRedisplay(CLONED_MESSAGE, keep_changes=True) if self._copied else FormRedisplay(REFUSED_MESSAGE)
