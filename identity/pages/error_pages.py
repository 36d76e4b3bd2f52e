"""Error pages: what happened, what to do, the request id. Status and headers are those of the API's error response.

The predicate ``for_people`` puts them before the exception views of ``identity.http.error_views``. They use neither
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
from identity.domain.messages import Message, gettext_lazy, ngettext_lazy
from identity.http import error_views as for_programs
from identity.http.csrf import CrossSiteRequest, InvalidFormToken
from identity.http.language_negotiation import RequestLanguage
from identity.http.security_policy import IMPERSONATION_DENIAL
from identity.pages.page import FormPage, Page
from identity.pages.rendering import PageRenderer, see_other
from identity.pages.translation import Translator
from identity.provider.errors import (
    OAuthError,
    RequestTooLarge,
    UnavailableClientMetadata,
    UnknownApplication,
    UnredirectableError,
    UntrustedRedirect,
)
from identity.provider.logout import CONFIRMATION_PATH
from identity.storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from identity.application import IdentityApplication

log = logging.getLogger(__name__)

_RESTART_ADVICE = gettext_lazy(
    "Go back to the application and start again. If it happens again, tell the people who run it and give them the"
    " details below."
)
_UNREADABLE_TITLE = gettext_lazy("This request cannot be read")

#: The root path redirects to the console, the account or the sign-in.
_START_LINK = (gettext_lazy("Go to the start page"), "/")
_DEAD_END_STATUSES = (403, 404)

View = Callable[[Any, Request], Response]


def render_error_page(
    request: Request,
    status: int,
    title: str,
    texts: Iterable[str] = (),
    *,
    advice: str | None = None,
    error: str | None = None,
    detail: str | None = None,
    received: str = "",
    action: tuple[str, str] | None = None,
    language: str | None = None,
) -> Response:
    """A page in the login frame. ``action`` is a link (label and href). ``error`` and ``detail`` help support;
    ``received``, a rejected URI, helps the developer.
    """
    pages: PageRenderer = request.registry.pages
    translator = pages.catalogs.translator(language or RequestLanguage.negotiate(request))
    variables = {
        "title": translator.gettext(title),
        "texts": [translator.gettext(text) for text in texts],
        "advice": None if advice is None else translator.gettext(advice),
        "action": None if action is None else (translator.gettext(action[0]), action[1]),
        # The user may have access with another account.
        "sign_out": CONFIRMATION_PATH if status in _DEAD_END_STATUSES and request.browser_state.sessions else None,
        "facts_shown": _error_details(request, translator, error, detail, received) if status >= 400 else [],
        "failed": status >= 400,
    }
    return pages.render(request, "error.html", variables, status=status, language=translator.language)


def _error_details(
    request: Request, translator: Translator, error: str | None, detail: str | None, sent: str
) -> list[tuple[str, Markup]]:
    identity: IdentityApplication = request.registry.application
    now = identity.clock()
    known = [
        (translator.gettext("Error"), error and Markup("<code>{}</code>").format(error)),
        (translator.gettext("Detail"), detail and Markup("{}").format(_translate_text(translator, detail))),
        (translator.gettext("Address that was requested"), sent and Markup("<code>{}</code>").format(sent)),
        (translator.gettext("Request id"), Markup("<code>{}</code>").format(request.request_id)),
        (
            translator.gettext("Time"),
            Markup('<time datetime="{}">{} UTC</time>').format(
                now.strftime("%Y-%m-%dT%H:%M:%SZ"), now.strftime("%Y-%m-%d %H:%M:%S")
            ),
        ),
    ]
    return [(term, value) for term, value in known if value]


def _translate_text(translator: Translator, text: str) -> str:
    """Translate our own messages; texts of plugins and of the protocol stay as they are."""
    return translator.gettext(text) if isinstance(text, Message) else text


def oauth_error(error: OAuthError, request: Request) -> Response:
    """A protocol error that is not sent to the client."""
    title: str = _UNREADABLE_TITLE
    text: str = gettext_lazy("The data sent does not fit this page.")
    advice: str | None = _RESTART_ADVICE
    if isinstance(error, UnknownApplication):
        title = gettext_lazy("This application is unknown")
        text = gettext_lazy("It is not registered here, or no longer active. Nothing was sent.")
    elif isinstance(error, UnavailableClientMetadata):
        title = gettext_lazy("This application cannot be verified")
        text = gettext_lazy(
            "Its description cannot be read from its address, or is not accepted here. Nothing was sent."
        )
    elif isinstance(error, UntrustedRedirect):
        title, text = gettext_lazy("We cannot send you back to this application"), _untrusted_redirect_message(error)
    elif isinstance(error, UnredirectableError):
        text = ""
    elif isinstance(error, RequestTooLarge):
        title, advice = gettext_lazy("This is too large"), None
        text = gettext_lazy("Nothing was saved. Go back and send less at once.")
    texts, code, detail = [text] if text else (), error.error, error.description
    sent = error.displayed_uri if isinstance(error, UntrustedRedirect) else ""
    page = render_error_page(
        request, error.status, title, texts, advice=advice, error=code, detail=detail, received=sent
    )
    page.headers.update(error.headers)
    return page


def _untrusted_redirect_message(error: UntrustedRedirect) -> str:
    if error.application is None:
        return gettext_lazy(
            "The application asked us to return you to an address that is not registered for it. To protect you, we"
            " stopped here. Nothing was sent."
        )
    return gettext_lazy(
        "{application} asked us to return you to an address that is not registered for it. To protect you, we stopped"
        " here. Nothing was sent.",
        application=error.application.name,
    )


def not_found(error: HTTPNotFound, request: Request) -> Response:
    """404; 405 for a wrong method; 421 naming the settings to check if the host is unknown."""
    answer = for_programs.not_found_view(error, request)
    if answer.status_code == 421:
        return _misdirected_page(request)
    if answer.status_code == 405:
        texts = [gettext_lazy("This address does not accept this request.")]
        page = render_error_page(request, 405, _UNREADABLE_TITLE, texts, action=_START_LINK)
        page.headers["Allow"] = answer.headers["Allow"]
        return page
    return _not_found_page(request)


def _not_found_page(request: Request) -> Response:
    return render_error_page(
        request,
        404,
        gettext_lazy("Page not found"),
        [gettext_lazy("The address may be mistyped, or the page no longer exists.")],
        action=_START_LINK,
    )


def _misdirected_page(request: Request) -> Response:
    settings = request.registry.application.settings
    names = ("issuer_url", "base_url", "login_url")
    listed = Markup(", ").join(
        Markup('<a href="{0}"><code>{0}</code></a> (identity.{1})').format(getattr(settings, name), name)
        for name in names
    )
    return render_error_page(
        request,
        421,
        gettext_lazy("This service is not available at this host name"),
        [gettext_lazy("It is set up for these addresses: {addresses}", addresses=listed)],
        advice=gettext_lazy(
            "If you run this service: open one of these addresses, or change the settings in the ini file. Behind a"
            " proxy, have it pass the Host header on unchanged."
        ),
    )


def forbidden(error: HTTPForbidden, request: Request) -> Response:
    """Redirect to the sign-in without a session; otherwise name the missing permission and audit the refusal."""
    if request.identity is None:
        query = urlencode({Page.TARGET_PARAM: request.path_qs if request.method in ("GET", "HEAD") else request.path})
        return see_other(request, f"{Page.LOGIN_PATH}?{query}")
    for_programs.forbidden_view(error, request)
    return _forbidden_page(request, for_programs.denial_reason(error))


def domain_error(error: DomainError, request: Request) -> Response:
    answer = for_programs.domain_error_view(error, request)
    if isinstance(error, Denied):
        return _forbidden_page(request, error.args[0])
    if answer.status_code == 404:
        return _not_found_page(request)
    if answer.status_code == 500:
        return _server_error_page(request)
    texts = [*error.fields.values()] if isinstance(error, Invalid) else [error.args[0] if error.args else ""]
    has_query = request.method == "GET" and request.query_string
    action = (gettext_lazy("Reload the page"), request.path) if has_query else _START_LINK
    return render_error_page(request, answer.status_code, _UNREADABLE_TITLE, texts, action=action)


def _forbidden_page(request: Request, reason: str) -> Response:
    account = vars(request).get("signed_in_account")
    if account is not None and account.session.is_impersonated:
        return render_error_page(
            request,
            403,
            gettext_lazy("Only {name} can do this", name=account.subject.user.display_name),
            [IMPERSONATION_DENIAL],
            advice=gettext_lazy("Choose End at the top to return to your own session."),
            action=(gettext_lazy("Go to the account"), Page.ACCOUNT_PATH),
        )
    return render_error_page(
        request,
        403,
        gettext_lazy("You do not have access to this page"),
        advice=gettext_lazy("Ask an owner of the organization for the missing permission, or use another account."),
        detail=reason,
        action=_START_LINK,
    )


def cross_site_request(error: CrossSiteRequest, request: Request) -> Response:
    return render_error_page(
        request,
        403,
        gettext_lazy("We did not accept this form"),
        [gettext_lazy("Your browser reports that another site sent it. To protect you, nothing was changed.")],
        advice=gettext_lazy("Open the page here and send the form from there."),
        action=_START_LINK,
    )


def expired_form(error: InvalidFormToken, request: Request) -> Response:
    return render_error_page(
        request,
        422,
        gettext_lazy("This page was open for too long"),
        [FormPage.EXPIRED_FORM_MESSAGE],
        action=_START_LINK,
    )


def unavailable(error: Exception, request: Request) -> Response:
    """503 while the storage is unavailable or damaged; an application that awaits a protocol response gets that
    instead.
    """
    answer: Response = for_programs.unavailable_view(error, request)
    if for_programs.pending_redirect_target(request) is not None:
        return answer
    return _unavailable_page(request, int(answer.headers.get("Retry-After", "5")))


def http_exception(error: HTTPException, request: Request) -> Response:
    if error.status_code >= 500:
        return _server_error_page(request)
    return render_error_page(request, error.status_code, _UNREADABLE_TITLE, action=_START_LINK)


def undecodable_path(error: UnicodeDecodeError, request: Request) -> Response:
    """A path that is not UTF-8 names no page."""
    return _not_found_page(request)


def internal_server_error(error: Exception, request: Request) -> Response:
    """500 with the request id only; the log has the details."""
    answer: Response = for_programs.unexpected_error_view(error, request)
    return answer if for_programs.pending_redirect_target(request) is not None else _server_error_page(request)


def _server_error_page(request: Request) -> Response:
    return render_error_page(
        request,
        500,
        gettext_lazy("Something went wrong on our side"),
        advice=gettext_lazy("Try again. If it happens again, give the people who run this service the request id."),
    )


def _unavailable_page(request: Request, seconds: int) -> Response:
    response = render_error_page(
        request,
        503,
        gettext_lazy("We are busy just now"),
        [ngettext_lazy("Try again in {n} second.", "Try again in {n} seconds.", seconds)],
    )
    response.headers["Retry-After"] = str(seconds)
    return response


def _with_fallback(view: View, api_view: View) -> View:
    """The page, or the API's response if rendering fails, for example in an operator's template."""

    def draw(error: Any, request: Request) -> Response:
        try:
            return view(error, request)
        except Exception:
            log.exception("request %s: the error page cannot be drawn", request.request_id)
            return api_view(error, request)

    return draw


def includeme(config: Configurator) -> None:
    pairs: dict[type[Exception], tuple[View, View]] = {
        OAuthError: (oauth_error, for_programs.oauth_error_view),
        DomainError: (domain_error, for_programs.domain_error_view),
        **dict.fromkeys(
            (StorageUnavailable, *for_programs.DAMAGED_DATA_ERRORS), (unavailable, for_programs.unavailable_view)
        ),
        HTTPException: (http_exception, for_programs.http_exception_view),
        CrossSiteRequest: (cross_site_request, for_programs.cross_site_view),
        InvalidFormToken: (expired_form, for_programs.invalid_form_token_view),
        UnicodeDecodeError: (undecodable_path, for_programs.undecodable_url_view),
        Exception: (internal_server_error, for_programs.unexpected_error_view),
    }
    for kind, (view, programs_view) in pairs.items():
        config.add_exception_view(_with_fallback(view, programs_view), context=kind, for_people=True)
    config.add_forbidden_view(_with_fallback(forbidden, for_programs.forbidden_view), for_people=True)
    config.add_notfound_view(_with_fallback(not_found, for_programs.not_found_view), for_people=True)
