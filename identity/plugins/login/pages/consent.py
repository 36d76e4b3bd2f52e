"""The consent page."""

from collections.abc import Mapping

from pyramid.response import Response

from identity.api.endpoints import request_context
from identity.api.grants import GrantedScopes
from identity.api.pages import Form, ScopeDescriptions
from identity.api.plugins import cached_property
from identity.api.sign_in import SignInPage, find_missing_consent
from identity.plugins.login.interactions import CONSENT_REFUSED_REASON, ConsentInteraction

#: What the page showed: another window may have chosen another account since, and the application may have changed,
#: to receive more or in its metadata.
_ACCOUNT_FIELD, _SCOPE_FIELD, _TERMS_FIELD = "account", "scope", "terms"
_DECISION_FIELD = "decision"


class ConsentPage(SignInPage):
    """Names the application, its owner and what it requests; a refusal ends the request."""

    template = "login/consent.html"
    fields = (_ACCOUNT_FIELD, _SCOPE_FIELD, _TERMS_FIELD)
    interaction = ConsentInteraction.name

    def template_variables(self) -> Mapping[str, object] | Response:
        """What the application receives. Continues the sign-in if no consent is required."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._requested_consent
        if client is None or subject is None or granted is None:
            return self.redirect_to_next()
        request = self.sign_in.request
        return {
            "login_name": subject.login_name,
            "account": subject.user.id,
            "terms": client.application.consent_terms,
            "returns_to_device": request is not None and request.returns_to_unknown_program,
            "destination": "" if request is None else request.unchecked_destination,
            **ScopeDescriptions.requested_access(
                client,
                granted,
                self.request.services,
                self.translator,
                self.request.registry.application.settings.urn_namespaces,
            ),
        }

    def submit(self, form: Form) -> Response:
        """Record the answer; consent is remembered beyond this sign-in."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._requested_consent
        if client is None or subject is None or granted is None:
            return self.redirect_to_next()
        displayed = subject.user.id, granted.scope_string, client.application.consent_terms
        if (form.text(_ACCOUNT_FIELD), form.text(_SCOPE_FIELD), form.text(_TERMS_FIELD)) != displayed:
            return self.redirect_to_next()
        consents, sign_ins = self.request.services.consents, self.request.services.sign_ins
        pending, account = self.pending_authorization, self.sign_in.selected_account
        if form.text(_DECISION_FIELD) == "allow":
            with self.rate_limited():
                consents.grant_consent(subject, client, granted.values)
            sign_ins.complete_interaction(pending, ConsentInteraction.name, account=account)
        elif form.text(_DECISION_FIELD) == "refuse":
            consents.record_refusal(subject, client, granted.values)
            sign_ins.complete_interaction(pending, CONSENT_REFUSED_REASON, account=account)
        return self.redirect_to_next()

    @cached_property
    def _requested_consent(self) -> GrantedScopes | None:
        return find_missing_consent(self.sign_in, request_context(self.request))
