"""Error pages of a sign-in that is unknown, expired, finished or bound to another browser."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.pages import Form, FormPage, Page, RequestLanguage, gettext_lazy, render_error_page
from identity.api.sign_in import PendingAuthorization, SignInUnavailable

_ACCOUNT_LINK = (gettext_lazy("Your account"), Page.ACCOUNT_PATH)


def unknown_sign_in(request: Request) -> Response:
    return render_error_page(
        request,
        404,
        gettext_lazy("This sign-in is no longer known"),
        advice=gettext_lazy("Go back to the application and open it again."),
        action=_ACCOUNT_LINK,
    )


def foreign_sign_in(request: Request) -> Response:
    """400. A sign-in's cookie ends with it, so a finished one looks foreign even in its own browser."""
    pending = request.services.storage.authorization_requests.find(request.matchdict["request"])
    if pending is not None and pending.finished_at is not None:
        return finished_sign_in(request)
    if pending is not None and pending.is_expired(request.services.now):
        return render_error_page(
            request,
            410,
            gettext_lazy("This sign-in took too long"),
            advice=gettext_lazy("Go back to the application and open it again."),
            action=_ACCOUNT_LINK,
            language=RequestLanguage.negotiate(request, pending.ui_locales),
        )
    return render_error_page(
        request,
        400,
        gettext_lazy("This sign-in was started in another browser"),
        advice=gettext_lazy("Open the application here and start again."),
    )


def finished_sign_in(request: Request) -> Response:
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
        gettext_lazy("This sign-in is complete"),
        texts,
        action=(gettext_lazy("Go to your account"), Page.ACCOUNT_PATH),
    )


def expired_sign_in(pending: PendingAuthorization, request: Request) -> Response:
    """410, with a button that restarts the request."""
    page = RestartSignInPage(None, request)
    page.requested_language = RequestLanguage.negotiate(request, pending.ui_locales)
    return page.get()


def unavailable_sign_in(error: SignInUnavailable, request: Request) -> Response:
    if error.pending is not None:
        return expired_sign_in(error.pending, request)
    views = {SignInUnavailable.FOREIGN: foreign_sign_in, SignInUnavailable.FINISHED: finished_sign_in}
    return views.get(error.state, unknown_sign_in)(request)


class RestartSignInPage(FormPage):
    """The page of an expired sign-in."""

    template = "login/expired_sign_in.html"
    status = 410

    def form_action(self) -> str:
        """The page is shown at any URL of its sign-in."""
        return f"{Page.LOGIN_PATH}/{self.request.matchdict['request']}/again"

    def submit(self, form: Form) -> Response:
        request_id = self.request.matchdict["request"]
        secret = self.request.browser_state.sign_ins.get(request_id)
        pending, new_secret = self.request.services.sign_ins.restart(request_id, secret)
        return self.resume_sign_in(self.request, pending.id, new_secret)


def add_exception_views(config: Configurator) -> None:
    """One page per state; the authorization endpoint raises them, too."""
    config.add_page(
        "login.again", f"{Page.LOGIN_PATH}/{{request}}/again", RestartSignInPage, permission=NO_PERMISSION_REQUIRED
    )
    config.add_exception_view(unavailable_sign_in, context=SignInUnavailable, for_people=True)
