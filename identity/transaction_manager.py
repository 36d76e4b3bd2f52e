"""The transaction manager of one request or one background job."""

from typing import TYPE_CHECKING

from transaction import TransactionManager

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction


def has_one_participant(transaction: "ITransaction") -> bool:
    """True if at most one participant votes on the commit."""
    # There is no public API for this.
    return len(transaction._resources) < 2


class ExplicitTransactionManager(TransactionManager):  # type: ignore[misc]
    """Transactions are begun and ended explicitly."""

    def __init__(self) -> None:
        super().__init__(explicit=True)

    @property
    def is_active(self) -> bool:
        """True between begin and end of a transaction."""
        return self._txn is not None

    def commit(self) -> None:
        """Commit. If that fails, abort, so that another transaction can begin."""
        try:
            super().commit()
        except BaseException:
            self.abort()
            raise
