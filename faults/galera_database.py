"""Three MariaDB servers as one database, each used by one process of the service."""

from contextlib import ExitStack
from pathlib import Path

from faults.database import FaultDatabase
from tests.galera import NODE_COUNT, running_cluster


class GaleraDatabase(FaultDatabase):
    """A cluster in a temporary folder, because socket paths below the run's folder would be too long."""

    name = "galera"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = ExitStack()
        self.cluster = self._stack.enter_context(running_cluster())
        try:
            self._urls = self.cluster.new_database()
        except BaseException:
            self.close()
            raise

    def url_for_node(self, node: int) -> str:
        return self._urls[node % NODE_COUNT]

    def close(self) -> None:
        self._stack.close()
