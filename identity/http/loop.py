"""What the server's loop answers by itself, in fibers (``identity.server``): what waits for nothing but the storage."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.threadlocal import manager
from transaction import TransactionManager

from identity.fibers import Apart

if TYPE_CHECKING:
    from identity.process import Identity


class InLoop:
    """The addresses of such requests, and what each of them has to itself. Found as ``registry.in_loop``."""

    def __init__(self, identity: "Identity") -> None:
        #: How many requests the loop works on at the same time.
        self.most = identity.backend.max_greenlets if identity.settings.answer_in_loop else 0
        self._paths: set[str] = set()
        self._prefixes: tuple[str, ...] = ()
        #: What each thread has of its own, and so each fiber.
        self.apart: Sequence[Apart] = (
            Apart(manager, "stack", list),
            Apart(identity.transactions, "manager", lambda: TransactionManager(explicit=True)),
        )

    def add(self, path: str) -> None:
        """Have the requests to a path answered in the loop; one that ends with a slash is the beginning of several."""
        plain = path.partition("{")[0]
        if plain.endswith("/"):
            self._prefixes += (plain,)
        else:
            self._paths.add(plain)

    def takes(self, path: str) -> bool:
        """True if the loop answers there."""
        return self.most > 0 and (path in self._paths or path.startswith(self._prefixes))


def includeme(config: Configurator) -> None:
    """Begin with none."""
    config.registry.in_loop = InLoop(config.registry.identity)
