"""Policy preview: what a person would have to do who signs in, also under rules that are typed and not saved."""

from collections.abc import Iterator, Mapping, Sequence

from identity.domain.errors import Invalid
from identity.domain.policies import Policy
from identity.domain.policy_effects import effect_of
from identity.domain.users import HumanUser
from identity.domain.words import say
from identity.http import targets
from identity.http.endpoints import context_of
from identity.http.token_previews import APPLICATION, USER, find_application, find_user
from identity.pages.forms import Form
from identity.plugins.console.console_page import CONSOLE, Trail
from identity.plugins.console.pages.policies import TITLE, change_of
from identity.plugins.console.pages.token_preview import APPLICATION_QUERY, USER_QUERY, TokenPreviewPage
from identity.plugins.console.places import Place
from identity.plugins.console.rule_fields import rule_fields
from identity.plugins.console.sections import FactList, Facts
from identity.provider.sign_in_preview import Foreseen, foresee

_RULES = tuple(one.name for one in rule_fields())


class PolicyPreviewPage(TokenPreviewPage):
    """A form that asks who, and the answer below it."""

    template = "console/policy_preview.html"
    section = "policy"
    title = say("What would they have to do?")
    fields = (USER, USER_QUERY, APPLICATION, APPLICATION_QUERY)

    @property
    def trail(self) -> Trail:
        return [(TITLE, f"{CONSOLE}/organizations/{self.context.value.id}/policy")]

    def show(self) -> Mapping[str, object]:
        """The answer, if somebody is asked about; in any case whom to choose from."""
        unsaved = self._unsaved()
        self._suppose(unsaved)
        asked = self.asked()
        asks = USER in self.request.GET and (USER in asked or not asked.keys() & {USER_QUERY, APPLICATION_QUERY})
        told = self._foreseen(asked) if asks else None
        return {
            "unsaved": unsaved,
            "users": self._users(asked),
            "applications": self._applications(asked),
            "sections_of": [] if told is None else [FactList("steps", self.title, facts=list(self._facts(told)))],
            "said": self.said,
        }

    def _unsaved(self) -> Sequence[tuple[str, str]]:
        """The rules that came along, as a form had them."""
        return [(name, value) for name, value in self.request.GET.items() if name in _RULES and value]

    def _suppose(self, unsaved: Sequence[tuple[str, str]]) -> None:
        if not unsaved or not self.may("organization_policy.write"):
            return
        several = frozenset(one.name for one in rule_fields() if one.several)
        typed: dict[str, str | tuple[str, ...]] = {}
        for name, value in unsaved:
            typed[name] = (*typed.get(name, ()), value) if name in several else value
        organization_id = self.context.value.id
        try:
            command = change_of(Form(typed))
            policy: Policy = self.services.policies.amended(organization_id, command)
        except Invalid as refused:
            self.problems.update({USER: next(iter(refused.fields.values()))})
            return
        self.services.policies.suppose(organization_id, policy)

    def _foreseen(self, asked: Mapping[str, str]) -> Foreseen | None:
        """None if somebody or something asked for cannot be."""
        context = context_of(self.request)
        subject = find_user(context, self.principal, asked.get(USER, ""))
        client = find_application(context, self.principal, asked.get(APPLICATION, ""))
        if subject is None or not isinstance(subject.user, HumanUser):
            self.problems[USER] = say("Choose a person.")
        if asked.get(APPLICATION) and client is None:
            self.problems[APPLICATION] = say("There is no such application.")
        if self.problems or subject is None:
            return None
        return foresee(subject, client, context)

    def _facts(self, told: Foreseen) -> Iterator[tuple[str, object]]:
        yield say("Signs in by"), self._ways(told.ways) or say("Nothing: this policy lets them in by no way they have")
        if told.need is None:
            yield say("Second factor"), say("Is not asked for")
        elif told.stuck:
            yield say("Second factor"), say("Is required, and there is none that they could set up")
        elif told.need.by:
            yield say("Second factor"), self.words.t(say("Is asked for: {ways}", ways=self._ways(told.need.by)))
        else:
            yield say("Second factor"), self.words.t(say("Has to set up: {ways}", ways=self._ways(told.need.to_enrol)))
        if told.new_password:
            yield say("Password"), say("Has to choose a new one")
        yield from self._of_policy(told.policy)
        if told.refusal is not None:
            yield say("Application"), self.words.t(say("Gets an error: {reason}", reason=told.refusal.description))
        elif told.agrees is not None:
            yield say("Consent"), say("Is asked to agree") if told.agrees else say("Is not asked")

    def _ways(self, names: Sequence[str]) -> str:
        ways = self.services.choices.ways
        return ", ".join(self.said(ways.get(one, one)) for one in names)

    def _of_policy(self, policy: Policy) -> Facts:
        shown = (
            ("remember_browser", say("Remember browsers for")),
            ("session_idle_age", say("End unused sessions after")),
            ("session_max_age", say("End all sessions after")),
            ("single_session", say("Browsers at a time")),
        )
        facts = [(label, effect_of(name, getattr(policy, name))) for name, label in shown]
        is_open = self.services.registration.is_open(self.context.value)
        registers = effect_of("registration", policy.registration) if is_open else say("Nobody can register now")
        return [*facts, (say("Registration"), registers)]


PLACES = (Place("/organizations/{organization}/policy/preview", PolicyPreviewPage, "user.read", targets.organization),)
