"""The question whether an application may have what it asks for."""

from collections.abc import Mapping

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.applications import Client
from identity.domain.organizations import Organization
from identity.http.endpoints import context_of
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.pages.scope_words import is_told, received
from identity.pages.sign_in_page import SignInPage
from identity.plugins.login.interactions import REFUSED, Consent
from identity.provider.consent import to_agree
from identity.provider.scope import OFFLINE_ACCESS, OPENID, GrantedScopes

#: Scopes that are no part of the list: who it is, and what has a sentence of its own.
_UNTOLD = (OPENID, OFFLINE_ACCESS)

#: Whom the page was shown to, and what for: somebody else may have been chosen since in another window, and the
#: application may have been changed to get more.
_ACCOUNT, _SCOPE = "account", "scope"
_DECISION = "decision"


class ConsentPage(SignInPage):
    """Names the application, whose it is and what it asks for; a refusal ends the request."""

    template = "login/consent.html"
    fields = (_ACCOUNT, _SCOPE)

    def show(self) -> Mapping[str, object] | Response:
        """What the application receives; on with the sign-in if there is nothing to agree to."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._granted
        if client is None or subject is None or granted is None:
            return self.go_on()
        settings, projects = self.request.registry.identity.settings, self.request.services.projects
        others = [word for word in granted.words if word not in _UNTOLD and not is_told(word, settings.urn_namespaces)]
        return {
            "login_name": subject.login_name,
            "account": subject.user.id,
            "scope": granted.text,
            "organization": client.organization.name,
            "domain": self._domain(client.organization),
            "received": received(granted.words, client.project.name, self.words, settings.urn_namespaces),
            "manages": any(projects.is_own(one) for one in granted.audience),
            "projects": self._projects(client, granted),
            "others": [Markup("<code>{}</code>").format(word) for word in others],
            "stays_connected": OFFLINE_ACCESS in granted,
        }

    def submit(self, form: Form) -> Response:
        """Note the answer: what is agreed to is remembered beyond this sign-in."""
        client, subject, granted = self.sign_in.client, self.sign_in.subject, self._granted
        if client is None or subject is None or granted is None:
            return self.go_on()
        if (form.one(_ACCOUNT), form.one(_SCOPE)) != (subject.user.id, granted.text):
            return self.go_on()
        consents, sign_ins = self.request.services.consents, self.request.services.sign_ins
        if form.one(_DECISION) == "allow":
            consents.give(subject, client, granted.words)
            sign_ins.done(self.pending, Consent.name, account=self.sign_in.chosen)
        elif form.one(_DECISION) == "refuse":
            consents.refuse(subject, client, granted.words)
            sign_ins.done(self.pending, REFUSED, account=self.sign_in.chosen)
        return self.go_on()

    @lazily
    def _granted(self) -> GrantedScopes | None:
        """What there is to agree to; None unless it is time to ask."""
        return to_agree(self.sign_in, context_of(self.request)) if self.is_next(Consent.name) else None

    def _domain(self, organization: Organization) -> str:
        """The organization's domain, if it is proven that it has it."""
        with self.request.services.look() as storage:
            domain = storage.organizations.find_domain(organization.id, organization.primary_domain)
        return domain.name if domain is not None and domain.proven else ""

    def _projects(self, client: Client, granted: GrantedScopes) -> list[Markup]:
        """The names of the projects besides the application's that it asks to be known in."""
        with self.request.services.look() as storage:
            # Each by itself: one that cannot be read is not left out of what is agreed to.
            found = [storage.projects.find(one) for one in sorted({*granted.audience} - {client.project.id})]
        is_own = self.request.services.projects.is_own
        named = [one for one in found if one is not None and not is_own(one.id)]
        return [Markup("<strong>{}</strong>").format(one.name) for one in named]
