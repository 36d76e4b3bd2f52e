"""Unlinked: an account elsewhere that belongs to nobody here, and waits with its sign-in to be linked."""

from dataclasses import dataclass
from typing import ClassVar

from identity.domain.records import RecordNamespace
from identity.domain.sessions import PendingAuthorization
from identity.domain.upstream_providers import UpstreamProvider
from identity.plugins.upstream.linked_identities import external_user_label
from identity.plugins.upstream.provider_clients import ExternalUser
from identity.provider.context import Context
from identity.provider.interaction import Interaction, SignIn
from identity.services.container import Services
from identity.services.records import RecordService
from identity.services.sign_ins import STRONGEST_PROOF_STEP

_RECORD_KIND = "unlinked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlinkedIdentity:
    """Who has signed in elsewhere, at which provider, and what people know it as."""

    provider: UpstreamProvider
    external_user: ExternalUser
    name: str


def store_unlinked_identity(
    records: RecordService, pending: PendingAuthorization, provider: UpstreamProvider, external_user: ExternalUser
) -> None:
    """Keep it for this very sign-in, as long as that lasts; the last one counts."""
    kept = {
        "provider": provider.id,
        "issuer": external_user.issuer,
        "subject": external_user.subject,
        "name": external_user_label(external_user.claims),
    }
    records.delete(_RECORD_KIND, pending.id)
    records.add(_RECORD_KIND, pending.id, kept, expires_at=pending.expires_at, seal=True)


def find_unlinked_identity(
    services: Services, name_space: RecordNamespace, pending: PendingAuthorization
) -> UnlinkedIdentity | None:
    """What waits with this sign-in, if its provider is of use."""
    record = services.record_service(name_space).find(_RECORD_KIND, pending.id)
    provider = None if record is None else services.upstream_providers.find(record.value["provider"])
    if record is None or provider is None or not provider.is_usable:
        return None
    kept = record.value
    external_user = ExternalUser(issuer=kept["issuer"], subject=kept["subject"], claims={"name": kept["name"]})
    return UnlinkedIdentity(provider=provider, external_user=external_user, name=kept["name"])


def redeem_unlinked_identity(records: RecordService, pending: PendingAuthorization) -> bool:
    """True for one of racing callers."""
    return records.consume(_RECORD_KIND, pending.id) is not None


class LinkIdentityInteraction(Interaction):
    """Somebody who came from elsewhere, and was nobody here, has proved in the same sign-in who they are."""

    name = "link_identity"
    runs_after_authentication = True
    error_description: ClassVar[str] = "The user has to act on a page: to say whether to link an account."

    def __init__(self, name_space: RecordNamespace) -> None:
        self._name_space = name_space

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until they have answered. Who only has a session at this browser is not asked: it may be another's."""
        if (
            sign_in.pending is None
            or sign_in.authenticated_subject is None
            or not sign_in.has_completed(STRONGEST_PROOF_STEP)
        ):
            return False
        if sign_in.step_up_requirement is not None:
            return False
        return find_unlinked_identity(context.services, self._name_space, sign_in.pending) is not None

    def path(self, sign_in: SignIn) -> str:
        """The question."""
        return "upstream/link"
