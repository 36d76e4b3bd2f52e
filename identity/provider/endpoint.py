"""Endpoint: a protocol endpoint as data, so that routes, discovery and tests are made from one table."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from identity.provider.cacheable_document import CachedDocumentFinder
from identity.provider.context import Context
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse


class EndpointHost(StrEnum):
    """On which of the three addresses an endpoint lives."""

    ISSUER = "issuer"
    BASE = "base"
    LOGIN = "login"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One protocol endpoint.

    ``discovery_member`` is its member of the discovery document, if any. ``writes`` says whether a request may write
    and so needs a transaction, ``allows_cors`` whether scripts of registered applications may call it,
    ``allows_stale_reads`` whether it may tell what was so as many seconds ago as the operator allows. With
    ``uses_storage`` False it never waits for the storage, so that it is answered at once whatever the storage and the
    threads are doing. ``is_blocking`` says that it waits for something else than the storage, and not by
    ``identity.concurrency``: then it runs in a thread. ``cached_document`` finds the document that a GET shows to
    everybody alike, without asking the storage.
    """

    name: str
    path: str
    host: EndpointHost
    methods: tuple[str, ...]
    discovery_member: str | None
    writes: bool
    allows_cors: bool = False
    allows_stale_reads: bool = False
    uses_storage: bool = True
    is_blocking: bool = False
    cached_document: CachedDocumentFinder | None = None
    handle: Callable[[ProtocolRequest, Context], ProtocolResponse]
