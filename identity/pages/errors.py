"""Error pages: what happened, what to do, the request id. Status and headers are those of the answer to programs.

They stand before the exception views of ``identity.http.errors`` by the predicate ``for_people``, and use neither
database nor session.
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPException, HTTPForbidden, HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response

from identity.domain.errors import Denied, DomainError, Invalid
from identity.domain.words import Message, say, say_many
from identity.http import errors as for_programs
from identity.http.csrf import CrossSite, StaleForm
from identity.http.locale import language_of
from identity.pages.drawing import Pages, redirect
from identity.pages.page import STALE
from identity.pages.translation import Words
from identity.provider.endpoints.end_session import ASK
from identity.provider.errors import OAuthError, RequestTooLarge, UnknownApplication, Unredirectable, UntrustedRedirect
from identity.storage.errors import Unavailable

if TYPE_CHECKING:
    from identity.process import Identity

log = logging.getLogger(__name__)

#: Where people sign in, and the parameter that names the path to come back to.
LOGIN, TARGET = "/login", "target"

_START_AGAIN = say(
    "Go back to the application and start again. If it happens again, tell the people who run it and give them the"
    " details below."
)
_UNREADABLE = say("This request cannot be read")

#: The bare address leads to the console, the account or the pages of signing in, whatever fits.
_START = (say("Go to the start page"), "/")
_STUCK = (403, 404)

View = Callable[[Any, Request], Response]


def error_page(
    request: Request,
    status: int,
    title: str,
    texts: Iterable[str] = (),
    *,
    advice: str | None = None,
    error: str | None = None,
    detail: str | None = None,
    sent: str = "",
    action: tuple[str, str] | None = None,
    language: str | None = None,
) -> Response:
    """A page in the login frame. ``action`` is a link: words and address. Error and detail are for whoever is asked,
    ``sent``, an address that was not taken, for the developer."""
    pages: Pages = request.registry.pages
    words = pages.catalogs.words(language or language_of(request))
    variables = {
        "title": words.t(title),
        "texts": [words.t(text) for text in texts],
        "advice": None if advice is None else words.t(advice),
        "action": None if action is None else (words.t(action[0]), action[1]),
        # Whoever is stuck here with one account may have another one.
        "sign_out": ASK if status in _STUCK and request.browser.sessions else None,
        "facts_shown": _facts(request, words, error, detail, sent) if status >= 400 else [],
        "failed": status >= 400,
    }
    return pages.draw(request, "error.html", variables, status=status, language=words.language)


def _facts(
    request: Request, words: Words, error: str | None, detail: str | None, sent: str
) -> list[tuple[str, Markup]]:
    identity: Identity = request.registry.identity
    now = identity.clock()
    known = [
        (words.t("Error"), error and Markup("<code>{}</code>").format(error)),
        (words.t("Detail"), detail and Markup("{}").format(_told(words, detail))),
        (words.t("Address that was sent"), sent and Markup("<code>{}</code>").format(sent)),
        (words.t("Request id"), Markup("<code>{}</code>").format(request.request_id)),
        (
            words.t("Time"),
            Markup('<time datetime="{}">{} UTC</time>').format(
                now.strftime("%Y-%m-%dT%H:%M:%SZ"), now.strftime("%Y-%m-%d %H:%M:%S")
            ),
        ),
    ]
    return [(term, value) for term, value in known if value]


def _told(words: Words, said: str) -> str:
    """A sentence of ours in the page's language; what plugins and the protocol say as it is."""
    return words.t(said) if isinstance(said, Message) else said


def oauth_error(error: OAuthError, request: Request) -> Response:
    """A protocol error that no client is told (pages §4.3)."""
    title: str = _UNREADABLE
    text: str = say("What was sent does not fit this page.")
    advice: str | None = _START_AGAIN
    if isinstance(error, UnknownApplication):
        title = say("We do not know this application")
        text = say("It is not registered here, or not active any more. Nothing was sent.")
    elif isinstance(error, UntrustedRedirect):
        title, text = say("We cannot send you back to this application"), _untrusted(error)
    elif isinstance(error, Unredirectable):
        text = ""
    elif isinstance(error, RequestTooLarge):
        title, advice = say("This is too large"), None
        text = say("Nothing was saved. Go back, and send less at once.")
    texts, code, detail = [text] if text else (), error.error, error.description
    sent = error.shown if isinstance(error, UntrustedRedirect) else ""
    page = error_page(request, error.status, title, texts, advice=advice, error=code, detail=detail, sent=sent)
    page.headers.update(error.headers())
    return page


def _untrusted(error: UntrustedRedirect) -> str:
    if error.application is None:
        return say(
            "The application asked us to return you to an address that is not registered for it. To protect you, we"
            " stopped here. Nothing was sent."
        )
    return say(
        "{application} asked us to return you to an address that is not registered for it. To protect you, we stopped"
        " here. Nothing was sent.",
        application=error.application,
    )


def not_found(error: HTTPNotFound, request: Request) -> Response:
    """404; 405 for another method; 421 with the settings to look at, if the host is none of ours."""
    answer = for_programs.not_found(error, request)
    if answer.status_code == 421:
        return _wrong_host(request)
    if answer.status_code == 405:
        texts = [say("This address does not take what was sent.")]
        page = error_page(request, 405, _UNREADABLE, texts, action=_START)
        page.headers["Allow"] = answer.headers["Allow"]
        return page
    return _nothing(request)


