"""Unlinked: an account elsewhere that belongs to nobody here, and waits with its sign-in to be linked."""

from dataclasses import dataclass
from typing import ClassVar

from identity.domain.records import NameSpace
from identity.domain.sessions import PendingAuthorization
from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.upstream.clients import Somebody
from identity.plugins.upstream.links import called
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn
from identity.services.bundle import Services
from identity.services.records import Records
from identity.services.sign_ins import STRONGEST

_KIND = "unlinked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlinked:
    """Who has signed in elsewhere, at which provider, and what people know it as."""

    provider: UpstreamProvider
    somebody: Somebody
    name: str


def keep(records: Records, pending: PendingAuthorization, provider: UpstreamProvider, somebody: Somebody) -> None:
    """Keep it for this very sign-in, as long as that lasts; the last one counts."""
    kept = {
        "provider": provider.id,
        "issuer": somebody.issuer,
        "subject": somebody.subject,
        "name": called(somebody.claims),
    }
    records.drop(_KIND, pending.id)
    records.add(_KIND, pending.id, kept, expires_at=pending.expires_at, seal=True)


def find(services: Services, name_space: NameSpace, pending: PendingAuthorization) -> Unlinked | None:
    """What waits with this sign-in, if its provider is of use."""
    record = services.records(name_space).find(_KIND, pending.id)
    provider = None if record is None else services.upstream_providers.find(record.value["provider"])
    if record is None or provider is None or not provider.usable:
        return None
    kept = record.value
    somebody = Somebody(issuer=kept["issuer"], subject=kept["subject"], claims={"name": kept["name"]})
    return Unlinked(provider=provider, somebody=somebody, name=kept["name"])


def use_up(records: Records, pending: PendingAuthorization) -> bool:
    """True for one of racing callers."""
    return records.take(_KIND, pending.id) is not None


class LinkIdentity(Interaction):
    """Somebody who came from elsewhere, and was nobody here, has proved in the same sign-in who they are."""

    name = "link_identity"
    late = True
    description: ClassVar[str] = "The user has to act on a page: to say whether to link an account."

    def __init__(self, name_space: NameSpace) -> None:
        self._name_space = name_space

    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have answered. Who only has a session at this browser is not asked: it may be another's."""
        if sign_in.pending is None or sign_in.proved is None or not sign_in.done(STRONGEST):
            return False
        if sign_in.need is not None:
            return False
        return find(context.services, self._name_space, sign_in.pending) is not None

    def path(self, sign_in: SignIn) -> str:
        """The question."""
        return "upstream/link"
