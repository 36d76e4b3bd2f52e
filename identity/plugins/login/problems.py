"""What is shown where a sign-in cannot go on: unknown, expired, done, or begun in another browser."""

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.domain.words import say
from identity.http.locale import language_of
from identity.pages.drawing import HOME
from identity.pages.errors import LOGIN, error_page
from identity.pages.forms import Form
from identity.pages.page import FormPage
from identity.plugins.login.pages.entrance import going_on
from identity.services.sign_ins import ExpiredSignIn, FinishedSignIn, ForeignSignIn, UnknownSignIn

_ACCOUNT = (say("Your account"), HOME)


def unknown(error: UnknownSignIn, request: Request) -> Response:
    """404."""
    return error_page(
        request,
        404,
        say("We do not know this sign-in any more"),
        advice=say("Go back to the application and open it again."),
        action=_ACCOUNT,
    )


def foreign(error: ForeignSignIn, request: Request) -> Response:
    """400. The cookie of a sign-in ends with it, so one that is over looks foreign even where it was begun."""
    pending = request.services.storage.authorization_requests.find(request.matchdict["request"])
    if pending is not None and pending.finished_at is not None:
        return finished(FinishedSignIn(str(error)), request)
    if pending is not None and pending.expired(request.services.now):
        return error_page(
            request,
            410,
            say("This sign-in took too long"),
            advice=say("Go back to the application and open it again."),
            action=_ACCOUNT,
            language=language_of(request, pending.ui_locales),
        )
    return error_page(
        request,
        400,
        say("This sign-in was started in another browser"),
        advice=say("Open the application here and start again."),
    )


def finished(error: FinishedSignIn, request: Request) -> Response:
    """200: nothing is wrong, and no second answer is given."""
    account = request.account
    texts = (
        [] if account is None else [say("You are signed in as {login_name}.", login_name=account.subject.login_name)]
    )
    return error_page(request, 200, say("This sign-in is done"), texts, action=(say("Go to your account"), HOME))


def expired(error: ExpiredSignIn, request: Request) -> Response:
    """410, with a button that starts the same request again."""
    page = StartAgain(None, request)
    page.asked_language = language_of(request, error.pending.ui_locales)
    return page.get()


class StartAgain(FormPage):
    """The page of a sign-in that waited for too long."""

    template = "login/expired.html"
    status = 410

    def form_path(self) -> str:
        """The page is shown wherever its sign-in was expected."""
        return f"{LOGIN}/{self.request.matchdict['request']}/again"

    def submit(self, form: Form) -> Response:
        """A new sign-in with the same parameters."""
        request_id = self.request.matchdict["request"]
        secret = self.request.browser.sign_ins.get(request_id)
        pending, new_secret = self.request.services.sign_ins.start_again(request_id, secret)
        return going_on(self.request, pending.id, new_secret)


def configure(config: Configurator) -> None:
    """One page per reason; the protocol's own endpoint raises them too."""
    config.add_page("login.again", f"{LOGIN}/{{request}}/again", StartAgain, permission=NO_PERMISSION_REQUIRED)
    views = {UnknownSignIn: unknown, ForeignSignIn: foreign, FinishedSignIn: finished, ExpiredSignIn: expired}
    for kind, view in views.items():
        config.add_exception_view(view, context=kind, for_people=True)
