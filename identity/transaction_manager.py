"""Transactions: the transaction manager of one request or one piece of background work."""

from typing import TYPE_CHECKING

from transaction import TransactionManager

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction


def has_one_participant(transaction: "ITransaction") -> bool:
    """True if at most one participant that has joined so far votes on the commit."""
    # The package has no public way to ask.
    return len(transaction._resources) < 2


class ExplicitTransactionManager(TransactionManager):  # type: ignore[misc]
    """Each transaction is begun and ended explicitly."""

    def __init__(self) -> None:
        super().__init__(explicit=True)

    @property
    def is_active(self) -> bool:
        """True between begin and end of a transaction."""
        return self._txn is not None

    def commit(self) -> None:
        """Commit. What cannot be committed is aborted, or no other transaction could be begun."""
        try:
            super().commit()
        except BaseException:
            self.abort()
            raise
