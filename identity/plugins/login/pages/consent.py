"""The question of prompt=consent."""

from collections.abc import Mapping

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.users import Subject
from identity.pages.forms import Form
from identity.pages.scope_words import is_told
from identity.plugins.login.interactions import REFUSED, Consent
from identity.plugins.login.pages.sign_in_page import SignInPage
from identity.provider.scope import OFFLINE_ACCESS, OPENID

#: Scopes that are no part of the list: who it is, and what has a sentence of its own.
_UNTOLD = (OPENID, OFFLINE_ACCESS)


class ConsentPage(SignInPage):
    """Names the application and what it asks for; a refusal ends the request."""

    template = "login/consent.html"

    def show(self) -> Mapping[str, object] | Response:
        """What the application receives; on with the sign-in if nobody asked for consent, or nobody is there to."""
        asked = self.sign_in.request
        account = self._account()
        if account is None or asked is None or not self._expected():
            return self.go_on()
        namespaces = self.request.registry.identity.settings.urn_namespaces
        others = [word for word in asked.scope if word not in _UNTOLD and not is_told(word, namespaces)]
        return {
            "login_name": account.login_name,
            "received": self.received,
            "others": [Markup("<code>{}</code>").format(word) for word in others],
            "stays_connected": OFFLINE_ACCESS in asked.scope,
        }

    def submit(self, form: Form) -> Response:
        """Note the answer."""
        if self._expected():
            decision = Consent.name if form.one("decision") == "allow" else REFUSED
            self.request.services.sign_ins.done(self.pending, decision)
        return self.go_on()

    def _account(self) -> Subject | None:
        """Who is asked."""
        if self.sign_in.proved is not None or self.sign_in.chosen is None:
            return self.sign_in.proved
        return self.sign_in.chosen.subject

    def _expected(self) -> bool:
        return self._account() is not None and self.is_next(Consent.name)