def _nothing(request: Request) -> Response:
    return error_page(
        request,
        404,
        say("There is nothing here"),
        [say("The address may be mistyped, or what was here is gone.")],
        action=_START,
    )


def _wrong_host(request: Request) -> Response:
    settings = request.registry.identity.settings
    names = ("issuer_url", "base_url", "login_url")
    listed = Markup(", ").join(
        Markup('<a href="{0}"><code>{0}</code></a> (identity.{1})').format(getattr(settings, name), name)
        for name in names
    )
    return error_page(
        request,
        421,
        say("This service does not answer at this host name"),
        [say("It is set up for these addresses: {addresses}", addresses=listed)],
        advice=say(
            "If you run this service: open one of these addresses, or change the settings in the ini file. Behind a"
            " proxy, have it pass the Host header on unchanged."
        ),
    )


def forbidden(error: HTTPForbidden, request: Request) -> Response:
    """The way to sign in, if nobody is signed in; else which right is missing, and the refusal is audited."""
    if request.identity is None:
        query = urlencode({TARGET: request.path_qs if request.method in ("GET", "HEAD") else request.path})
        return redirect(request, f"{LOGIN}?{query}")
    for_programs.forbidden(error, request)
    return _denied(request, for_programs.reason_of(error))


def domain_error(error: DomainError, request: Request) -> Response:
    """A use case's refusal that no form took."""
    answer = for_programs.domain_error(error, request)
    if isinstance(error, Denied):
        return _denied(request, error.args[0])
    if answer.status_code == 404:
        return _nothing(request)
    if answer.status_code == 500:
        return _failed(request)
    texts = [*error.fields.values()] if isinstance(error, Invalid) else [error.args[0] if error.args else ""]
    asked = request.method == "GET" and request.query_string
    action = (say("Open the page anew"), request.path) if asked else _START
    return error_page(request, answer.status_code, _UNREADABLE, texts, action=action)


def _denied(request: Request, reason: str) -> Response:
    return error_page(
        request,
        403,
        say("You may not see this page"),
        advice=say("Ask an owner of the organization for the right that is missing, or use another account."),
        detail=reason,
        action=_START,
    )


def cross_site(error: CrossSite, request: Request) -> Response:
    """A form that another site sent."""
    return error_page(
        request,
        403,
        say("We did not take this form"),
        [say("Your browser says that another site sent it. To protect you, nothing was changed.")],
        advice=say("Open the page here and send the form from there."),
        action=_START,
    )


def stale_form(error: StaleForm, request: Request) -> Response:
    """A form whose token does not fit, where no page draws it again."""
    return error_page(request, 422, say("This page had been open for too long"), [STALE], action=_START)


def unavailable(error: Exception, request: Request) -> Response:
    """503 while the storage is away or damaged; an application that waits for its answer gets that instead."""
    answer: Response = for_programs.unavailable(error, request)
    if for_programs.return_address(request) is not None:
        return answer
    return _busy(request, int(answer.headers.get("Retry-After", "5")))


def http_exception(error: HTTPException, request: Request) -> Response:
    """Pyramid's own refusals."""
    if error.status_code >= 500:
        return _failed(request)
    return error_page(request, error.status_code, _UNREADABLE, action=_START)


def undecodable(error: UnicodeDecodeError, request: Request) -> Response:
    """An address that is not UTF-8 names nothing."""
    return _nothing(request)


def unexpected(error: Exception, request: Request) -> Response:
    """500 with a request id and nothing else; the log has the rest."""
    answer: Response = for_programs.unexpected(error, request)
    return answer if for_programs.return_address(request) is not None else _failed(request)


def _failed(request: Request) -> Response:
    return error_page(
        request,
        500,
        say("Something went wrong on our side"),
        advice=say("Try again. If it happens again, tell the people who run this service the request id."),
    )


def _busy(request: Request, seconds: int) -> Response:
    response = error_page(
        request,
        503,
        say("We are busy just now"),
        [say_many("Try again in {n} second.", "Try again in {n} seconds.", seconds)],
    )
    response.headers["Retry-After"] = str(seconds)
    return response


def _safely(view: View, programs_view: View) -> View:
    """The page; the answer for programs, if even drawing the page fails (an operator's template may)."""

    def draw(error: Any, request: Request) -> Response:
        try:
            return view(error, request)
        except Exception:
            log.exception("request %s: the error page cannot be drawn", request.request_id)
            return programs_view(error, request)

    return draw


def includeme(config: Configurator) -> None:
    """For each of the views for programs, the one for people."""
    pairs: dict[type[Exception], tuple[View, View]] = {
        OAuthError: (oauth_error, for_programs.oauth_error),
        DomainError: (domain_error, for_programs.domain_error),
        **dict.fromkeys((Unavailable, *for_programs.DAMAGED), (unavailable, for_programs.unavailable)),
        HTTPException: (http_exception, for_programs.http_exception),
        CrossSite: (cross_site, for_programs.cross_site),
        StaleForm: (stale_form, for_programs.stale_form),
        UnicodeDecodeError: (undecodable, for_programs.undecodable),
        Exception: (unexpected, for_programs.unexpected),
    }
    for kind, (view, programs_view) in pairs.items():
        config.add_exception_view(_safely(view, programs_view), context=kind, for_people=True)
    config.add_forbidden_view(_safely(forbidden, for_programs.forbidden), for_people=True)
    config.add_notfound_view(_safely(not_found, for_programs.not_found), for_people=True)
