"""A manager tests a provider: checks of its settings, and a trial sign-in. A draft is turned on here."""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyramid.request import Request
from pyramid.response import Response

from identity.api.entities import NotFound, Resource, UpstreamProvider
from identity.api.pages import Form, FormPage, FormRedisplay, RouteContext, SignedInPage, gettext_lazy, see_other
from identity.api.plugins import cached_property
from identity.plugins.upstream.authorization_states import PendingUpstreamSignIn, UpstreamSignInPurpose
from identity.plugins.upstream.claim_mapping import map_claims
from identity.plugins.upstream.http_client import OUTBOUND_NETWORKS_SETTING
from identity.plugins.upstream.pages.authorization_redirect import PERMISSION, redirect_to_provider
from identity.plugins.upstream.provider_checks import CheckState, ProviderCheck
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_registry import get_provider_registry, load_client_credentials
from identity.plugins.upstream.sign_in_trials import explain_trial, find_trial, store_trial

#: The provider's page in the console, where the test starts.
_CONSOLE = "/console/upstream-providers"
CHECK_PATH = f"{_CONSOLE}/{{upstream_provider}}/test"
CHECK_CONTEXT_FACTORY = RouteContext.of_upstream_provider
#: The parameter with the id of a trial sign-in's result.
_TRIAL_PARAM = "trial"
_ACTION_FIELD = "action"

_LONGEST_VALUE = 500
_PRIVATE_TEXT = gettext_lazy(
    "Its host name does not resolve to a public address. To allow it, name the network in the setting {setting}.",
    setting=OUTBOUND_NETWORKS_SETTING,
)


class CheckProviderPage(SignedInPage, FormPage):
    context: RouteContext
    template = "upstream/check_provider.html"
    fields = (_ACTION_FIELD,)
    home_path = "/console"
    flash_messages: ClassVar[Mapping[str, str]] = {"upstream_provider.reactivated": ""}
    #: The results of checks that this request ran.
    checks: Sequence[ProviderCheck] = ()

    @property
    def redirects_off_site(self) -> bool:
        return True

    @property
    def provider(self) -> UpstreamProvider:
        provider: UpstreamProvider = self.context.entity
        return provider

    @cached_property
    def trial(self) -> ExternalUser | None:
        trial_id = self.request.GET.get(_TRIAL_PARAM, "")
        return find_trial(self.request, self.provider, trial_id) if trial_id else None

    def early_response(self) -> Response | None:
        """Raises Denied for managers who may not change the provider: a test uses its secret."""
        self.request.services.upstream_providers.require_can_change(self.provider, principal=self.request.identity)
        return super().early_response()

    def common_variables(self) -> Mapping[str, object]:
        """In the frame of the console, if it is installed."""
        frame = self.renderer.console_frame
        return super().common_variables() if frame is None else frame(self.request, self.context, "upstream-providers")

    def template_variables(self) -> Mapping[str, object]:
        provider, organization_id = self.provider, self.provider.organization_id
        states = [check.state for check in self.checks]
        return {
            "parent": provider.name,
            "trail": [
                (
                    self.translator.gettext("Identity providers"),
                    f"/console/organizations/{organization_id}/upstream-providers",
                ),
                (provider.name, _provider_path(provider)),
            ],
            "provider": provider,
            "redirect_uri": self._redirect_uri,
            "back": _provider_path(provider),
            "checks": self.checks,
            "problems": sum(state is not CheckState.OK for state in states),
            "trial": self.trial,
            **({} if self.trial is None else self._trial_variables(self.trial)),
        }

    def submit(self, form: Form) -> Response:
        """Run the checks, redirect to the provider, or turn it on."""
        action = form.text(_ACTION_FIELD)
        if action == "activate":
            providers = self.request.services.upstream_providers
            providers.reactivate(self.provider.id, principal=self.request.identity)
            return self.redirect(self.path_with_flash(_provider_path(self.provider)))
        if not self.provider.is_complete:
            raise FormRedisplay(gettext_lazy("Enter the client secret first."))
        if action == "try":
            return redirect_to_provider(
                self.request,
                self.provider,
                UpstreamSignInPurpose.TEST,
                self.signed_in_account.session.id,
                return_path=f"{_provider_path(self.provider)}/test",
                requires_reauthentication=True,
            )
        return self._run_checks()

    def _run_checks(self) -> Response:
        provider, services = self.provider, self.request.services
        credentials, now = load_client_credentials(provider, services), services.now
        # Hold no lock during the requests.
        self.request.commit()
        self.checks = [
            self._described(check)
            for check in get_provider_registry(self.request).check(provider, credentials, self._redirect_uri, now)
        ]
        return self.get()

    def _described(self, check: ProviderCheck) -> ProviderCheck:
        """A reason that only instance administrators may know is added for them."""
        access = self.request.services.access_control
        if not check.is_private or not access.is_permitted(self.request.identity, "instance.write", Resource.INSTANCE):
            return check
        return ProviderCheck(state=check.state, title=check.title, text=_PRIVATE_TEXT)

    def _trial_variables(self, trial: ExternalUser) -> Mapping[str, object]:
        return {
            "outcomes": list(explain_trial(self.request, self.provider, trial)),
            "profile": sorted(map_claims(self.provider, trial.claims).items()),
            "claims": {name: _format_value(value) for name, value in sorted(trial.claims.items())},
        }

    @property
    def _redirect_uri(self) -> str:
        return f"{self.request.registry.application.settings.login_url}{self.provider.callback_path}"


def finish_trial(
    request: Request, provider: UpstreamProvider, waiting: PendingUpstreamSignIn, external_user: ExternalUser
) -> Response:
    """303 to the page with the result. Raises NotFound if the manager has lost the permission."""
    access = request.services.access_control
    principal = access.load_principal(request.signed_in_account.subject)
    if not access.is_permitted(principal, PERMISSION, Resource.of_organization(provider.organization_id)):
        raise NotFound("identity provider", provider.id)
    trial_id = store_trial(request, provider, external_user)
    return see_other(request, f"{_provider_path(provider)}/test?{_TRIAL_PARAM}={trial_id}")


def _format_value(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:_LONGEST_VALUE]


def _provider_path(provider: UpstreamProvider) -> str:
    return f"{_CONSOLE}/{provider.id}"
