"""A storage backend: the in-memory reference backend, which also counts its writing transactions.

A backend of your own implements identity.storage.backend.Backend; a subclass of the reference backend is the
shortest one that passes the contract.
"""

from typing import TYPE_CHECKING, ClassVar

from identity.api.storage import MemoryBackend, Storage

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager


class SampleBackend(MemoryBackend):
    name: ClassVar[str] = "sample"

    def __init__(self) -> None:
        super().__init__()
        #: The number of transactions that were joined for writing.
        self.writings = 0

    def join_transaction(self, transaction_manager: "ITransactionManager") -> Storage:
        """A Storage joined to the current transaction."""
        self.writings += 1
        return super().join_transaction(transaction_manager)
