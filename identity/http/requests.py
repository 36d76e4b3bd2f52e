"""IdentityRequest: what a request carries besides what Pyramid gives it."""

from functools import cached_property
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request

from identity.crypto.secrets import new_id
from identity.domain.audit import Actor, ActorKind
from identity.services.bundle import Services
from identity.storage.backend import Storage

if TYPE_CHECKING:
    from transaction.interfaces import ITransactionManager

    from identity.app import Identity


class IdentityRequest(Request):  # type: ignore[misc]
    """Each attribute is made when first asked for.

    They stand in a class of our own because Pyramid would otherwise make a new class for every single request, which
    costs more than the whole of its routing.
    """

    @cached_property
    def request_id(self) -> str:
        """An id of ours for this request, shown in error answers, logs and audit events."""
        return new_id()

    @cached_property
    def tm(self) -> "ITransactionManager":
        """The process's transaction manager; it keeps one transaction per thread. Asked for by pyramid_tm."""
        identity: Identity = self.registry.identity
        return identity.transactions

    @cached_property
    def services(self) -> Services:
        """The use cases, in the request's transaction if it has one, on a read connection otherwise."""
        identity: Identity = self.registry.identity
        address = self.environ.get("REMOTE_ADDR")
        actor = Actor(kind=ActorKind.ANONYMOUS, client_address=address, request_id=self.request_id)
        if "tm.active" not in self.environ:
            return identity.services(self._reading, actor)
        made = identity.services(self._writing, actor, look=identity.backend.reading)
        made.on_first_record = lambda: self._tell_after_commit(made)
        return made

    def _writing(self) -> Storage:
        identity: Identity = self.registry.identity
        return identity.backend.writing(identity.transactions)

    def _reading(self) -> Storage:
        """A read connection that goes back when the request is finished."""
        opened = self.registry.identity.backend.reading()
        storage: Storage = opened.__enter__()
        self.add_finished_callback(lambda _: opened.__exit__(None, None, None))
        return storage

    def _tell_after_commit(self, services: Services) -> None:
        def tell(committed: bool) -> None:
            if committed:
                self.registry.identity.host.notify(services.audit.recorded)

        self.tm.get().addAfterCommitHook(tell)


def includeme(config: Configurator) -> None:
    """Have Pyramid make requests of this class."""
    config.set_request_factory(IdentityRequest)
