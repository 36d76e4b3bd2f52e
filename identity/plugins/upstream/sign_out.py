"""Signing out at the provider too (OpenID Connect RP-Initiated Logout), where its setting says so."""

from collections.abc import Collection
from datetime import datetime
from urllib.parse import urlencode

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.sessions import SignedIn
from identity.domain.upstream_providers import RETURN_PATH, UpstreamProvider
from identity.domain.users import Subject
from identity.pages.drawing import redirect
from identity.plugins.upstream.asking import Refusal, Unreachable
from identity.plugins.upstream.clients import Somebody
from identity.plugins.upstream.desk import desk_of
from identity.plugins.upstream.ways import FACTOR
from identity.provider.endpoints.end_session import SIGNED_OUT, WAITING
from identity.provider.parameters import Parameters
from identity.services.bundle import Services

#: Where the provider sends people back to; it has to be registered there.
BACK = f"{RETURN_PATH}/signed-out"

_KIND = "session"
_LONGEST_STATE = 100


def remember(request: Request, provider: UpstreamProvider, subject: Subject, somebody: Somebody) -> None:
    """Keep what it takes to sign out there, for as long as the session may last that begins now."""
    services: Services = request.services
    if not provider.sign_out_there or not somebody.id_token:
        return
    kept = {"provider": provider.id, "id_token": somebody.id_token}
    ends_at = services.sessions.end_of(subject)
    key = _key(subject.user.id, services.now)
    records = services.records(desk_of(request).name_space)
    records.add(_KIND, key, kept, user_id=subject.user.id, expires_at=ends_at, seal=True)


def way_out(request: Request, accounts: Collection[SignedIn], waiting: str | None) -> str | None:
    """Where somebody signs out who has signed in elsewhere; None if they stay here."""
    desk, services = desk_of(request), request.services
    records = services.records(desk.name_space)
    for account in accounts:
        for proof in account.session.proofs:
            taken = records.take(_KIND, _key(account.subject.user.id, proof.at)) if proof.factor == FACTOR else None
            if taken is None:
                continue
            provider = services.upstream_providers.find(taken.value["provider"])
            address = None if provider is None else _address(request, provider, taken.value["id_token"], waiting)
            if address is not None:
                return address
    return None


def _address(request: Request, provider: UpstreamProvider, id_token: str, waiting: str | None) -> str | None:
    if not provider.usable or not provider.sign_out_there:
        return None
    request.commit()
    try:
        with desk_of(request).client(provider) as client:
            endpoint = client.sign_out_address()
    except (Unreachable, Refusal):
        return None
    if not endpoint:
        return None
    said = {
        "id_token_hint": id_token,
        "client_id": provider.client_id,
        "post_logout_redirect_uri": f"{request.registry.identity.settings.login_url}{BACK}",
        **({"state": waiting} if waiting else {}),
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(said)}"


def back(request: Request) -> Response:
    """Whoever has signed out there: to the page that says that it is done, and leads back to the application."""
    query = Parameters.parse(request.environ.get("QUERY_STRING", "").encode("latin-1"))
    state = query.get("state", "")
    named = state and len(state) <= _LONGEST_STATE and state.isascii()
    return redirect(request, f"{SIGNED_OUT}?{urlencode({WAITING: state})}" if named else SIGNED_OUT)


def _key(user_id: str, at: datetime) -> str:
    return f"{user_id}\n{int(at.timestamp())}"
