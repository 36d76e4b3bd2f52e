"""What waits for people who were sent elsewhere: bound to the provider, to what it was begun for, and used once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from identity.crypto.secrets import new_token
from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.upstream.clients import Begun
from identity.services.records import Records

_KIND = "state"
_LIFETIME = timedelta(minutes=15)


class Purpose(StrEnum):
    """What a sign-in elsewhere was begun for."""

    SIGN_IN = "sign_in"
    LINK = "link"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """``of`` is the id of the sign-in that waits here, or of the session in which it was begun."""

    provider_id: str
    purpose: Purpose
    of: str
    begun: Begun


def begin(
    records: Records,
    provider: UpstreamProvider,
    purpose: Purpose,
    of: str,
    *,
    login_url: str,
    now: datetime,
    anew: bool,
) -> Begun:
    """Remember that somebody is sent there."""
    begun = Begun(
        state=new_token(),
        nonce=new_token(),
        verifier=new_token(),
        redirect_uri=f"{login_url}{provider.return_path}",
        at=now,
        anew=anew,
    )
    kept = {
        "provider": provider.id,
        "purpose": purpose.value,
        "of": of,
        "nonce": begun.nonce,
        "verifier": begun.verifier,
        "redirect_uri": begun.redirect_uri,
        "at": int(now.timestamp()),
        "anew": anew,
    }
    records.add(_KIND, begun.state, kept, expires_at=now + _LIFETIME, seal=True)
    return begun


def find(records: Records, state: str) -> Waiting | None:
    """What was begun with this state, which is not used up."""
    record = records.find(_KIND, state)
    if record is None:
        return None
    kept = record.value
    begun = Begun(
        state=state,
        nonce=kept["nonce"],
        verifier=kept["verifier"],
        redirect_uri=kept["redirect_uri"],
        at=datetime.fromtimestamp(kept["at"], record.created_at.tzinfo),
        anew=kept["anew"],
    )
    return Waiting(provider_id=kept["provider"], purpose=Purpose(kept["purpose"]), of=kept["of"], begun=begun)


def use_up(records: Records, state: str) -> bool:
    """True for one of racing callers."""
    return records.take(_KIND, state) is not None
