"""One transaction per writing request (pyramid_tm), retried where the database asks for it (pyramid_retry).

Order of tweens, outermost first: retry (an execution policy), audit, transaction, exception views.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.tweens import EXCVIEW

from identity.http.environ_keys import ENDPOINT_RESULT_KEY, UNREAD_BODY_KEY

if TYPE_CHECKING:
    from identity.application import IdentityApplication

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Maximum runs of a request whose transaction fails with a serialization error.
MAX_ATTEMPTS = 4
#: Where stored requests continue.
_SIGN_IN_PATH_PREFIX = "/login/"


@dataclass
class WritePaths:
    """Which requests may write: by path, by the start of a path, and by the page below ``/login/{request}``. Elsewhere
    the method decides."""

    exact: dict[str, bool]
    prefixes: tuple[str, ...]
    sign_in_pages: set[str] = field(default_factory=set)


def needs_transaction(request: Request) -> bool:
    """True if the request may write and needs a transaction: a plain read connection costs a quarter."""
    if ENDPOINT_RESULT_KEY in request.environ:
        return False
    paths: WritePaths = request.registry.write_paths
    path = request.environ.get("PATH_INFO", "")
    declared = paths.exact.get(path)
    if declared is None and path.startswith(paths.prefixes):
        return True
    if declared is None and path.startswith(_SIGN_IN_PATH_PREFIX):
        declared = path.removeprefix(_SIGN_IN_PATH_PREFIX).partition("/")[2] in paths.sign_in_pages or None
    return request.method not in _SAFE_METHODS if declared is None else declared


def commit_veto(request: Request, response: Response) -> bool:
    """True if the transaction must be aborted: an exception caused this response, and does not set
    ``commits_transaction``."""
    exception = getattr(request, "exception", None)
    return exception is not None and not getattr(exception, "commits_transaction", False)


def _retry_attempts(request: Request) -> int:
    identity: IdentityApplication = request.registry.application
    # A body that the server has not read cannot be kept for a retry.
    is_unread = UNREAD_BODY_KEY in request.environ
    return MAX_ATTEMPTS if identity.backend.has_write_conflicts and not is_unread and needs_transaction(request) else 1


def add_write_path(config: Configurator, start: str) -> None:
    """Directive: requests to paths with this prefix may write, also with GET. For URLs to which other sites send
    people, where what they bring is consumed."""
    config.registry.write_paths.prefixes += (start,)


def includeme(config: Configurator) -> None:
    """Install pyramid_retry and pyramid_tm with our settings, and the audit tween above them. Only pyramid_tm's tween
    is installed: its ``includeme`` would add ``tm`` as a request property, which IdentityRequest already has (and far
    cheaper)."""
    endpoints = config.registry.application.protocol_registry.endpoints
    config.registry.write_paths = WritePaths(
        exact={endpoint.path: endpoint.writes for endpoint in endpoints if not endpoint.path_prefix},
        prefixes=tuple(endpoint.path_prefix for endpoint in endpoints if endpoint.path_prefix and endpoint.writes),
    )
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
