"""/dev/mails: the mails that would have been sent. It exists in development only, and for this machine only.

The address answers 404 unless both hold: the service keeps mails (``identity.development_mailbox``: issuer and web
server on loopback addresses, no proxy, no mail server), and the request comes from this machine, without a proxy,
for a loopback host name.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from markupsafe import Markup
from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.development_mailbox import MAILBOX_PATH, DevelopmentMailbox
from identity.http.environ_keys import FORWARDED_KEY, PEER_KEY
from identity.http.route_predicates import Predicate
from identity.http.security_headers import PAGE_POLICY
from identity.pages.page import Page

#: Headers by which proxies and tunnels mark forwarded requests.
_PROXY_HEADERS = re.compile(
    r"HTTP_(X_FORWARDED(_.*)?|FORWARDED(_FOR)?|VIA|X_REAL_IP|X_CLIENT_IP|CLIENT_IP|TRUE_CLIENT_IP|X_ORIGINAL_.*|CF_.*"
    r"|X_ENVOY_.*|X_CLUSTER_CLIENT_IP)\Z"
)
_LINK = re.compile(r"https?://[^\s<>\"]+")

#: A mail has inline styles; it loads nothing and runs no scripts.
_MAIL_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self';"
    " sandbox allow-top-navigation-by-user-activation"
)


class LoopbackClientPredicate(Predicate):
    """Route predicate ``from_here=True``: the request comes from this machine, without a proxy."""

    name = "from_here"

    def __call__(self, info: Any, request: Request) -> bool:
        environ = request.environ
        if FORWARDED_KEY in environ or any(_PROXY_HEADERS.match(name) for name in environ):
            return not self.value
        peer = environ.get(PEER_KEY) or environ.get("REMOTE_ADDR", "")
        return _is_loopback(peer) is self.value


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


class DevelopmentMailsPage(Page):
    """All stored mails, newest first."""

    template = "development_mails.html"

    def template_variables(self) -> Mapping[str, object]:
        """Each mail with its text, in which URLs are links."""
        mails = [(stored, _with_links(stored.mail.text)) for stored in _mailbox(self.request).mails()]
        return {"mails": mails, "path": MAILBOX_PATH}

    def get(self) -> Response:
        """Allows the page to frame mails as HTML."""
        response = super().get()
        response.headers["Content-Security-Policy"] = f"{PAGE_POLICY}; frame-src 'self'"
        return response


def _with_links(text: str) -> Markup:
    """The text with its URLs as links."""
    parts, end = [], 0
    for found in _LINK.finditer(text):
        parts.append(Markup('{}<a href="{}">{}</a>').format(text[end : found.start()], found[0], found[0]))
        end = found.end()
    return Markup("").join([*parts, text[end:]])


def render_mail_view(request: Request) -> Response:
    """One mail as a mail program shows it."""
    stored_mail = _mailbox(request).find(request.matchdict["mail"])
    if stored_mail is None or not stored_mail.mail.html:
        raise HTTPNotFound
    # Links open in the whole window: their pages refuse to be framed.
    text = stored_mail.mail.html.replace("<head>", '<head><base target="_top">', 1)
    response = Response(text.encode(), content_type="text/html", charset="utf-8")
    response.headers["Content-Security-Policy"] = _MAIL_POLICY
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _mailbox(request: Request) -> DevelopmentMailbox:
    mailbox: DevelopmentMailbox = request.registry.application.mailer
    return mailbox


def includeme(config: Configurator) -> None:
    """Add the pages only if mails are kept."""
    if not isinstance(config.registry.application.mailer, DevelopmentMailbox):
        return
    config.add_route_predicate("from_here", LoopbackClientPredicate)
    config.add_page(
        "development.mails", MAILBOX_PATH, DevelopmentMailsPage, permission=NO_PERMISSION_REQUIRED, from_here=True
    )
    config.add_route(
        "development.mail", f"{MAILBOX_PATH}/{{mail}}", host="login", request_method=("GET",), from_here=True
    )
    config.add_view(render_mail_view, route_name="development.mail", permission=NO_PERMISSION_REQUIRED)
