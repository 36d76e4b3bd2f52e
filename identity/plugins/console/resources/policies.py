"""Policies of the instance and of organizations: effective rules with their source, and editing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape
from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.policies import EffectiveRule, Policy, PolicySource, looser_rules
from identity.domain.sessions import EndedSessionCount
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.pages.page import FormRedisplay
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.field_labels import available_fields
from identity.plugins.console.fields.policies import POLICY_FIELDS, describe_rule
from identity.plugins.console.form_fields import FormField
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.page_sections import ActionSection, NoteSection, PageSection, TableSection
from identity.plugins.console.policy_rule_fields import rule_fields, rule_values
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID, StoredPolicy

POLICY_TITLE = _("Sign-in policy")
#: The button that previews the rules.
PREVIEW_FIELD = "preview"
#: The digest of the ended sessions that the caller confirmed.
CONFIRMED_FIELD = "confirmed"
_SOURCE_LABELS = {
    PolicySource.SETTINGS: _("The settings of the service"),
    PolicySource.INSTANCE: _("The instance"),
    PolicySource.ORGANIZATION: _("This organization"),
}


class _PolicyPage(ConsolePage):
    section = "policy"

    @property
    def policy_owner_id(self) -> str:
        return INSTANCE_OWNER_ID if self.is_instance_page else str(self.context.entity.id)

    @property
    def policy_path(self) -> str:
        return f"{CONSOLE_PATH}/instance/policy" if self.is_instance_page else f"{self.base_path}/policy"

    def describe_rule(self, name: str, value: Any) -> Markup:
        if name == "factors":
            return self._sign_in_method_labels(value)
        if value is None:
            return self.translate(_("None given"))
        if isinstance(value, tuple):
            return escape(", ".join(value)) if value else self.translate(_("None"))
        return self.translate(describe_rule(name, value))

    def _sign_in_method_labels(self, value: Sequence[str] | None) -> Markup:
        if value is None:
            return self.translate(_("All available"))
        labels = self.services.capabilities.sign_in_methods
        return Markup(", ").join(self.translate(labels.get(item, item)) for item in value)


class PolicyDetailPage(_PolicyPage):
    """Each effective rule with its source."""

    template = "console/detail.html"
    title = POLICY_TITLE

    @property
    def write_permission(self) -> str:
        return "instance.write" if self.is_instance_page else "organization_policy.write"

    def template_variables(self) -> Mapping[str, object]:
        rules = self._available_rules()
        change = self.button_link(_("Change"), f"{self.policy_path}/edit", hidden_label=self.translate(POLICY_TITLE))
        return {
            "lead": [self.translate(self._lead())],
            "badges": (),
            "actions": [change] if self.has_permission(self.write_permission) else [],
            "mark": "",
            "more_items": (),
            "facts": (),
            "tabs": (),
            "sections_of": [*self._sections(rules), self._overridden_note(), self._preview_link()],
            "said": self.translate,
        }

    def _available_rules(self) -> Sequence[EffectiveRule]:
        rules = self.services.policies.list_effective_rules(self.policy_owner_id)
        chosen = Policy(**{rule.name: rule.value for rule in rules if rule.source is not PolicySource.SETTINGS})
        conditions = {name: label.is_available for name, label in POLICY_FIELDS.items()}
        names = available_fields(conditions, self, chosen)
        return [rule for rule in rules if rule.name in names]

    def _overridden_note(self) -> PageSection | NoteSection | None:
        if self.is_instance_page or not self.services.policies.list_ignored_rules(self.policy_owner_id):
            return None
        return NoteSection(
            _(
                "Together with the instance's rules, those of this organization leave no sign-in "
                "method. The instance's rules apply."
            )
        )

    def _preview_link(self) -> PageSection | None:
        if self.is_instance_page or not self.has_permission("user.read"):
            return None
        title = _("What would they have to do?")
        lead = _("What a person signing in now would have to do. Nothing is issued or recorded here.")
        show = self.button_link(_("Show"), f"{self.policy_path}/preview", hidden_label=self.translate(title))
        return ActionSection("preview", title, rows=[(_("Choose a person."), lead, show)])

    def _lead(self) -> str:
        if self.is_instance_page:
            return _("Applies to everyone. Organizations can be stricter, never more lenient.")
        return _("Applies to the people of this organization. It can be stricter than the instance, not more lenient.")

    def _sections(self, rules: Sequence[EffectiveRule]) -> Iterator[PageSection]:
        titles = dict.fromkeys(POLICY_FIELDS[rule.name].section for rule in rules)
        for number, title in enumerate(titles):
            of_it = [rule for rule in rules if POLICY_FIELDS[rule.name].section == title]
            columns = (_("Rule"), _("Effective rule"), _("Set by"))
            yield TableSection(
                f"rules-{number}", title, columns=columns, rows=[self._row(effective_rule) for effective_rule in of_it]
            )

    def _row(self, rule: EffectiveRule) -> Sequence[object]:
        label = POLICY_FIELDS[rule.name]
        named = self.template_macros.named(self.translate(label.label), "", self.translate(label.hint))
        return named, self.describe_rule(rule.name, rule.value), self._source_label(rule)

    def _source_label(self, rule: EffectiveRule) -> Markup:
        source = self.translate(_SOURCE_LABELS[rule.source])
        if rule.changed_at is None:
            return source
        author = self._author_name(rule.changed_by)
        attribution = self.translator.gettext(_("by {name}", name=author)) if author else ""
        return Markup('{}<span class="table__sub">{} {}</span>').format(
            source, self.template_macros.when(rule.changed_at), attribution
        )

    def _author_name(self, user_id: str | None) -> str:
        subject = None if user_id is None else self.services.storage.users.find_subject(user_id)
        if subject is None or not self.services.access_control.can_see_organization(
            self.principal, subject.organization.id
        ):
            return ""
        return str(subject.user.display_name)


class PolicyEditPage(_PolicyPage, ConsoleFormPage):
    """Sets rules or leaves them inherited."""

    title = _("Change the sign-in policy")
    template = "console/policy_edit.html"
    form_fields = rule_fields()

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [(POLICY_TITLE, self.policy_path)]

    @property
    def cancel_path(self) -> str:
        return self.policy_path

    @property
    def lead(self) -> str:
        return _("Changes apply from the next sign-in or request, also to users who are signed in.")

    #: What saving again confirms; empty if there is nothing to confirm.
    confirmation_digest = ""

    @cached_property
    def stored_policy(self) -> StoredPolicy:
        return self.services.policies.get_stored_policy(self.policy_owner_id)

    @cached_property
    def stored(self) -> Policy:
        return self.stored_policy.policy

    @cached_property
    def parent_policy(self) -> Policy:
        """The inherited rules."""
        return self.services.policies.preview_policy(self.policy_owner_id, Policy())

    def is_value_allowed(self, name: str, value: Any) -> bool:
        """True if this level may set the rule to this value."""
        return self.is_instance_page or not looser_rules(
            self.services.policies.instance_policy(), Policy(**{name: value})
        )

    def inherited_value(self, name: str) -> Markup:
        return self.describe_rule(name, getattr(self.parent_policy, name))

    def sign_in_method_options(self) -> Sequence[Sequence[object]]:
        """The sign-in methods that may be allowed."""
        methods = self.services.capabilities.sign_in_methods
        return [
            (name, self.translate(label), "")
            for name, label in methods.items()
            if self.is_value_allowed("factors", (name,))
        ]

    def visible_fields(self) -> Sequence[FormField]:
        return [
            field if rule_values(field.command_member) else replace(field, hint=self._field_hint(field))
            for field in super().visible_fields()
        ]

    def _field_hint(self, field: FormField) -> str:
        left = self.translator.gettext(_("If empty: {rule}", rule=self.inherited_value(field.command_member)))
        return Markup(" ").join((self.translate(field.hint), left))

    def _parse_rules(self, form: Form) -> list[tuple[str, str]]:
        return [(field.name, value) for field in self.form_fields for value in form.texts(field.name) if value]

    def template_variables(self) -> Mapping[str, object]:
        return {
            **super().template_variables(),
            "previews": not self.is_instance_page,
            "confirms": self.confirmation_digest,
        }

    def _refuse_unconfirmed(self, policy: Policy, form: Form) -> None:
        """Raise FormRedisplay if the rules end sessions, until the caller has confirmed their number."""
        ended = self.services.sessions.count_ended_by_policy(self.policy_owner_id, policy)
        self.confirmation_digest = _confirmation_digest(ended)
        if self.confirmation_digest and form.text(CONFIRMED_FIELD) != self.confirmation_digest:
            number = ngettext_lazy("These rules end {n} session.", "These rules end {n} sessions.", ended.sessions)
            if ended.has_more:
                number = _("These rules end {n} sessions or more.", n=ended.sessions)
            messages = [_("Your own session is among them.")] if ended.includes_own else []
            sentences = (number, *messages, _("Save again to confirm."))
            raise FormRedisplay(
                " ".join(str(self.translator.gettext(message)) for message in sentences), kind="warning"
            )

    def initial_values(self) -> Mapping[str, FieldValue]:
        values = {
            field.name: field.format_value(getattr(self.stored_policy.policy, field.command_member))
            for field in self.form_fields
        }
        return {**values, Form.VERSION_FIELD: str(self.stored_policy.version)}

    def submit(self, form: Form) -> Response:
        command = self.build_command(ChangePolicy, form)
        if form.text(PREVIEW_FIELD):
            self.services.policies.amend_policy(self.policy_owner_id, command)
            return self.redirect(f"{self.policy_path}/preview?{urlencode(self._parse_rules(form))}")
        version = form.version()
        if version in (None, self.stored_policy.version):
            self._refuse_unconfirmed(self.services.policies.amend_policy(self.policy_owner_id, command), form)
        self.services.policies.change(self.policy_owner_id, command, version=version)
        return self.redirect(self.path_with_flash(self.policy_path))


def parse_policy_change(form: Form) -> ChangePolicy:
    """Raises Invalid."""
    return ChangePolicy.decode({field.command_member: field.parse_value(form) for field in PolicyEditPage.form_fields})


def _confirmation_digest(ended: EndedSessionCount) -> str:
    """Other numbers need another confirmation."""
    return (
        f"{ended.sessions}{'+' if ended.has_more else ''}{' own' if ended.includes_own else ''}"
        if ended.sessions
        else ""
    )


class InstancePolicyDetailPage(PolicyDetailPage):
    title = _("Sign-in policy of the instance")
    is_instance_page, section = True, "instance/policy"


class InstancePolicyEditPage(PolicyEditPage):
    title = _("Change the sign-in policy of the instance")
    is_instance_page, section = True, "instance/policy"


_OF_ORGANIZATION = "/organizations/{organization}/policy"

ROUTES = (
    ConsoleRoute("/instance/policy", InstancePolicyDetailPage, "instance.read", route_contexts.instance_context),
    ConsoleRoute("/instance/policy/edit", InstancePolicyEditPage, "instance.write", route_contexts.instance_context),
    ConsoleRoute(_OF_ORGANIZATION, PolicyDetailPage, "organization.read", route_contexts.organization_context),
    ConsoleRoute(
        f"{_OF_ORGANIZATION}/edit", PolicyEditPage, "organization_policy.write", route_contexts.organization_context
    ),
)
