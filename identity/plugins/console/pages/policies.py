"""Policies of the instance and of organizations: which rules of signing in hold, who set them, and changing them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from pyramid.response import Response

from identity.domain.entity import members
from identity.domain.policies import HeldRule, Policy, Source, looser
from identity.domain.policy_effects import effect_of
from identity.domain.sessions import EndedSessions
from identity.domain.words import say, say_many
from identity.http import targets
from identity.lazily import lazily
from identity.pages.forms import VERSION, Form, Value
from identity.pages.page import Again
from identity.pages.signed_in_page import version_of
from identity.plugins.console.console_form import ConsoleForm
from identity.plugins.console.console_page import CONSOLE, ConsolePage, Trail
from identity.plugins.console.fields import Field
from identity.plugins.console.places import Place
from identity.plugins.console.rule_fields import rule_fields, values_of
from identity.plugins.console.sections import Note, Panel, Section, Table
from identity.services.commands import decode
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE, SetPolicy

_DECLARED = members(Policy)
TITLE = say("Sign-in policy")
#: The button that asks what the rules would mean.
PREVIEW = "preview"
#: What was said of the sessions that end.
CONFIRMED = "confirmed"
_SOURCES = {
    Source.SETTINGS: say("The settings of the service"),
    Source.INSTANCE: say("The instance"),
    Source.ORGANIZATION: say("This organization"),
}


class _PolicyPage(ConsolePage):
    """What the pages about one policy have in common."""

    section = "policy"

    @property
    def owner(self) -> str:
        """INSTANCE, or the id of an organization."""
        return INSTANCE if self.of_instance else str(self.context.value.id)

    @property
    def home_of_policy(self) -> str:
        """Where the pages of the policy lie."""
        return f"{CONSOLE}/instance/policy" if self.of_instance else f"{self.root}/policy"

    def effect(self, name: str, value: Any) -> Markup:
        """What a rule with this value means, in the page's language."""
        if name == "factors":
            return self._names(value)
        if value is None:
            return self.said(say("None are named"))
        if isinstance(value, tuple):
            return escape(", ".join(value)) if value else self.said(say("None"))
        return self.said(effect_of(name, value))

    def _names(self, value: Sequence[str] | None) -> Markup:
        if value is None:
            return self.said(say("All that there are"))
        ways = self.services.choices.ways
        return Markup(", ").join(self.said(ways.get(one, one)) for one in value)


class PolicyPage(_PolicyPage):
    """Each rule as it holds, in words, and where it comes from."""

    template = "console/show.html"
    title = TITLE

    @property
    def writes(self) -> str:
        """The permission to change it."""
        return "instance.write" if self.owner == INSTANCE else "organization_policy.write"

    def show(self) -> Mapping[str, object]:
        rules = self.services.policies.rules(self.owner)
        change = self.link(say("Change"), f"{self.home_of_policy}/edit", what=self.said(TITLE))
        return {
            "lead": [self.said(self._lead())],
            "badges": (),
            "actions": [change] if self.may(self.writes) else [],
            "facts": (),
            "sections_of": [*self._sections(rules), self._set_aside(), self._preview()],
            "said": self.said,
        }

    def _set_aside(self) -> Section | Note | None:
        if self.owner == INSTANCE or not self.services.policies.set_aside(self.owner):
            return None
        return Note(
            say("With the instance's rules, those of this organization leave no way to sign in. The instance's hold.")
        )

    def _preview(self) -> Section | None:
        if self.owner == INSTANCE or not self.may("user.read"):
            return None
        title = say("What would they have to do?")
        lead = say("What a person would have to do who signs in now. Nothing is issued or recorded here.")
        show = self.link(say("Show"), f"{self.home_of_policy}/preview", what=self.said(title))
        return Panel("preview", title, rows=[(say("Choose a person."), lead, show)])

    def _lead(self) -> str:
        if self.owner == INSTANCE:
            return say("What holds for everybody. Organizations can ask for more, never for less.")
        return say(
            "What holds for the people of this organization. It can ask for more than the instance, not for less."
        )

    def _sections(self, rules: Sequence[HeldRule]) -> Iterator[Section]:
        titles = dict.fromkeys(_DECLARED[one.name].declared.section for one in rules)
        for number, title in enumerate(titles):
            of_it = [one for one in rules if _DECLARED[one.name].declared.section == title]
            columns = (say("Rule"), say("What holds"), say("Set by"))
            yield Table(f"rules-{number}", title, columns=columns, rows=[self._row(one) for one in of_it])

    def _row(self, rule: HeldRule) -> Sequence[object]:
        said = _DECLARED[rule.name].declared
        named = self.ui.named(self.said(said.label), "", self.said(said.hint))
        return named, self.effect(rule.name, rule.value), self._source(rule)

    def _source(self, rule: HeldRule) -> Markup:
        source = self.said(_SOURCES[rule.source])
        if rule.set_at is None:
            return source
        who = self._who(rule.set_by)
        by = self.words.t(say("by {name}", name=who)) if who else ""
        return Markup('{}<span class="table__sub">{} {}</span>').format(source, self.ui.when(rule.set_at), by)

    def _who(self, user_id: str | None) -> str:
        found = None if user_id is None else self.services.storage.users.find_subject(user_id)
        if found is None or not self.services.access.sees(self.principal, found.organization.id):
            return ""
        return str(found.user.display_name)


