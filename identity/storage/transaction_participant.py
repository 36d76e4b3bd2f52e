"""A backend's part in a transaction: a data manager of the transaction package."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager


class TransactionParticipant:
    """Every step is a no-op unless a backend overrides it. ``abort`` is called for a transaction that must not be
    committed. Otherwise ``tpc_begin``, ``commit`` and ``tpc_vote`` are called in this order: the vote is the last
    moment at which a participant can refuse. Then comes ``tpc_finish`` or, if one refused, ``tpc_abort``, after
    ``abort`` or without it."""

    def __init__(self, transactions: "ITransactionManager") -> None:
        self.transaction_manager = transactions

    def sortKey(self) -> str:  # noqa: N802 - the name is given by the interface
        """Position among the participants."""
        return f"{type(self).__module__}:{id(self)}"

    def _no_operation(self, transaction: "ITransaction") -> None:
        pass

    abort = tpc_begin = commit = tpc_vote = tpc_finish = tpc_abort = _no_operation
