"""Whom the service knows before it is asked."""

import importlib
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

REDIRECT_URI = "https://app.example/callback"
VISITORS_PASSWORD = "a password of the visitor's own"  # noqa: S105 - of a database that is thrown away
VERIFIER = "a-code-verifier-of-43-characters-or-more-0123456789"


@dataclass(frozen=True)
class Signer:
    """A service user that can ask for tokens, with the private key as PEM."""

    user_id: str
    key_id: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Visitor:
    """A person who is signed in at a browser, and the application that sends them here with these parameters."""

    cookie: str = field(repr=False)
    authorization: dict[str, str]
    client: str = field(repr=False)
    login_name: str = ""


@dataclass(frozen=True)
class Waiting:
    """A sign-in under way, at the page that asks for the password, and the cookie of its browser."""

    path: str
    cookie: str = field(repr=False)


@dataclass(frozen=True)
class Stock:
    """Whom the prepared service knows: two service users, one for each format of access token, a client that
    introspects, a visitor, and sign-ins under way of names that nobody has.
    """

    issuer: str
    host: str
    opaque: Signer
    jwt: Signer
    client: str = field(repr=False)
    visitor: Visitor
    waiting: Sequence[Waiting]


def prepared(code: Path, ini: Path, host: str, *, waiting: int = 0) -> Stock:
    """Let a fresh data folder have all that the cases need, in a process that runs this checkout of the service."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_run_code_of, initargs=(code,)) as pool:
        return pool.submit(_prepare, ini, host, waiting).result()


def _run_code_of(checkout: Path) -> None:
    sys.path.insert(0, str(checkout))
    importlib.import_module("identity")
    sys.path.pop(0)


def _prepare(ini: Path, host: str, waiting: int) -> Stock:
    # What follows the import above is of that checkout too.
    from benchmarks.preparing import prepare

    return prepare(ini, host, waiting)
