"""Transaction manager of the contract: one per process, one current transaction per thread or greenlet."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import transaction

from identity.storage.backend import Backend, Storage


class ContractTransactionManager:
    """A transaction manager whose transactions must be begun explicitly, one per thread and greenlet."""

    def __init__(self) -> None:
        self._manager: ContextVar[Any] = ContextVar("manager")

    def __enter__(self) -> Any:
        return self.begin()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            self.commit()
        else:
            self.abort()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        manager = self._manager.get(None)
        if manager is None:
            manager = transaction.TransactionManager(explicit=True)
            self._manager.set(manager)
        return getattr(manager, name)


def is_retryable(error: Exception) -> bool:
    """True for a conflict with another transaction: requests are retried then."""
    return isinstance(error, transaction.interfaces.TransientError)


@contextmanager
def aborted_transaction(backend: Backend, transactions: Any) -> Iterator[Storage]:
    """A Storage in a transaction of its own that is aborted at the end."""
    transactions.begin()
    try:
        yield backend.join_transaction(transactions)
    finally:
        transactions.abort()


@contextmanager
def committed_transaction(backend: Backend, transactions: Any) -> Iterator[Storage]:
    """A Storage in a transaction of its own that commits at the end, or aborts on an exception."""
    transactions.begin()
    try:
        yield backend.join_transaction(transactions)
        transactions.commit()
    except BaseException:
        transactions.abort()
        raise
