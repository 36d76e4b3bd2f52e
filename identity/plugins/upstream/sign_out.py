"""Signing out at the provider too (OpenID Connect RP-Initiated Logout), where its setting says so.

The session here ends first. Who has to go there, and with which hint, waits sealed with the request to sign out, which
is this browser's alone; whatever goes wrong there or on the way leaves people signed out here, and on their way home.
"""

from datetime import datetime
from urllib.parse import urlencode

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.records import NameSpace
from identity.domain.sessions import SignedIn
from identity.domain.upstream_providers import RETURN_PATH, UpstreamProvider
from identity.domain.users import Subject
from identity.http.endpoints import context_of, respond
from identity.pages.drawing import redirect
from identity.plugins.upstream.asking import Refusal, Unreachable
from identity.plugins.upstream.clients import Somebody
from identity.plugins.upstream.desk import desk_of
from identity.plugins.upstream.ways import FACTOR
from identity.provider.endpoints.end_session import go_home
from identity.provider.errors import OAuthError
from identity.provider.parameters import Parameters
from identity.provider.sign_out_way import SignOutWay
from identity.services.bundle import Services
from identity.services.sign_ins import NoSignIn

#: Where the provider sends people back to; it has to be registered there.
BACK = f"{RETURN_PATH}/signed-out"
#: Where they are sent there, whose request to sign out waits.
WAY_OUT = f"{RETURN_PATH}/sign-out/{{request}}"

_SESSION, _LEAVING = "session", "leaving"
#: A longer ID token fits no address; they sign out there without the hint.
_LONGEST_HINT = 8192


def remember(request: Request, provider: UpstreamProvider, subject: Subject, somebody: Somebody) -> None:
    """Keep what it takes to sign out there, for as long as the session may last that begins now."""
    services: Services = request.services
    if not provider.sign_out_there or not somebody.id_token:
        return
    hint = somebody.id_token if len(somebody.id_token) <= _LONGEST_HINT else ""
    kept = {"provider": provider.id, "id_token": hint}
    ends_at = services.sessions.end_of(subject)
    key = _key(subject.user.id, services.now)
    records = services.records(desk_of(request).name_space)
    records.add(_SESSION, key, kept, user_id=subject.user.id, expires_at=ends_at, seal=True)


class SignOutThere(SignOutWay):
    """At the provider where the session's person has signed in."""

    name = "upstream"

    def __init__(self, name_space: NameSpace) -> None:
        self._name_space = name_space

    def concerns(self, account: SignedIn, services: Services) -> bool:
        """True if the provider's setting says so."""
        records = services.records(self._name_space)
        kept = [one for key in _keys(account) if (one := records.find(_SESSION, key)) is not None]
        return any(_usable(one.value["provider"], services) is not None for one in kept)

    def begin(self, account: SignedIn, request_id: str, services: Services) -> str:
        """The path that leads there: what it takes is bound to the request, and used up by its browser."""
        records = services.records(self._name_space)
        expires_at = services.now + services.sign_ins.lifetime
        for key in _keys(account):
            taken = records.take(_SESSION, key)
            if taken is not None:
                records.add(_LEAVING, request_id, taken.value, expires_at=expires_at, seal=True)
        return WAY_OUT.format(request=request_id)


def leave(request: Request) -> Response:
    """303 to the provider's page for signing out; home if there is none, or it does not say where."""
    request_id, services = request.matchdict["request"], request.services
    try:
        services.sign_ins.find(request_id, request.browser.sign_ins.get(request_id))
    except NoSignIn:
        return respond(request, go_home("", request.browser, context_of(request)))
    # Committed: it is used up whatever follows, and no lock is held while the provider is asked.
    taken = request.once("leaving", lambda: services.records(desk_of(request).name_space).take(_LEAVING, request_id))
    services = request.services
    provider = None if taken is None else _usable(taken.value["provider"], services)
    address = None if taken is None or provider is None else _address(request, provider, taken.value["id_token"])
    if address is None:
        return respond(request, go_home(request_id, request.browser, context_of(request)))
    response = redirect(request, "/")
    response.headers["Location"] = address
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _address(request: Request, provider: UpstreamProvider, id_token: str) -> str | None:
    try:
        with desk_of(request).client(provider) as client:
            endpoint = client.sign_out_address()
    except (Unreachable, Refusal):
        return None
    if not endpoint:
        return None
    said = {
        **({"id_token_hint": id_token} if id_token else {}),
        "client_id": provider.client_id,
        "post_logout_redirect_uri": f"{request.registry.identity.settings.login_url}{BACK}",
        "state": request.matchdict["request"],
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(said)}"


def back(request: Request) -> Response:
    """Whoever has signed out there: home, by what waits in this browser under the state that comes back."""
    try:
        state = Parameters.parse(request.environ.get("QUERY_STRING", "").encode("latin-1")).get("state", "")
    except OAuthError:
        state = ""
    return respond(request, go_home(state, request.browser, context_of(request)))


def _usable(provider_id: str, services: Services) -> UpstreamProvider | None:
    provider = services.upstream_providers.find(provider_id)
    return provider if provider is not None and provider.usable and provider.sign_out_there else None


def _keys(account: SignedIn) -> list[str]:
    return [_key(account.subject.user.id, one.at) for one in account.session.proofs if one.factor == FACTOR]


def _key(user_id: str, at: datetime) -> str:
    return f"{user_id}\n{int(at.timestamp())}"
