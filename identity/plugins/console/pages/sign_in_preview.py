"""Policy preview: the steps of a person's sign-in, also under rules that are not saved yet."""

from collections.abc import Iterator, Mapping, Sequence

from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.policies import Policy
from identity.domain.users import HumanUser
from identity.http import route_contexts
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import APPLICATION_PARAM, USER_PARAM, find_application, find_user
from identity.pages.forms import Form
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs
from identity.plugins.console.fields.policies import describe_rule
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions
from identity.plugins.console.pages.token_preview import APPLICATION_QUERY_FIELD, USER_QUERY_FIELD, TokenPreviewPage
from identity.plugins.console.policy_rule_fields import rule_fields
from identity.plugins.console.resources.policies import POLICY_TITLE, parse_policy_change
from identity.plugins.console.routes import ConsoleRoute
from identity.provider.interaction import StepUpRequirement
from identity.provider.sign_in_preview import SignInPreview, preview_sign_in

_RULE_FIELD_NAMES = tuple(field.name for field in rule_fields())


class SignInPreviewPage(TokenPreviewPage):
    template = "console/sign_in_preview.html"
    section = "policy"
    title = _("What would they have to do?")
    fields = (USER_PARAM, USER_QUERY_FIELD, APPLICATION_PARAM, APPLICATION_QUERY_FIELD)

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [(POLICY_TITLE, f"{CONSOLE_PATH}/organizations/{self.context.entity.id}/policy")]

    def template_variables(self) -> Mapping[str, object]:
        """The preview, if a user is selected, and the options to select from."""
        unsaved = self._unsaved_rules()
        self._unsaved_policy(unsaved)
        parameters = self.query()
        asks = USER_PARAM in self.request.GET and (
            USER_PARAM in parameters or not parameters.keys() & {USER_QUERY_FIELD, APPLICATION_QUERY_FIELD}
        )
        sign_in_preview = self._build_sign_in_preview(parameters) if asks else None
        return {
            "unsaved": unsaved,
            "users": self._user_options(parameters),
            "applications": self._application_options(parameters),
            "sections_of": []
            if sign_in_preview is None
            else [DescriptionListSection("steps", self.title, facts=list(self._descriptions(sign_in_preview)))],
            "said": self.translate,
        }

    def _unsaved_rules(self) -> Sequence[tuple[str, str]]:
        """The unsaved rules, as the policy form sent them."""
        return [(name, value) for name, value in self.request.GET.items() if name in _RULE_FIELD_NAMES and value]

    def _unsaved_policy(self, unsaved: Sequence[tuple[str, str]]) -> None:
        if not unsaved or not self.has_permission("organization_policy.write"):
            return
        several = frozenset(field.name for field in rule_fields() if field.is_multi_valued)
        typed: dict[str, str | tuple[str, ...]] = {}
        for name, value in unsaved:
            typed[name] = (*typed.get(name, ()), value) if name in several else value
        organization_id = self.context.entity.id
        try:
            command = parse_policy_change(Form(typed))
            policy: Policy = self.services.policies.amend_policy(organization_id, command)
        except Invalid as refused:
            self.problems.update({USER_PARAM: next(iter(refused.fields.values()))})
            return
        self.services.policies.override_policy(organization_id, policy)

    def _build_sign_in_preview(self, parameters: Mapping[str, str]) -> SignInPreview | None:
        """None if the user or application cannot be used."""
        context = request_context(self.request)
        subject = find_user(context, self.principal, parameters.get(USER_PARAM, ""))
        client = find_application(context, self.principal, parameters.get(APPLICATION_PARAM, ""))
        if subject is None or not isinstance(subject.user, HumanUser):
            self.problems[USER_PARAM] = _("Choose a person.")
        if parameters.get(APPLICATION_PARAM) and client is None:
            self.problems[APPLICATION_PARAM] = _("There is no such application.")
        if self.problems or subject is None:
            return None
        return preview_sign_in(subject, client, context)

    def _descriptions(self, sign_in_preview: SignInPreview) -> Iterator[tuple[str, object]]:
        yield (
            _("Signs in with"),
            self._sign_in_method_labels(sign_in_preview.sign_in_methods)
            or _("Nothing: this policy allows none of their sign-in methods"),
        )
        yield _("Second factor"), self._describe_step_up(sign_in_preview.step_up_requirement)
        if sign_in_preview.requires_new_password:
            yield _("Password"), _("Must choose a new one")
        yield from self._policy_descriptions(sign_in_preview.policy)
        if sign_in_preview.error is not None:
            yield (
                _("Application"),
                self.translator.gettext(_("Gets an error: {reason}", reason=sign_in_preview.error.description)),
            )
        elif sign_in_preview.needs_consent is not None:
            yield (_("Consent"), _("Is asked for consent") if sign_in_preview.needs_consent else _("Is not asked"))

    def _describe_step_up(self, requirement: StepUpRequirement | None) -> str:
        if requirement is None:
            return _("Not requested")
        if requirement.factors:
            labels = self._sign_in_method_labels(requirement.factors)
            return self.translator.gettext(_("Is asked for {ways}", ways=labels))
        if requirement.enrollable_factors:
            labels = self._sign_in_method_labels(requirement.enrollable_factors)
            return self.translator.gettext(_("Must set up: {ways}", ways=labels))
        return _("Required, but none is available to set up")

    def _sign_in_method_labels(self, names: Sequence[str]) -> str:
        labels = self.services.capabilities.sign_in_methods
        return ", ".join(self.translate(labels.get(name, name)) for name in names)

    def _policy_descriptions(self, policy: Policy) -> Descriptions:
        labels = (
            ("remember_browser", _("Remember browsers for")),
            ("session_idle_age", _("End unused sessions after")),
            ("session_max_age", _("End all sessions after")),
            ("single_session", _("Concurrent browsers")),
        )
        facts = [(label, describe_rule(name, getattr(policy, name))) for name, label in labels]
        is_open = self.services.registration.is_open(self.context.entity)
        registers = describe_rule("registration", policy.registration) if is_open else _("Nobody can register now")
        return [*facts, (_("Registration"), registers)]


ROUTES = (
    ConsoleRoute(
        "/organizations/{organization}/policy/preview",
        SignInPreviewPage,
        "user.read",
        route_contexts.organization_context,
    ),
)
