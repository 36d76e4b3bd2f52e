"""The state of pending upstream sign-ins: bound to the provider and the purpose, redeemed once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from identity.api.crypto import new_token
from identity.api.entities import UpstreamProvider
from identity.api.services import RecordService
from identity.plugins.upstream.provider_clients import AuthorizationState

_RECORD_KIND = "state"
_LIFETIME = timedelta(minutes=15)


class UpstreamSignInPurpose(StrEnum):
    """The purpose of an upstream sign-in."""

    SIGN_IN = "sign_in"
    LINK = "link"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpstreamSignIn:
    """``origin_id`` is the id of the pending sign-in, or of the session that started it."""

    provider_id: str
    purpose: UpstreamSignInPurpose
    origin_id: str
    authorization_state: AuthorizationState


def store_state(
    records: RecordService,
    provider: UpstreamProvider,
    purpose: UpstreamSignInPurpose,
    origin_id: str,
    *,
    login_url: str,
    now: datetime,
    anew: bool,
) -> AuthorizationState:
    """Store the state of a redirect to a provider."""
    state = new_token()
    content = {
        "provider": provider.id,
        "purpose": purpose.value,
        "of": origin_id,
        "nonce": new_token(),
        "verifier": new_token(),
        "redirect_uri": f"{login_url}{provider.callback_path}",
        "at": int(now.timestamp()),
        "anew": anew,
    }
    records.add(_RECORD_KIND, state, content, expires_at=now + _LIFETIME, seal=True)
    return _parse_state(state, content).authorization_state


def find_state(records: RecordService, state: str) -> PendingUpstreamSignIn | None:
    """The pending sign-in of this state, without redeeming it."""
    record = records.find(_RECORD_KIND, state)
    return None if record is None else _parse_state(state, record.value)


def _parse_state(state: str, content: Mapping[str, Any]) -> PendingUpstreamSignIn:
    authorization_state = AuthorizationState(
        state=state,
        nonce=content["nonce"],
        code_verifier=content["verifier"],
        redirect_uri=content["redirect_uri"],
        started_at=datetime.fromtimestamp(content["at"], UTC),
        requires_reauthentication=content["anew"],
    )
    return PendingUpstreamSignIn(
        provider_id=content["provider"],
        purpose=UpstreamSignInPurpose(content["purpose"]),
        origin_id=content["of"],
        authorization_state=authorization_state,
    )


def redeem_state(records: RecordService, state: str) -> bool:
    """True for exactly one of concurrent callers."""
    return records.consume(_RECORD_KIND, state) is not None
