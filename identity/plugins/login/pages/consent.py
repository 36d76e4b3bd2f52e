"""The consent page."""

from collections.abc import Mapping

from markupsafe import Markup
from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.entities import ApplicationClient, Organization
from identity.api.grants import GrantedScopes, Scope
from identity.api.pages import Form, ScopeDescriptions
from identity.api.plugins import cached_property
from identity.api.sign_in import SignInPage, find_missing_consent
from identity.plugins.login.interactions import CONSENT_REFUSED_REASON, ConsentInteraction

#: Scopes outside the list: the first only identifies the user, the second has its own sentence.
_UNDESCRIBED_SCOPES = (Scope.OPENID, Scope.OFFLINE_ACCESS)

#: The account and scopes that the page showed: another window may have chosen another account since, and the
#: application may have changed to receive more.
_ACCOUNT_FIELD, _SCOPE_FIELD = "account", "scope"
_DECISION_FIELD = "decision"


class ConsentPage(SignInPage):
    """Names the application, its owner and what it requests; a refusal ends the request."""

    template = "login/consent.html"
    fields = (_ACCOUNT_FIELD, _SCOPE_FIELD)
    interaction = ConsentInteraction.name

    def template_variables(self) -> Mapping[str, object] | Response:
        """What the application receives. Continues the sign-in if no consent is required."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._requested_consent
        if client is None or subject is None or granted is None:
            return self.redirect_to_next()
        settings, projects = self.request.registry.application.settings, self.request.services.projects
        undescribed_scopes = [
            value
            for value in granted.values
            if value not in _UNDESCRIBED_SCOPES and not ScopeDescriptions.covers(value, settings.urn_namespaces)
        ]
        return {
            "login_name": subject.login_name,
            "account": subject.user.id,
            "scope": granted.scope_string,
            "organization": client.organization.name,
            "domain": self._verified_domain(client.organization),
            "received": ScopeDescriptions.describe(
                granted.values, client.project.name, self.translator, settings.urn_namespaces
            ),
            "manages": any(projects.is_own_project(item) for item in granted.audience),
            "projects": self._other_project_names(client, granted),
            "others": [Markup("<code>{}</code>").format(scope) for scope in undescribed_scopes],
            "stays_connected": Scope.OFFLINE_ACCESS in granted,
        }

    def submit(self, form: Form) -> Response:
        """Record the answer; consent is remembered beyond this sign-in."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._requested_consent
        if client is None or subject is None or granted is None:
            return self.redirect_to_next()
        if (form.text(_ACCOUNT_FIELD), form.text(_SCOPE_FIELD)) != (subject.user.id, granted.scope_string):
            return self.redirect_to_next()
        consents, sign_ins = self.request.services.consents, self.request.services.sign_ins
        pending, account = self.pending_authorization, self.sign_in.selected_account
        if form.text(_DECISION_FIELD) == "allow":
            consents.grant_consent(subject, client, granted.values)
            sign_ins.complete_interaction(pending, ConsentInteraction.name, account=account)
        elif form.text(_DECISION_FIELD) == "refuse":
            consents.record_refusal(subject, client, granted.values)
            sign_ins.complete_interaction(pending, CONSENT_REFUSED_REASON, account=account)
        return self.redirect_to_next()

    @cached_property
    def _requested_consent(self) -> GrantedScopes | None:
        return find_missing_consent(self.sign_in, request_context(self.request))

    def _verified_domain(self, organization: Organization) -> str:
        with self.request.services.read_session() as storage:
            domain = storage.organizations.find_domain(organization.id, organization.primary_domain)
        return domain.name if domain is not None and domain.is_verified else ""

    def _other_project_names(self, client: ApplicationClient, granted: GrantedScopes) -> list[Markup]:
        with self.request.services.read_session() as storage:
            # Read one by one, so that a damaged project fails the page instead of missing from the list.
            found = [storage.projects.find(item) for item in sorted({*granted.audience} - {client.project.id})]
        is_own = self.request.services.projects.is_own_project
        named = [item for item in found if item is not None and not is_own(item.id)]
        return [Markup("<strong>{}</strong>").format(item.name) for item in named]
