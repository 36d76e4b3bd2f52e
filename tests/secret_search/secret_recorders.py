"""Records the secrets that the service creates or receives."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.secret_search.search import SecretSearch

#: Password and key files have at most this many lines.
_MOST_LINES = 2


def wrap(search: SecretSearch) -> None:
    """Wrap functions of the service; no module may have imported them by name before."""
    from identity.crypto import secrets

    unwrapped = secrets.new_token
    for name in ("new_token", "new_password"):
        setattr(secrets, name, _noting(search.note, getattr(secrets, name)))
    from identity.crypto import argon2id, jwt, sealing

    jwt.sign = _noting(search.note, jwt.sign)
    argon2id.hash_password = _recording(search.note, argon2id.hash_password, 0)
    argon2id.verify_password = _recording(search.note, argon2id.verify_password, 1)
    sealing.Sealer.seal = _recording(lambda plain: _note_sealed(search, plain), sealing.Sealer.seal, 1)  # type: ignore[method-assign]
    sealing.MasterKey.__post_init__ = _recording(  # type: ignore[method-assign]
        lambda key: search.note(key.key), sealing.MasterKey.__post_init__, 0
    )
    from identity.http import csrf

    csrf.csrf_token = _noting(search.note, csrf.csrf_token)
    from identity.plugins.recovery_codes import factor as paper
    from identity.plugins.totp import factor as app
    from identity.services import audit, domains

    # Domain verification tokens are published in the DNS, so they are no secrets.
    domains.new_token = unwrapped  # type: ignore[attr-defined]
    app.new_secret = _noting(search.note, app.new_secret)
    paper.generate_codes = _noting(lambda codes: [search.note(code) for code in codes], paper.generate_codes)
    audit.AuditRecorder._event = _noting(  # type: ignore[method-assign]
        lambda event: search.trail.append(f"audit trail: {event}"), audit.AuditRecorder._event
    )
    Path.read_text = _read(search, Path.read_text)  # type: ignore[method-assign]


def _note_sealed(search: SecretSearch, plain: bytes) -> None:
    """Record the value to be sealed, or the codes and secrets in it."""
    try:
        members = json.loads(plain)
    except ValueError:
        members = plain
    if isinstance(members, dict):
        for name in ("code", "secret"):
            search.note(members.get(name))
    else:
        search.note(plain)


def _read(search: SecretSearch, read_text: Callable[..., str]) -> Callable[..., str]:
    """Record the lines of short files that only their owner can read, since passwords and keys are kept in these."""

    @functools.wraps(read_text)
    def read(path: Path, *arguments: Any, **named: Any) -> str:
        text = read_text(path, *arguments, **named)
        if len(text.splitlines()) <= _MOST_LINES and not path.stat().st_mode & 0o077:
            for line in text.splitlines():
                search.note(line.strip())
        return text

    return read


def _noting(note: Callable[[Any], object], make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def recorded(*arguments: Any, **named: Any) -> Any:
        secret = make(*arguments, **named)
        note(secret)
        return secret

    return recorded


def _recording(note: Callable[[Any], object], take: Callable[..., Any], at: int) -> Callable[..., Any]:
    @functools.wraps(take)
    def recorded(*arguments: Any, **named: Any) -> Any:
        note(arguments[at])
        return take(*arguments, **named)

    return recorded
