"""What a request carries: ``request.services`` and ``request.request_id``."""

from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request

from identity.crypto.secrets import new_id
from identity.domain.audit import Actor, ActorKind
from identity.services.bundle import Services
from identity.storage.backend import Storage

if TYPE_CHECKING:
    from identity.app import Identity


def services(request: Request) -> Services:
    """The services of this request, in its transaction if it has one, on a read connection otherwise."""
    identity: Identity = request.registry.identity
    address = request.environ.get("REMOTE_ADDR")
    actor = Actor(kind=ActorKind.ANONYMOUS, client_address=address, request_id=request.request_id)
    if "tm.active" not in request.environ:
        return identity.services(lambda: _reading(request), actor)
    made = identity.services(lambda: identity.backend.writing(identity.transactions), actor)
    transaction = identity.transactions.get()

    def tell(committed: bool) -> None:
        if committed:
            identity.host.notify(made.audit.recorded)

    made.on_first_record = lambda: transaction.addAfterCommitHook(tell)
    return made


def _reading(request: Request) -> Storage:
    """A read connection that goes back when the request is finished."""
    opened = request.registry.identity.backend.reading()
    storage: Storage = opened.__enter__()
    request.add_finished_callback(lambda _: opened.__exit__(None, None, None))
    return storage


def request_id(request: Request) -> str:
    """An id of ours for this request, shown in error answers, logs and audit events."""
    return new_id()


def includeme(config: Configurator) -> None:
    """Add the attributes; each is made when first asked for."""
    config.add_request_method(services, reify=True)
    config.add_request_method(request_id, reify=True)
