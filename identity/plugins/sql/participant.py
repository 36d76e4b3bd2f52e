"""The backend's part in a transaction."""

from typing import TYPE_CHECKING

from identity.plugins.sql.turns import Turn
from identity.storage.participant import Participant

if TYPE_CHECKING:
    from transaction.interfaces import ITransaction, ITransactionManager


class SqlParticipant(Participant):
    """A writer's turn that ends with the current transaction of the manager, in one phase as zope.sqlalchemy has it,
    and without a session. Its statements have run before; the vote commits.

    zope.sqlalchemy is for whoever brings an ORM session. It imports the ORM and the drivers of all databases, a tenth
    of a start, and its session without objects costs as much again as the rest of a transaction.
    """

    def __init__(self, turn: Turn, transactions: "ITransactionManager") -> None:
        super().__init__(transactions)
        self._turn = turn
        try:
            transactions.get().join(self)
        except BaseException:
            turn.undo()
            raise

    def sortKey(self) -> str:  # noqa: N802 - the name is given by the interface
        """Among the last: the commit is made at the vote, when all others have agreed."""
        return f"~identity.sql:{id(self)}"

    def abort(self, transaction: "ITransaction") -> None:
        """Undo all that is not committed. Raises Unavailable if what it was judged by has not come to be."""
        self._turn.undo()

    def tpc_vote(self, transaction: "ITransaction") -> None:
        """Commit; the last moment at which other participants can still stop it has passed. Raises Unavailable."""
        self._turn.commit()

    tpc_abort = abort
