"""Endpoint: a protocol endpoint as data, from which routes, discovery and tests are derived."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from identity.domain.tokens import PresentedAccessToken
from identity.provider.cacheable_document import CachedDocumentFinder
from identity.provider.context import Context
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse


class EndpointHost(StrEnum):
    """Which of the three hosts serves an endpoint."""

    ISSUER = "issuer"
    BASE = "base"
    LOGIN = "login"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One protocol endpoint.

    ``discovery_member`` is its member of the discovery document, if any. ``writes`` says whether a request may write
    and so needs a transaction, ``allows_cors`` whether scripts of registered applications may call it,
    ``allows_stale_reads`` whether its data may be as old as the operator allows. With ``uses_storage`` False it
    never waits for the storage and is answered at once, whatever storage and threads are doing. ``is_blocking`` says
    that it waits for something other than the storage, outside of ``identity.concurrency``, and runs in a thread.
    Discovery lists the client authentication methods of an endpoint that ``authenticates_clients``, without those
    that prove nothing if it ``refuses_public_clients``. At the login host an endpoint gets the browser's cookies; while
    a manager is signed in as a person there, it is called only if it ``allows_impersonators``, and must itself refuse
    them what only the person may do. ``cached_document`` finds the document that a GET returns to
    all clients, without reading the storage. ``token_claims`` returns what the endpoint answers about an access token,
    for the token preview: to whom presents it, or to a client that authenticates. It writes nothing, and raises
    InsufficientScope if the token opens nothing here."""

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
    authenticates_clients: bool = False
    refuses_public_clients: bool = False
    allows_impersonators: bool = False
    cached_document: CachedDocumentFinder | None = None
    token_claims: Callable[[PresentedAccessToken, Context], Mapping[str, Any]] | None = None
    handle: Callable[[ProtocolRequest, Context], ProtocolResponse]

    @property
    def path_prefix(self) -> str:
        """What paths with a variable begin with; empty if the path has none."""
        prefix, brace, _ = self.path.partition("{")
        return prefix if brace else ""
