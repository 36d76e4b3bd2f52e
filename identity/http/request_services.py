"""RequestServices: the services of one run of a request, however it came."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transaction import TransactionManager

from identity.domain.audit import SIGN_IN_REFUSED, Actor, AuditEvent
from identity.provider.context import Context
from identity.services.unit_of_work import UnitOfWork
from identity.storage.backend import Storage

if TYPE_CHECKING:
    from identity.process import Identity


class RequestServices:
    """Services in a transaction of ``transactions``, or without that on a read connection.

    ``actor`` and ``language`` are asked when they are first needed. ``claimed`` are the idempotency keys that this
    request has committed.
    """

    def __init__(
        self,
        identity: "Identity",
        actor: Callable[[], Actor],
        language: Callable[[], str],
        transactions: TransactionManager | None = None,
        claimed: set[Any] | None = None,
    ) -> None:
        self._identity = identity
        self._actor = actor
        self._language = language
        self._transactions = transactions
        self._claimed = set() if claimed is None else claimed
        self._made: UnitOfWork | None = None
        self._read_before_write: Storage | None = None
        self._open: list[AbstractContextManager[Storage]] = []
        self._lagging: AbstractContextManager[Storage] | None = None
        #: What the endpoint was called with last.
        self.context: Context | None = None

    @property
    def services(self) -> UnitOfWork:
        """The use cases; made when first needed, and anew after a commit."""
        made = self._made
        if made is None:
            made = self._made = self._make()
        return made

    @property
    def refused(self) -> list[AuditEvent]:
        """The refused attempts, to be written when the transaction is over."""
        return [] if self._made is None else self._made.refused

    def new_context(self) -> Context:
        """What endpoints, grants and interactions may use beside the request."""
        identity, services = self._identity, self.services
        return Context(services.now, identity.settings, identity.protocol, lambda: identity.provider, services)

    def commit(self) -> None:
        """Commit what was done so far, and begin another transaction; actor and refusals stay."""
        claimed = self.services.idempotency.claimed_keys
        self._continue_after(self._manager.commit)
        self._claimed.update(claimed)

    def roll_back(self) -> None:
        """Drop what was done since the last commit, and begin another transaction, as after it."""
        self._continue_after(self._manager.abort)

    def begin_lagging(self) -> bool:
        """Read from a storage that may be behind until ``end_lagging``; False if there is none."""
        opened = self._identity.backend.lagging()
        if opened is None:
            return False
        self._made = self._identity.lagging_services(opened.__enter__(), self._actor)
        self._lagging = opened
        return True

    def end_lagging(self) -> None:
        """Read what is committed from now on."""
        opened, self._lagging = self._lagging, None
        if opened is not None:
            self.forget()
            opened.__exit__(None, None, None)

    def forget(self) -> None:
        """Drop the services: they and the request refer to each other, and only the garbage collector would find
        them."""
        made, self._made = self._made, None
        if made is not None:
            made.forget()

    def close(self) -> None:
        """Drop the services, and return what was opened to read from."""
        self.forget()
        self.end_lagging()
        self._read_before_write = None
        self._return_opened()

    def _return_opened(self) -> None:
        while self._open:
            self._open.pop().__exit__(None, None, None)

    def _continue_after(self, end: Callable[[], None]) -> None:
        before = self.services
        try:
            end()
        finally:
            # Also for the answer to a failure: whoever began a transaction ends one.
            self._manager.begin()
        # It may have kept what it saw before.
        self._made = self._read_before_write = None
        after = self.services
        after.audit.actor = before.audit.actor
        after.audit.refused.extend(before.audit.refused)
        after.idempotency.claimed = before.idempotency.claimed
        # What comes now may wait for a hash or another server, and must not keep others from the storage meanwhile.
        self._read_before_write = None
        self._return_opened()

    @property
    def _manager(self) -> TransactionManager:
        if self._transactions is None:
            raise RuntimeError("the request has no transaction")
        return self._transactions

    def _make(self) -> UnitOfWork:
        if self._transactions is None:
            return self._identity.services(self._reading, self._actor)
        made = self._identity.services(self._writing, self._actor, look=self._looking)
        made.on_first_effect = lambda: self._act_after_commit(made)
        made.tell_language = self._language
        if self._claimed:
            made.idempotency.own_keys = self._claimed
        return made

    def _reading(self) -> Storage:
        opened = self._identity.backend.reading()
        storage = opened.__enter__()
        self._open.append(opened)
        return storage

    def _writing(self) -> Storage:
        return self._identity.backend.writing(self._manager)

    def _looking(self) -> AbstractContextManager[Storage]:
        """What is looked up before the first write goes through one connection."""
        if self._read_before_write is None:
            self._read_before_write = self._reading()
        return nullcontext(self._read_before_write)

    def _act_after_commit(self, services: UnitOfWork) -> None:
        identity = self._identity

        def act(committed: bool) -> None:
            if committed:
                identity.committed(services)

        self._manager.get().addAfterCommitHook(act)


def with_user_agent(event: AuditEvent, user_agent: str) -> AuditEvent:
    """A refused sign-in of a known user names the browser, as a successful one does."""
    if event.event != SIGN_IN_REFUSED or event.object_kind != "user" or event.object_id is None or not user_agent:
        return event
    return replace(event, detail={**event.detail, "browser": user_agent})
