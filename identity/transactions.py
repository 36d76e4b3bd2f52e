"""Transactions: the transaction manager of one request or one piece of background work."""

from transaction import TransactionManager


class Transactions(TransactionManager):  # type: ignore[misc]
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
