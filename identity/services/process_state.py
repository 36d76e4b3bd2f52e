"""ProcessState: what services need of the process that runs them."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from identity.crypto.sealing import Sealer
from identity.domain.instance import Instance
from identity.domain.managers import Role
from identity.hashing import Hasher
from identity.services.access import Deny
from identity.services.choices import Choices
from identity.services.last_uses import LastUses
from identity.services.outbox import Delivery
from identity.services.policies import PolicyCache
from identity.services.signing_keys import KeyRing
from identity.settings import Settings


@dataclass
class ProcessState:
    """What a process keeps for all its requests."""

    settings: Settings
    ring: KeyRing
    sealer: Sealer
    hasher: Hasher
    roles: Mapping[str, Role]
    deny: Deny | None
    choices: Choices
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)
    known_bad: Container[str] = frozenset()
    policy_cache: PolicyCache = field(default_factory=PolicyCache)
    uses: LastUses = field(default_factory=LastUses)
    instance: Instance | None = None
