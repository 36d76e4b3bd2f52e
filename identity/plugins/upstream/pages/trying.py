"""A manager tries a provider: signs in there, and sees what it says of them. Nothing comes of it here."""

import json
from collections.abc import Mapping

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.permissions import organization_resource
from identity.domain.upstream_providers import UpstreamProvider
from identity.http import targets
from identity.http.locale import language_of
from identity.http.targets import Target
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.upstream.clients import Somebody
from identity.plugins.upstream.pages.going import PERMISSION, send
from identity.plugins.upstream.profile import told
from identity.plugins.upstream.states import Purpose, Waiting

#: The page of the provider in the console, where the way here begins.
_CONSOLE = "/console/upstream-providers"
PATH = f"{_CONSOLE}/{{upstream_provider}}/test"
TARGET = targets.upstream_provider

_LONGEST_VALUE = 500


class Try(FormPage):
    """Leads to the provider."""

    context: Target
    template = "upstream/try.html"

    @property
    def leads_away(self) -> bool:
        """True: to the provider."""
        return True

    @property
    def provider(self) -> UpstreamProvider:
        """Which one."""
        provider: UpstreamProvider = self.context.value
        return provider

    def show(self) -> Mapping[str, object]:
        """What it is called, and where its page is."""
        return {"provider": self.provider.name, "back": _page_of(self.provider)}

    def submit(self, form: Form) -> Response:
        """To the provider."""
        session_id, back = self.request.account.session.id, _page_of(self.provider)
        return send(self.request, self.provider, Purpose.TEST, session_id, back=back, anew=True)


def tried(request: Request, provider: UpstreamProvider, waiting: Waiting, somebody: Somebody) -> Response:
    """The page that shows what the provider said. Raises NotFound for who may not change it any more."""
    account, access = request.account, request.services.access
    principal = access.principal(account.subject)
    if not access.may(principal, PERMISSION, organization_resource(provider.organization_id)):
        raise NotFound("identity provider", provider.id)
    words = request.registry.pages.catalogs.words(language_of(request))
    claims = {name: _shown(value) for name, value in sorted(somebody.claims.items())}
    values: Mapping[str, object] = {
        "provider": provider.name,
        "issuer": somebody.issuer,
        "subject": somebody.subject,
        "profile": sorted(told(provider, somebody.claims).items()),
        "claims": claims,
        "back": _page_of(provider),
    }
    response: Response = request.registry.pages.draw(
        request, "upstream/tried.html", values, status=200, language=words.language
    )
    return response


def _shown(value: object) -> str:
    return (value if isinstance(value, str) else json.dumps(value))[:_LONGEST_VALUE]


def _page_of(provider: UpstreamProvider) -> str:
    return f"{_CONSOLE}/{provider.id}"
