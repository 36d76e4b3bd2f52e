"""Back-channel logout (OpenID Connect Back-Channel Logout 1.0): notifies applications when a session ends.

Whenever a session ends by a decision, each application that got tokens in it and has an address for this is sent a
logout token. Decisions are: signing out, also by an application or by a manager, a changed or reset password, a
compromised, deactivated or deleted account, and a single session per person. Nothing is sent when a session expires, or
ends because a policy changed or its organization was deactivated: that is no moment, but a fact at the next request.

The message is queued in the transaction that ends the session, and signed when it is sent. It goes to an address that
managers of the application chose, so it is sent by the guarded client only, a few at a time, and organizations take
turns. It says who signed out of which session, nothing else, and only to those that got this session's id before.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from identity.api.crypto import ForbiddenDestination, OutboundHttpClient, new_token, sign_jwt
from identity.api.plugins import Settings, __version__, hookimpl
from identity.api.services import AuditEvent, Delivery, DeliveryFailed, Services

#: The logout token's member of ``events`` (§2.4).
_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_TOKEN_LIFETIME = timedelta(minutes=2)
_TIMEOUT_SECONDS = 5
_LOG_NAME = "back-channel logout"


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
        """One message for each application and ended session."""
        if event.event not in ("session.ended", AuditEvent.IMPERSONATION_ENDED) or event.object_id is None:
            return
        # Without an id all sessions of the user ended that end now.
        only = event.detail.get("session_id")
        for session_id, client in services.storage.tokens.list_logout_clients(event.object_id, event.at):
            if client.application.backchannel_logout_uri and only in (None, session_id):
                content = {"client_id": client.id, "sub": event.object_id, "sid": session_id}
                services.outbox.queue(
                    self.kind, json.dumps(content).encode(), organization_id=client.responsible_organization_id or None
                )

    def prepare(self, content: bytes, services: Services) -> bytes | None:
        """The address and a new logout token (§2.4); None if the application is gone, deactivated or has no address any
        more."""
        about = json.loads(content)
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
        services.figures.log_message(about["client_id"], _LOG_NAME, user_id=about["sub"], problem=problem)


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
