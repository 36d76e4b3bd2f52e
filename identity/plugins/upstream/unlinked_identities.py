"""An unlinked identity has no local account; it waits with its sign-in to be linked."""

from dataclasses import dataclass
from typing import ClassVar

from identity.api.endpoints import Context
from identity.api.entities import UpstreamProvider
from identity.api.services import RecordNamespace, RecordService, Services
from identity.api.sign_in import Interaction, PendingAuthorization, SignIn
from identity.plugins.upstream.linked_identities import external_user_label
from identity.plugins.upstream.provider_clients import ExternalUser

_RECORD_KIND = "unlinked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlinkedIdentity:
    """The identity, its provider, and its name for users."""

    provider: UpstreamProvider
    external_user: ExternalUser
    name: str


def store_unlinked_identity(
    records: RecordService, pending: PendingAuthorization, provider: UpstreamProvider, external_user: ExternalUser
) -> None:
    """Store it for this sign-in; the last one counts."""
    content = {
        "provider": provider.id,
        "issuer": external_user.issuer,
        "subject": external_user.subject,
        "name": external_user_label(external_user.claims),
    }
    records.delete(_RECORD_KIND, pending.id)
    records.add(_RECORD_KIND, pending.id, content, expires_at=pending.expires_at, seal=True)


def find_unlinked_identity(
    services: Services, name_space: RecordNamespace, pending: PendingAuthorization
) -> UnlinkedIdentity | None:
    """The unlinked identity of this sign-in, if its provider can be used."""
    record = services.record_service(name_space).find(_RECORD_KIND, pending.id)
    provider = None if record is None else services.upstream_providers.find(record.value["provider"])
    if record is None or provider is None or not provider.is_usable:
        return None
    content = record.value
    external_user = ExternalUser(issuer=content["issuer"], subject=content["subject"], claims={"name": content["name"]})
    return UnlinkedIdentity(provider=provider, external_user=external_user, name=content["name"])


def redeem_unlinked_identity(records: RecordService, pending: PendingAuthorization) -> bool:
    """True for exactly one of concurrent callers."""
    return records.consume(_RECORD_KIND, pending.id) is not None


class LinkIdentityInteraction(Interaction):
    """The user of an unlinked identity has authenticated in the same sign-in."""

    name = "link_identity"
    runs_after_authentication = True
    error_description: ClassVar[str] = "The user has to act on a page: to say whether to link an account."

    def __init__(self, name_space: RecordNamespace) -> None:
        self._name_space = name_space

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True until the user answers. An existing session is not enough: it may be another user's."""
        if (
            sign_in.pending is None
            or sign_in.authenticated_subject is None
            or not sign_in.has_completed(PendingAuthorization.STRONGEST_PROOF_STEP)
        ):
            return False
        if sign_in.step_up_requirement is not None:
            return False
        return find_unlinked_identity(context.services, self._name_space, sign_in.pending) is not None

    def path(self, sign_in: SignIn) -> str:
        return "upstream/link"
