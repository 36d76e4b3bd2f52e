"""/sign-out: asks, and signs out of everything at this browser. /signed-out: says that it is done."""

from collections.abc import Mapping

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.sessions import SignedIn
from identity.http.endpoints import context_of, respond
from identity.lazily import lazily
from identity.pages.forms import Form
from identity.pages.page import FormPage, Page
from identity.provider.endpoints.end_session import (
    ASK,
    FOLLOWED,
    NOBODY_S,
    SIGNED_OUT,
    WAITING,
    LogoutRequest,
    sign_out,
    waiting_request,
)
from identity.provider.parameters import Parameters


class LogoutPage(Page):
    """A page whose address names the request of an application that waits; without one, nobody asked."""

    @lazily
    def asked(self) -> LogoutRequest:
        """By which application, and where the browser goes afterwards. Raises Unredirectable."""
        query = Parameters.parse(self.request.environ.get("QUERY_STRING", "").encode("latin-1"))
        waiting = query.one(WAITING)
        return waiting_request(waiting, self.request.browser, context_of(self.request)) if waiting else NOBODY_S

    def whose_looks(self) -> tuple[Organization | None, Application | None]:
        """Those of the application that asks."""
        client = self.asked.client
        return (None, None) if client is None else (client.organization, client.application)

    @property
    def application(self) -> str | None:
        """What the application is called."""
        client = self.asked.client
        return None if client is None else self.looks.application or client.application.name

    @property
    def signed_out(self) -> str:
        """Where the page is that says that it is done, and leads back to the application."""
        query = self.request.environ.get("QUERY_STRING", "")
        return f"{SIGNED_OUT}?{query}" if query else SIGNED_OUT


class SignOut(LogoutPage, FormPage):
    """Asked by an application, or from the account menu, whose form is posted here."""

    template = "login/sign_out.html"

    @lazily
    def accounts(self) -> tuple[SignedIn, ...]:
        """The sessions of this browser, expired ones among them."""
        found: tuple[SignedIn, ...] = self.request.services.sessions.of_browser(self.request.browser.sessions.values())
        return found

    def show(self) -> Mapping[str, object] | Response:
        """Who asks, and who is signed in; if nobody is, it is done already."""
        live = [one for one in self.accounts if self.request.services.sessions.live(one)]
        application = self.application
        if not live:
            return self.redirect(self.signed_out)
        return {"application": application, "login_names": [one.subject.login_name for one in live]}

    @property
    def leads_away(self) -> bool:
        return self.asked.return_to is not None or bool(context_of(self.request).protocol.sign_out_ways)

    def submit(self, form: Form) -> Response:
        context = context_of(self.request)
        followed = self.asked.return_to is not None and self.asked.return_to.startswith(FOLLOWED)
        home = "" if followed else context.settings.login_url + self.signed_out
        return respond(self.request, sign_out(self.asked, self.accounts, context, home=home))


class SignedOut(LogoutPage):
    """The end. An application of this machine is only opened by a click."""

    template = "login/signed_out.html"

    def show(self) -> Mapping[str, object]:
        return {"application": self.application, "return_to": self.asked.return_to}


def configure(config: Configurator) -> None:
    """Both pages."""
    config.add_page("sign_out", ASK, SignOut, permission=NO_PERMISSION_REQUIRED)
    config.add_page("signed_out", SIGNED_OUT, SignedOut, permission=NO_PERMISSION_REQUIRED)
