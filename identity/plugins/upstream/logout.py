"""Logout at the provider (OpenID Connect RP-Initiated Logout), if its settings enable it.

The local session ends first. The provider and the ID token hint are sealed with the logout request, which is bound
to the browser; after any failure the user is still logged out here and returns to the application.
"""

from datetime import datetime
from urllib.parse import urlencode

from pyramid.request import Request
from pyramid.response import Response

from identity.api.endpoints import OAuthError, Parameters
from identity.api.entities import Subject, UpstreamProvider
from identity.api.services import Record, RecordNamespace, Services
from identity.api.sign_in import LogoutHandler, SignedInAccount, SignInUnavailable, SignOutPage
from identity.plugins.upstream.http_client import ProviderResponseError, ProviderUnreachable
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.plugins.upstream.provider_registry import get_provider_registry, plugin_records, redirect_off_site
from identity.plugins.upstream.provider_selection import SIGN_IN_METHOD

#: The post-logout redirect URI, which must be registered at the provider.
POST_LOGOUT_PATH = f"{UpstreamProvider.CALLBACK_PATH}/signed-out"
#: Redirects to the provider, for a pending logout request.
LOGOUT_PATH = f"{UpstreamProvider.CALLBACK_PATH}/sign-out/{{request}}"

_SESSION_RECORD_KIND, _LOGOUT_RECORD_KIND = "session", "leaving"
#: A longer ID token does not fit into a URL; the logout then has no hint.
_MAX_ID_TOKEN_HINT_LENGTH = 8192


def store_logout_state(
    request: Request, provider: UpstreamProvider, subject: Subject, external_user: ExternalUser
) -> None:
    """Store what a logout at the provider needs, for the lifetime of the new session."""
    services: Services = request.services
    if not provider.sign_out_there or not external_user.id_token:
        return
    hint = external_user.id_token if len(external_user.id_token) <= _MAX_ID_TOKEN_HINT_LENGTH else ""
    content = {"provider": provider.id, "id_token": hint}
    ends_at = services.sessions.new_session_end(subject)
    key, user_id = _key(subject.user.id, services.now), subject.user.id
    plugin_records(request).add(_SESSION_RECORD_KIND, key, content, user_id=user_id, expires_at=ends_at, seal=True)


class UpstreamLogoutHandler(LogoutHandler):
    """Logout at the provider of the session's sign-in."""

    name = "upstream"

    def __init__(self, name_space: RecordNamespace) -> None:
        self._name_space = name_space

    def handles(self, account: SignedInAccount, services: Services) -> bool:
        """True if the provider's settings enable it."""
        records = services.record_service(self._name_space)
        found = (records.find(_SESSION_RECORD_KIND, key) for key in _record_keys(account))
        return any(_find_active_provider(record, services) is not None for record in found)

    def begin_logout(self, account: SignedInAccount, request_id: str, services: Services) -> str:
        """The path of the redirect; its data is bound to the logout request and redeemed by its browser."""
        records = services.record_service(self._name_space)
        expires_at = services.now + services.sign_ins.lifetime
        for key in _record_keys(account):
            record = records.consume(_SESSION_RECORD_KIND, key)
            if record is not None:
                records.add(_LOGOUT_RECORD_KIND, request_id, record.value, expires_at=expires_at, seal=True)
        return LOGOUT_PATH.format(request=request_id)


def start_logout(request: Request) -> Response:
    """303 to the provider's end session endpoint, or to the final page if there is none."""
    request_id, services = request.matchdict["request"], request.services
    try:
        services.sign_ins.find(request_id, request.browser_state.sign_ins.get(request_id))
    except SignInUnavailable:
        return SignOutPage.finish_logout(request, "")
    # Committed: it is redeemed whatever follows, and no lock is held during requests to the provider.
    redeemed = request.run_once("leaving", lambda: plugin_records(request).consume(_LOGOUT_RECORD_KIND, request_id))
    provider = _find_active_provider(redeemed, request.services)
    address = None if provider is None else _logout_url(request, provider, redeemed.value["id_token"])
    if address is None:
        return SignOutPage.finish_logout(request, request_id)
    return redirect_off_site(request, address)


def _logout_url(request: Request, provider: UpstreamProvider, id_token: str) -> str | None:
    try:
        with get_provider_registry(request).provider_client(provider) as client:
            endpoint = client.end_session_endpoint()
    except (ProviderUnreachable, ProviderResponseError):
        return None
    if not endpoint:
        return None
    parameters = {
        **({"id_token_hint": id_token} if id_token else {}),
        "client_id": provider.client_id,
        "post_logout_redirect_uri": f"{request.registry.application.settings.login_url}{POST_LOGOUT_PATH}",
        "state": request.matchdict["request"],
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"


def finish_provider_logout(request: Request) -> Response:
    """Return from the provider; the state identifies the pending logout request of this browser."""
    try:
        state = Parameters.parse(request.environ.get("QUERY_STRING", "").encode("latin-1")).get("state", "")
    except OAuthError:
        state = ""
    return SignOutPage.finish_logout(request, state)


def _find_active_provider(record: Record | None, services: Services) -> UpstreamProvider | None:
    """The provider that the record names, if its settings enable the logout there."""
    provider = None if record is None else services.upstream_providers.find(record.value["provider"])
    return provider if provider is not None and provider.is_usable and provider.sign_out_there else None


def _record_keys(account: SignedInAccount) -> list[str]:
    return [_key(account.subject.user.id, item.at) for item in account.session.proofs if item.factor == SIGN_IN_METHOD]


def _key(user_id: str, at: datetime) -> str:
    return f"{user_id}\n{int(at.timestamp())}"
