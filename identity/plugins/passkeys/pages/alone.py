"""A passkey in place of login name and password: it says itself whose it is."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.hashing import Busy
from identity.http.endpoints import context_of
from identity.http.sign_ins import try_factor
from identity.pages.forms import Form
from identity.pages.held_back import held_back
from identity.pages.page import Again
from identity.pages.sign_in_page import SignInPage
from identity.plugins.passkeys.factor import Passkeys
from identity.plugins.passkeys.pages.ceremony import Asked, Attempt, answered, asked, new_challenge
from identity.plugins.passkeys.verification import key_of
from identity.provider.assurance import offered
from identity.services.attempts import TooManyAttempts

_PURPOSE = "alone"


def asked_alone(page: SignInPage) -> Asked:
    """What the form asks for, on whichever page of the sign-in it stands: any passkey that verifies its user."""
    challenge, ticket = new_challenge(page, _PURPOSE)
    options = page.request.registry.passkeys.request_options(challenge, verification="required")
    return asked("get", options, ticket, autofill=True)


class SignInAlone(SignInPage):
    """Where the button of the first pages leads. The answer is the same for a passkey that is wrong, one that nobody
    has, and one whose account may not sign in."""

    template = "passkeys/alone.html"

    def show(self) -> Mapping[str, object]:
        return {"asked": asked_alone(self)}

    def submit(self, form: Form) -> Response:
        answer, challenge, _ = answered(self, form, _PURPOSE)
        attempt = Attempt(self, answer, challenge, key=key_of(answer), alone=True)
        person = self._person(attempt)
        try:
            methods = try_factor(self.request, Passkeys.name, person, lambda: person and attempt.verify(person))
        except (TooManyAttempts, Busy) as problem:
            raise held_back(problem, password=False) from None
        if person is None or methods is None:
            raise attempt.refusal()
        self.require_organization(person)
        self._require_policy(person)
        self.request.services.sign_ins.prove(self.pending, person, methods, factor=Passkeys.name)
        return self.go_on()

    def _person(self, attempt: Attempt) -> Subject | None:
        enrolment = attempt.enrolment
        if enrolment is None:
            return None
        with self.request.services.look() as storage:
            found: Subject | None = storage.users.find_subject(enrolment.user_id)
        return found if found is not None and found.active and isinstance(found.user, HumanUser) else None

    def _require_policy(self, person: Subject) -> None:
        """Raise Again if the person may not sign in so; told only to whoever has proved to be it."""
        policy = self.request.services.policies.of_subject(person)
        if any(one.name == Passkeys.name for one in offered(context_of(self.request), policy)):
            return
        message = say(
            "{organization} does not let people sign in with a passkey.",
            organization=self.name_of(person.organization),
        )
        raise Again(message, link=(self.root, say("Use another way.")), keep_changes=True)
