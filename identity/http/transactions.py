"""One transaction per writing request (pyramid_tm), retried where the database asks for it (pyramid_retry).

Order of tweens, outermost first: retry (an execution policy), audit, transaction, exception views.
"""

from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.tweens import EXCVIEW

from identity.http.environ import OUTCOME, UNREAD_BODY

if TYPE_CHECKING:
    from identity.process import Identity

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: How often a request runs at most, where its transaction loses against others.
ATTEMPTS = 4
#: Where requests go on that waited.
_STEPS = "/login/"


def writes(request: Request) -> bool:
    """True if the request may write and so needs a transaction: a plain read connection costs a quarter."""
    if OUTCOME in request.environ:
        return False
    identity: Identity = request.registry.identity
    path = request.environ.get("PATH_INFO", "")
    declared = identity.writing_paths.get(path)
    if declared is None and path.startswith((*identity.writing_starts, *request.registry.writing_paths)):
        return True
    if declared is None and path.startswith(_STEPS):
        declared = path.removeprefix(_STEPS).partition("/")[2] in identity.writing_steps or None
    return request.method not in _SAFE_METHODS if declared is None else declared


def veto(request: Request, response: Response) -> bool:
    """True if the transaction must be aborted: an exception led to this answer, and does not say ``keep_changes``."""
    exception = getattr(request, "exception", None)
    return exception is not None and not getattr(exception, "keep_changes", False)


def _attempts(request: Request) -> int:
    identity: Identity = request.registry.identity
    # A body that the server has not read cannot be kept for another attempt.
    is_unread = UNREAD_BODY in request.environ
    return ATTEMPTS if identity.backend.contends and not is_unread and writes(request) else 1


def add_writing_path(config: Configurator, start: str) -> None:
    """Directive: whatever is asked at a path that starts so may write, also with GET.

    For addresses to which others send people, and where what they bring is used up.
    """
    config.registry.writing_paths = (*config.registry.writing_paths, start)


def includeme(config: Configurator) -> None:
    """Put pyramid_retry and pyramid_tm in place with our rules, and the audit tween above them.

    pyramid_tm is put in by its tween alone: its ``includeme`` would add ``tm`` as a request property, which
    IdentityRequest has already (and far cheaper).
    """
    config.registry.writing_paths = ()
    config.add_directive("add_writing_path", add_writing_path)
    config.add_settings(
        {
            "tm.activate_hook": writes,
            "tm.commit_veto": veto,
            "tm.annotate_user": False,
            "retry.attempts": ATTEMPTS,
            "retry.activate_hook": _attempts,
        }
    )
    config.include("pyramid_retry")
    config.add_tween("pyramid_tm.tm_tween_factory", over=EXCVIEW)
    config.add_tween("identity.http.audit.audit_tween_factory", over="pyramid_tm.tm_tween_factory")
