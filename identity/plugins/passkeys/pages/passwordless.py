"""Passwordless sign-in: the passkey identifies its user."""

import json
from collections.abc import Mapping

from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.entities import HumanUser, Subject
from identity.api.pages import Form, FormRedisplay, gettext_lazy
from identity.api.sign_in import SignInPage, allowed_factors
from identity.plugins.passkeys.factor import PasskeyFactor
from identity.plugins.passkeys.pages.ceremony import (
    AssertionAttempt,
    CeremonyRequest,
    ceremony_request,
    new_challenge,
    read_ceremony_response,
)
from identity.plugins.passkeys.verification import credential_id

_CEREMONY_PURPOSE = "alone"


def passwordless_ceremony(page: SignInPage) -> CeremonyRequest:
    """Requests any passkey with user verification, on any page of the sign-in."""
    challenge, ticket = new_challenge(page, _CEREMONY_PURPOSE)
    options = page.request.registry.passkeys.request_options(challenge, verification="required")
    return ceremony_request("get", options, ticket, autofill=True)


class PasswordlessSignInPage(SignInPage):
    """Handles the button of the first pages. Responds alike to an invalid passkey, an unknown one, and one whose
    account may not sign in; but the page with an unknown one has a signal for the script, since password managers would
    offer it for ever. Ids of passkeys cannot be guessed."""

    template = "passkeys/passwordless.html"
    #: The id of a passkey that no account has: the script tells the password manager.
    _unknown_credential_id = ""

    def template_variables(self) -> Mapping[str, object]:
        unknown = {"rpId": self.request.registry.passkeys.rp_id, "credentialId": self._unknown_credential_id}
        return {
            "asked": passwordless_ceremony(self),
            "unknown": json.dumps(unknown) if self._unknown_credential_id else "",
        }

    def submit(self, form: Form) -> Response:
        answer, challenge, _ = read_ceremony_response(self, form, _CEREMONY_PURPOSE)
        attempt = AssertionAttempt(self, answer, challenge, key=credential_id(answer), alone=True)
        person = self._find_subject(attempt)
        methods = self.attempt_factor(PasskeyFactor.name, person, lambda: person and attempt.verify(person))
        if person is None or methods is None:
            if attempt.enrolment is None:
                self._unknown_credential_id = credential_id(answer)
            raise attempt.error_message()
        self.require_organization(person)
        self._require_passwordless_allowed(person)
        self.request.services.sign_ins.add_proof(self.pending_authorization, person, methods, factor=PasskeyFactor.name)
        return self.redirect_to_next()

    def _find_subject(self, attempt: AssertionAttempt) -> Subject | None:
        enrolment = attempt.enrolment
        if enrolment is None:
            return None
        with self.request.services.read_session() as storage:
            subject: Subject | None = storage.users.find_subject(enrolment.user_id)
        return subject if subject is not None and subject.is_active and isinstance(subject.user, HumanUser) else None

    def _require_passwordless_allowed(self, person: Subject) -> None:
        """Raise FormRedisplay if the policy forbids passwordless sign-in; call it only after the user is
        authenticated."""
        policy = self.request.services.policies.subject_policy(person)
        if PasskeyFactor.name in allowed_factors(request_context(self.request), policy):
            return
        message = gettext_lazy(
            "{organization} does not allow signing in with a passkey.",
            organization=self.organization_label(person.organization),
        )
        raise FormRedisplay(message, link=(self.base_path, gettext_lazy("Use another method.")), keep_changes=True)
