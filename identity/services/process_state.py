"""State that services share across the requests of a process."""

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from identity.crypto.sealing import Sealer
from identity.document_cache import DocumentClient
from identity.domain.instance import Instance
from identity.domain.managers import ManagerRole
from identity.key_sets import KeySetClient
from identity.password_hashing import PasswordHasher
from identity.services.access_control import DenyHook
from identity.services.activity_collector import ActivityCollector
from identity.services.capabilities import Capabilities
from identity.services.client_metadata import ClientMetadataClient
from identity.services.last_used_tracker import LastUsedTracker
from identity.services.mail_server import MailServerCache
from identity.services.outbox import Delivery
from identity.services.policies import PolicyCache
from identity.services.signing_keys import KeyRing
from identity.settings import Settings
from identity.storage.backend import Storage


@dataclass
class ProcessState:
    settings: Settings
    key_ring: KeyRing
    sealer: Sealer
    hasher: PasswordHasher
    key_sets: KeySetClient
    documents: DocumentClient[bytes]
    manager_roles: Mapping[str, ManagerRole]
    deny_hook: DenyHook | None
    capabilities: Capabilities
    #: None if no plugin reads metadata of clients.
    client_metadata: ClientMetadataClient | None = None
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)
    password_blocklist: Container[str] = frozenset()
    mail_server_cache: MailServerCache = field(default_factory=MailServerCache)
    policy_cache: PolicyCache = field(default_factory=PolicyCache)
    last_used_tracker: LastUsedTracker = field(default_factory=LastUsedTracker)
    activity_collector: ActivityCollector = field(default_factory=ActivityCollector)
    instance: Instance | None = None
    #: A storage in a transaction of its own, for what must last even if the request fails.
    open_transaction: Callable[[], AbstractContextManager[Storage]] | None = None
