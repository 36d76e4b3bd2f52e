"""Back-channel logout (OpenID Connect Back-Channel Logout 1.0): notifies applications when a session ends.

Whenever a session ends by a decision, each application that got tokens in it and has an address for this is sent a
logout token. Decisions are: signing out, also by an application or by a manager, a changed or reset password, a
compromised, deactivated or deleted account, a single session per person, and revoked access of a person or of an
organization. Nothing is sent when a session expires, or ends because a policy changed or its organization was
deactivated: that is no moment, but a fact at the next request.

The message is queued in the transaction that ends the session, and signed when it is sent. For an organization that is
one message, however many sessions end: when its turn comes, the messages for the next people and one for those after
them replace it. Messages go to an address that managers of the application chose, so they are sent by the guarded
client only, a few at a time, and organizations take turns. A token says who signed out of which session, nothing else,
and only to those that got this session's id before.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from identity.api.crypto import ForbiddenDestination, OutboundHttpClient, new_token, sign_jwt
from identity.api.entities import ApplicationClient
from identity.api.plugins import Settings, __version__, hookimpl
from identity.api.services import AuditEvent, Delivery, DeliveryFailed, Services

#: The logout token's member of ``events`` (§2.4).
_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TOKEN_LIFETIME = timedelta(minutes=2)
_TIMEOUT_SECONDS = 5
_LOG_NAME = "back-channel logout"
#: How many pages of people are read in search of a session that ended.
_MOST_PAGES = 10
#: The member that only messages about an organization have.
_ORGANIZATION = "organization_id"

#: A content to queue, and the organization whose turn it takes.
_Content = tuple[bytes, str | None]


class LogoutDelivery(Delivery):
    """Sends logout tokens; retried for a day."""

    kind = "back-channel logout"
    message_lifetime = timedelta(days=1)
    max_delay = timedelta(hours=1)
    max_concurrent = 10

    def __init__(self, settings: Settings) -> None:
        self._issuer = settings.issuer_url
        self._client = OutboundHttpClient(
            networks=OutboundHttpClient.parse_networks(settings.allowed_networks), seconds=_TIMEOUT_SECONDS
        )

    def queue_event(self, event: AuditEvent, services: Services) -> None:
        """One message for each application and ended session, or one for all sessions of an organization."""
        if event.object_id is None:
            return
        if event.event == "organization.access_revoked":
            services.outbox.queue(
                self.kind, _organization_content(event.object_id, event.at), organization_id=event.object_id
            )
        elif event.event in ("session.ended", AuditEvent.IMPERSONATION_ENDED):
            # Without an id all sessions of the user ended that end now.
            only = event.detail.get("session_id")
            clients = services.storage.tokens.list_logout_clients([event.object_id], event.at)
            for content, organization_id in _session_contents(item for item in clients if only in (None, item[1])):
                services.outbox.queue(self.kind, content, organization_id=organization_id)

    def prepare(self, content: bytes, services: Services) -> bytes | Sequence[_Content] | None:
        """The address and a new logout token (§2.4); None if the application is gone, deactivated or has no address any
        more. For an organization the messages for the next people and one for those after them."""
        about = json.loads(content)
        if _ORGANIZATION in about:
            return _next_contents(about, services)
        client = services.applications.find_client(about["client_id"])
        if client is None or not client.is_active or not client.application.backchannel_logout_uri:
            return None
        key_id, key = services.signing_keys.current_signing_key(client.application.id_token_signed_response_alg)
        issued_at = int(services.now.timestamp())
        claims = {
            "iss": self._issuer,
            "aud": client.id,
            "iat": issued_at,
            "exp": issued_at + int(_TOKEN_LIFETIME.total_seconds()),
            "jti": new_token(),
            "events": {_EVENT: {}},
            "sub": services.subject_identifiers.identify(about["sub"], client),
            "sid": about["sid"],
        }
        token = sign_jwt(claims, key, key_id=key_id, typ="logout+jwt")
        return json.dumps({"uri": client.application.backchannel_logout_uri, "logout_token": token}).encode()

    def send(self, content: bytes) -> None:
        """Post the token (§2.5). Raises DeliveryFailed for any status but 2xx."""
        message = json.loads(content)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": f"identity/{__version__}"}
        body = urlencode({"logout_token": message["logout_token"]}).encode()
        try:
            answer = self._client.send("POST", message["uri"], headers=headers, body=body)
        except ForbiddenDestination:
            raise DeliveryFailed("the address is not public") from None
        except (OSError, HTTPException, ValueError):
            # The same for a name that is unknown and one with an internal address: names cannot be probed.
            raise DeliveryFailed("the address cannot be reached") from None
        if not 200 <= answer.status < 300:
            raise DeliveryFailed(f"the application answered {answer.status}")

    def record(self, services: Services, message: Any, given_up: str = "") -> None:
        if not given_up:
            self._log(services, message)

    def record_failure(self, services: Services, message: Any, reason: str) -> None:
        self._log(services, message, reason)

    def _log(self, services: Services, message: Any, problem: str = "") -> None:
        about = json.loads(services.outbox.unseal(message))
        if _ORGANIZATION in about:
            return
        services.figures.log_message(about["client_id"], _LOG_NAME, user_id=about["sub"], problem=problem)


def _organization_content(organization_id: str, ended_at: datetime, position: Sequence[str] = ()) -> bytes:
    """What is queued for the sessions of an organization that ended at this moment: of its people after the
    position."""
    about = {_ORGANIZATION: organization_id, "ended_at": ended_at.isoformat(), "position": position}
    return json.dumps(about).encode()


def _next_contents(about: Mapping[str, Any], services: Services) -> list[_Content]:
    organization_id, ended_at = about[_ORGANIZATION], datetime.fromisoformat(about["ended_at"])
    position = about["position"]
    for _ in range(_MOST_PAGES):
        clients, position = services.sessions.page_logout_clients(organization_id, ended_at, position)
        if clients or not position:
            break
    contents = list(_session_contents(clients))
    if position:
        contents.append((_organization_content(organization_id, ended_at, position), organization_id))
    return contents


def _session_contents(clients: Iterable[tuple[str, str, ApplicationClient]]) -> Iterator[_Content]:
    for user_id, session_id, client in clients:
        if client.application.backchannel_logout_uri:
            content = {"client_id": client.id, "sub": user_id, "sid": session_id}
            yield json.dumps(content).encode(), client.responsible_organization_id or None


class BackChannelLogoutPlugin:
    """Tells applications when a session ends, by a request to their server (OpenID Connect Back-Channel Logout)."""

    hookspecs = 1

    @hookimpl
    def identity_deliveries(self, settings: Settings) -> Iterable[Delivery]:
        """The delivery of logout tokens."""
        return [LogoutDelivery(settings)]

    @hookimpl
    def identity_discovery(self, document: Mapping[str, object]) -> Mapping[str, object]:
        """Both members of the specification: each token has the session's id."""
        return {"backchannel_logout_supported": True, "backchannel_logout_session_supported": True}
