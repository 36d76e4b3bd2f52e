"""Transactions for the contract: one manager per process, one current transaction per thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import transaction

from identity.storage.backend import Backend, Storage


class Transactions(transaction.ThreadTransactionManager):  # type: ignore[misc]
    """A transaction manager with a current transaction for each thread, which must be begun explicitly."""

    def __init__(self) -> None:
        # Runs once in every thread that uses the manager: it is a threading.local.
        super().__init__()
        self.explicit = True


def is_worth_another_attempt(error: Exception) -> bool:
    """True if it was lost against another transaction alone: requests are made again then."""
    return isinstance(error, transaction.interfaces.TransientError)


def one_manager() -> Any:
    """What such a manager keeps for each thread, and for each fiber."""
    return transaction.TransactionManager(explicit=True)


@contextmanager
def aborting(backend: Backend, transactions: Any) -> Iterator[Storage]:
    """A Storage in a transaction of its own, which is aborted at the end."""
    transactions.begin()
    try:
        yield backend.writing(transactions)
    finally:
        transactions.abort()


@contextmanager
def committing(backend: Backend, transactions: Any) -> Iterator[Storage]:
    """A Storage in a transaction of its own, which is committed at the end and aborted by an exception."""
    transactions.begin()
    try:
        yield backend.writing(transactions)
        transactions.commit()
    except BaseException:
        transactions.abort()
        raise
