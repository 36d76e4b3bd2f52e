"""One transaction per writing request (pyramid_tm), retried where the database asks for it (pyramid_retry).

Order of tweens, outermost first: retry (an execution policy), audit, transaction, exception views.
"""

from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.tweens import EXCVIEW

from identity.http.environ_keys import ENDPOINT_RESULT_KEY, UNREAD_BODY_KEY

if TYPE_CHECKING:
    from identity.application import IdentityApplication

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: How often a request runs at most, where its transaction loses against others.
MAX_ATTEMPTS = 4
#: Where requests go on that waited.
_SIGN_IN_PATH_PREFIX = "/login/"


def needs_transaction(request: Request) -> bool:
    """True if the request may write and so needs a transaction: a plain read connection costs a quarter."""
    if ENDPOINT_RESULT_KEY in request.environ:
        return False
    identity: IdentityApplication = request.registry.application
    path = request.environ.get("PATH_INFO", "")
    declared = identity.write_paths.get(path)
    if declared is None and path.startswith((*identity.write_path_prefixes, *request.registry.write_paths)):
        return True
    if declared is None and path.startswith(_SIGN_IN_PATH_PREFIX):
        declared = path.removeprefix(_SIGN_IN_PATH_PREFIX).partition("/")[2] in identity.write_sign_in_pages or None
    return request.method not in _SAFE_METHODS if declared is None else declared


def commit_veto(request: Request, response: Response) -> bool:
    """True if the transaction must be aborted: an exception led to this answer, and does not say
    ``commits_transaction``."""
    exception = getattr(request, "exception", None)
    return exception is not None and not getattr(exception, "commits_transaction", False)


def _retry_attempts(request: Request) -> int:
    identity: IdentityApplication = request.registry.application
    # A body that the server has not read cannot be kept for another attempt.
    is_unread = UNREAD_BODY_KEY in request.environ
    return MAX_ATTEMPTS if identity.backend.has_write_conflicts and not is_unread and needs_transaction(request) else 1


def add_write_path(config: Configurator, start: str) -> None:
    """Directive: whatever is asked at a path that starts so may write, also with GET.

    For addresses to which others send people, and where what they bring is used up.
    """
    config.registry.write_paths = (*config.registry.write_paths, start)


def includeme(config: Configurator) -> None:
    """Put pyramid_retry and pyramid_tm in place with our rules, and the audit tween above them.

    pyramid_tm is put in by its tween alone: its ``includeme`` would add ``tm`` as a request property, which
    IdentityRequest has already (and far cheaper).
    """
    config.registry.write_paths = ()
    config.add_directive("add_write_path", add_write_path)
    config.add_settings(
        {
            "tm.activate_hook": needs_transaction,
            "tm.commit_veto": commit_veto,
            "tm.annotate_user": False,
            "retry.attempts": MAX_ATTEMPTS,
            "retry.activate_hook": _retry_attempts,
        }
    )
    config.include("pyramid_retry")
    config.add_tween("pyramid_tm.tm_tween_factory", over=EXCVIEW)
    config.add_tween("identity.http.audit_tween.audit_tween_factory", over="pyramid_tm.tm_tween_factory")
