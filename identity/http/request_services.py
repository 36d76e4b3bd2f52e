"""RequestServices: the services of one run of a request, from Pyramid or ASGI."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transaction import TransactionManager

from identity.domain.audit import Actor, AuditEvent
from identity.provider.context import Context
from identity.services.container import Services
from identity.storage.backend import Storage

if TYPE_CHECKING:
    from identity.application import IdentityApplication


class RequestServices:
    """Services in a transaction of ``transactions``, or on a read connection without one. ``actor`` and ``language``
    are called when first needed. ``claimed`` are the idempotency keys that this request has committed."""

    def __init__(
        self,
        identity: "IdentityApplication",
        actor: Callable[[], Actor],
        language: Callable[[], str],
        transactions: TransactionManager | None = None,
        claimed: set[Any] | None = None,
    ) -> None:
        self._identity = identity
        self._actor = actor
        self._language = language
        self._transactions = transactions
        self._claimed_keys = set() if claimed is None else claimed
        self._services: Services | None = None
        self._read_before_write: Storage | None = None
        self._open: list[AbstractContextManager[Storage]] = []
        self._standby_session: AbstractContextManager[Storage] | None = None
        #: The context that the last endpoint was called with.
        self.context: Context | None = None

    @property
    def services(self) -> Services:
        """Created when first needed, and again after a commit."""
        services = self._services
        if services is None:
            services = self._services = self._create()
        return services

    @property
    def refusals(self) -> list[AuditEvent]:
        """Refused attempts, to be written after the transaction."""
        return [] if self._services is None else self._services.audit.refused_events

    def create_context(self) -> Context:
        """What endpoints, grants and interactions may use besides the request."""
        identity, services = self._identity, self.services
        return Context(
            services.now, identity.settings, identity.protocol_registry, lambda: identity.pyoidc_provider, services
        )

    def commit(self) -> None:
        """Commit, and begin another transaction; actor and refusals stay."""
        claimed = self.services.idempotency.claimed_keys
        self._restart_after(self._transaction_manager.commit)
        self._claimed_keys.update(claimed)

    def roll_back(self) -> None:
        """Roll back to the last commit, and begin another transaction."""
        self._restart_after(self._transaction_manager.abort)

    def begin_standby_read(self) -> bool:
        """Read from a standby, which may lag, until ``end_standby_read``; False if there is none."""
        opened = self._identity.backend.standby_session()
        if opened is None:
            return False
        self._services = self._identity.create_standby_services(opened.__enter__(), self._actor)
        self._services.committed_keys = self._claimed_keys
        self._standby_session = opened
        return True

    def end_standby_read(self) -> None:
        """Read committed data again."""
        opened, self._standby_session = self._standby_session, None
        if opened is not None:
            self.release()
            opened.__exit__(None, None, None)

    def release(self) -> None:
        """Drop the services: they form a reference cycle with the request, which only the garbage collector would
        break."""
        services, self._services = self._services, None
        if services is not None:
            services.close()

    def close(self) -> None:
        """Drop the services, and return read connections."""
        self.release()
        self.end_standby_read()
        self._read_before_write = None
        self._close_sessions()

    def _close_sessions(self) -> None:
        while self._open:
            self._open.pop().__exit__(None, None, None)

    def _restart_after(self, end: Callable[[], None]) -> None:
        before = self.services
        try:
            end()
        finally:
            # Also for error responses: each transaction that began has to end.
            self._transaction_manager.begin()
        # It may have cached what it read before.
        self._services = self._read_before_write = None
        after = self.services
        after.audit.actor = before.audit.actor
        after.audit.refused_events.extend(before.audit.refused_events)
        after.idempotency.claimed_record = before.idempotency.claimed_record
        # What follows may wait for a hash or another server, and must not keep a connection meanwhile.
        self._read_before_write = None
        self._close_sessions()

    @property
    def _transaction_manager(self) -> TransactionManager:
        if self._transactions is None:
            raise RuntimeError("the request has no transaction")
        return self._transactions

    def _create(self) -> Services:
        if self._transactions is None:
            services = self._identity.create_services(self._open_read_session, self._actor)
            services.connection_releaser = lambda: self._release_connection(services)
            services.committed_keys = self._claimed_keys
            return services
        services = self._identity.create_services(
            self._join_transaction, self._actor, read_session=self._open_lookup_session
        )
        services.on_after_commit_needed = lambda: self._after_commit(services)
        services.language_getter = self._language
        services.connection_releaser = lambda: self._release_connection(services)
        services.committed_keys = self._claimed_keys
        if self._claimed_keys:
            services.idempotency.own_keys = self._claimed_keys
        return services

    def _open_read_session(self) -> Storage:
        opened = self._identity.backend.read_session()
        storage = opened.__enter__()
        self._open.append(opened)
        return storage

    def _join_transaction(self) -> Storage:
        return self._identity.backend.join_transaction(self._transaction_manager)

    def _open_lookup_session(self) -> AbstractContextManager[Storage]:
        """Reads before the first write share one connection."""
        if self._read_before_write is None:
            self._read_before_write = self._open_read_session()
        return nullcontext(self._read_before_write)

    def _release_connection(self, services: Services) -> None:
        """Return the connection of reads before the first write."""
        if self._transactions is None:
            services.storage.reset()
        self._read_before_write = None
        self._close_sessions()

    def _after_commit(self, services: Services) -> None:
        identity = self._identity

        def act(committed: bool) -> None:
            if committed:
                identity.after_commit(services)

        self._transaction_manager.get().addAfterCommitHook(act)


def add_user_agent(event: AuditEvent, user_agent: str) -> AuditEvent:
    """A refused sign-in of a known user names the browser, as a successful one does."""
    if (
        event.event != AuditEvent.SIGN_IN_REFUSED
        or event.object_kind != "user"
        or event.object_id is None
        or not user_agent
    ):
        return event
    return replace(event, detail={**event.detail, "browser": user_agent})