class ChangePolicyPage(_PolicyPage, ConsoleForm):
    """Sets rules, or leaves them to the level above."""

    title = say("Change the sign-in policy")
    template = "console/policy_form.html"
    inputs = rule_fields()

    @property
    def trail(self) -> Trail:
        return [(TITLE, self.home_of_policy)]

    @property
    def back(self) -> str:
        return self.home_of_policy

    @property
    def about(self) -> str:
        return say("What is set here holds from the next sign-in or request on, also for whoever is signed in.")

    #: What is confirmed by saving again; empty where nothing is to be.
    confirms = ""

    @lazily
    def present(self) -> SetPolicy:
        """What is stored."""
        return self.services.policies.set_at(self.owner)

    @lazily
    def above(self) -> Policy:
        """What holds where nothing is set here."""
        return self.services.policies.held_with(self.owner, Policy())

    def allows(self, name: str, value: Any) -> bool:
        """True if the level may set the rule to this."""
        return self.owner == INSTANCE or not looser(self.services.policies.of_instance(), Policy(**{name: value}))

    def inherited(self, name: str) -> Markup:
        """What holds if nothing is set here."""
        return self.effect(name, getattr(self.above, name))

    def ways(self) -> Sequence[Sequence[object]]:
        """The ways to sign in that may be allowed."""
        ways = self.services.choices.ways
        return [(name, self.said(label), "") for name, label in ways.items() if self.allows("factors", (name,))]

    def drawn(self) -> Sequence[Field]:
        return [one if values_of(_DECLARED[one.member]) else replace(one, hint=self._hint(one)) for one in self.inputs]

    def _hint(self, one: Field) -> str:
        left = self.words.t(say("Left empty: {rule}", rule=self.inherited(one.member)))
        return Markup(" ").join((self.said(one.hint), left))

    def _typed_rules(self, form: Form) -> list[tuple[str, str]]:
        return [(one.name, value) for one in self.inputs for value in form.several(one.name) if value]

    def show(self) -> Mapping[str, object]:
        return {**super().show(), "previews": self.owner != INSTANCE, "confirms": self.confirms}

    def _refuse_unconfirmed(self, policy: Policy, form: Form) -> None:
        """Raise Again if the rules end sessions, until whoever saves them has seen how many."""
        ended = self.services.sessions.ended_by(self.owner, policy)
        self.confirms = _said_of(ended)
        if self.confirms and form.one(CONFIRMED) != self.confirms:
            number = say_many("These rules end {n} session.", "These rules end {n} sessions.", ended.sessions)
            if ended.more:
                number = say("These rules end {n} sessions or more.", n=ended.sessions)
            own = [say("Your own session is among them.")] if ended.own else []
            sentences = (number, *own, say("Save again to confirm."))
            raise Again(" ".join(str(self.words.t(one)) for one in sentences), kind="warning")

    def values(self) -> Mapping[str, Value]:
        held = {one.name: one.shown(getattr(self.present.policy, one.member)) for one in self.inputs}
        return {**held, VERSION: str(self.present.version)}

    def submit(self, form: Form) -> Response:
        command = self.command_from(ChangePolicy, form)
        if form.one(PREVIEW):
            self.services.policies.amended(self.owner, command)
            return self.redirect(f"{self.home_of_policy}/preview?{urlencode(self._typed_rules(form))}")
        version = version_of(form.one(VERSION))
        if version in (None, self.present.version):
            self._refuse_unconfirmed(self.services.policies.amended(self.owner, command), form)
        self.services.policies.change(self.owner, command, version=version)
        return self.redirect(self.done(self.home_of_policy))


def change_of(form: Form) -> ChangePolicy:
    """The change that was typed. Raises Invalid."""
    return decode(ChangePolicy, {one.member: one.typed(form) for one in ChangePolicyPage.inputs})


def _said_of(ended: EndedSessions) -> str:
    """What a confirmation is about: other numbers need another one."""
    return f"{ended.sessions}{'+' if ended.more else ''}{' own' if ended.own else ''}" if ended.sessions else ""


class InstancePolicy(PolicyPage):
    """What holds where no organization says more."""

    title = say("Sign-in policy of the instance")
    of_instance, section = True, "instance/policy"


class ChangeInstancePolicy(ChangePolicyPage):
    """The same to be changed."""

    title = say("Change the sign-in policy of the instance")
    of_instance, section = True, "instance/policy"


_OF_ORGANIZATION = "/organizations/{organization}/policy"

PLACES = (
    Place("/instance/policy", InstancePolicy, "instance.read", targets.instance),
    Place("/instance/policy/edit", ChangeInstancePolicy, "instance.write", targets.instance),
    Place(_OF_ORGANIZATION, PolicyPage, "organization.read", targets.organization),
    Place(f"{_OF_ORGANIZATION}/edit", ChangePolicyPage, "organization_policy.write", targets.organization),
)
