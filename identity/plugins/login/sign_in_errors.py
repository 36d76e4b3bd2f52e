"""Error pages of a sign-in that is unknown, expired, finished or bound to another browser."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.messages import gettext_lazy
from identity.http.language_negotiation import negotiate_language
from identity.pages.error_pages import LOGIN_PATH, render_error_page
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.pages.rendering import ACCOUNT_PATH
from identity.plugins.login.pages.login_start import resume_sign_in
from identity.services.sign_ins import ExpiredSignIn, FinishedSignIn, ForeignSignIn, UnknownSignIn

_ACCOUNT_LINK = (gettext_lazy("Your account"), ACCOUNT_PATH)


def unknown_sign_in(error: UnknownSignIn, request: Request) -> Response:
    return render_error_page(
        request,
        404,
        gettext_lazy("We do not know this sign-in any more"),
        advice=gettext_lazy("Go back to the application and open it again."),
        action=_ACCOUNT_LINK,
    )


def foreign_sign_in(error: ForeignSignIn, request: Request) -> Response:
    """400. A sign-in's cookie ends with it, so a finished one looks foreign even in its own browser."""
    pending = request.services.storage.authorization_requests.find(request.matchdict["request"])
    if pending is not None and pending.finished_at is not None:
        return finished_sign_in(FinishedSignIn(str(error)), request)
    if pending is not None and pending.is_expired(request.services.now):
        return render_error_page(
            request,
            410,
            gettext_lazy("This sign-in took too long"),
            advice=gettext_lazy("Go back to the application and open it again."),
            action=_ACCOUNT_LINK,
            language=negotiate_language(request, pending.ui_locales),
        )
    return render_error_page(
        request,
        400,
        gettext_lazy("This sign-in was started in another browser"),
        advice=gettext_lazy("Open the application here and start again."),
    )


def finished_sign_in(error: FinishedSignIn, request: Request) -> Response:
    """200: nothing is wrong, but there is no second response."""
    account = request.signed_in_account
    texts = (
        []
        if account is None
        else [gettext_lazy("You are signed in as {login_name}.", login_name=account.subject.login_name)]
    )
    return render_error_page(
        request,
        200,
        gettext_lazy("This sign-in is done"),
        texts,
        action=(gettext_lazy("Go to your account"), ACCOUNT_PATH),
    )


def expired_sign_in(error: ExpiredSignIn, request: Request) -> Response:
    """410, with a button that restarts the request."""
    page = RestartSignInPage(None, request)
    page.requested_language = negotiate_language(request, error.pending.ui_locales)
    return page.get()


class RestartSignInPage(FormPage):
    """The page of an expired sign-in."""

    template = "login/expired_sign_in.html"
    status = 410

    def form_action(self) -> str:
        """The page is shown at any URL of its sign-in."""
        return f"{LOGIN_PATH}/{self.request.matchdict['request']}/again"

    def submit(self, form: Form) -> Response:
        request_id = self.request.matchdict["request"]
        secret = self.request.browser_state.sign_ins.get(request_id)
        pending, new_secret = self.request.services.sign_ins.restart(request_id, secret)
        return resume_sign_in(self.request, pending.id, new_secret)


def add_exception_views(config: Configurator) -> None:
    """One page per error; the authorization endpoint raises them, too."""
    config.add_page(
        "login.again", f"{LOGIN_PATH}/{{request}}/again", RestartSignInPage, permission=NO_PERMISSION_REQUIRED
    )
    views = {
        UnknownSignIn: unknown_sign_in,
        ForeignSignIn: foreign_sign_in,
        FinishedSignIn: finished_sign_in,
        ExpiredSignIn: expired_sign_in,
    }
    for kind, view in views.items():
        config.add_exception_view(view, context=kind, for_people=True)
