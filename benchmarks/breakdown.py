"""Where the time of one case goes, inside one process: what a request costs, its indispensable parts, and a profile.

cProfile lengthens short Python functions more than long ones and C, and a commit's time holds the waiting for the disk:
its shares show where to look, its sums do not say what is won. The figures above it are CPU time, measured without it.
"""

import cProfile
import gc
import io
import json
import os
import pstats
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pyramid.paster import get_app

from benchmarks import unit
from benchmarks.cases import Case, for_project, people_cases, resource_cases, token_cases
from benchmarks.load import check
from benchmarks.service import ROOT, Place
from benchmarks.stock import Stock

_LINES = 30
_WARM_UP = 50
_TOKENS = 50
_WITH_ASSERTION = ("opaque", "jwt", "single-use")
_OF_PEOPLE = ("authorize", "code", "refresh")

Application = Callable[..., Iterable[bytes]]
#: Function as pstats names it: file, line, name.
Function = tuple[str, int, str]


def of(name: str, place: Place, stock: Stock, count: int) -> str:
    """The breakdown of one case over ``count`` requests, as text."""
    application: Application = _silently(lambda: get_app(str(place.ini)))
    case = _case(name, stock, application)
    _cost(application, case, _WARM_UP)
    signature = unit.by_cryptography()
    request = _cost(application, case, count)
    signature = (signature + unit.by_cryptography()) / 2
    profile = cProfile.Profile()
    _cost(application, case, count, profile)
    stats = pstats.Stats(profile, stream=io.StringIO())
    lines = [
        "",
        f"{case.title}, {count} requests in one process and one thread, without a web server",
        "",
        f"{'CPU of one request':<50}{request * 1e6:8.0f} µs{request / signature:8.2f} signatures",
    ]
    for title, span in (("one RSA-2048 signature", signature), *_parts(place, name)):
        lines.append(f"  {title:<48}{span * 1e6:8.0f} µs{span / signature:8.2f}")
    lines += ["", f"shares of the profile ({_total(stats) / count * 1e6:.0f} µs with the profiler's own work)"]
    for package, span in _by_package(stats):
        lines.append(f"  {package:<48}{span / count * 1e6:8.0f} µs{span / _total(stats):8.1%}")
    lines += ["", f"functions by their own time{'':<29}µs  calls per request"]
    rows = sorted(_rows(stats).items(), key=lambda row: -row[1][2])
    for function, (_, calls, own, _, _) in rows[:_LINES]:
        lines.append(f"  {_shown(function):<68}{own / count * 1e6:8.1f}{calls / count:10.1f}")
    return "\n".join(lines)


def _case(name: str, stock: Stock, application: Application) -> Case:
    first = for_project(stock)
    answers = [_call(application, _environ(request), first) for request in first.take(_TOKENS)]
    tokens = [str(json.loads(body)["access_token"]) for body in answers]
    cases = (*token_cases(stock), *resource_cases(stock, tokens), *people_cases(stock))
    return next(case for case in cases if case.name == name)


def _cost(application: Application, case: Case, count: int, profile: cProfile.Profile | None = None) -> float:
    """Seconds of CPU of one request, the making of requests left out."""
    if case.before is not None:
        _cost(application, case.before, count)
    environs = [_environ(request) for request in case.take(count)]
    gc.collect()
    started = time.process_time()
    if profile is not None:
        profile.enable()
    contents = [_call(application, environ, case) for environ in environs]
    if profile is not None:
        profile.disable()
    span = time.process_time() - started
    case.answered(contents)
    return span / count


def _call(application: Application, environ: dict[str, Any], case: Case) -> bytes:
    """The answer's body, or its Location if it has one. Raises LoadFailed if it is not what the case expects."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []
    body = b"".join(application(environ, lambda status, headers, failure=None: heads.append((status, headers))))
    status, headers = heads[-1]
    content = next((value.encode() for name, value in headers if name == "Location"), body)
    check(case.expected, int(status[:3]), content)
    return content


def _environ(request: bytes) -> dict[str, Any]:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *fields = head.decode("ascii").split("\r\n")
    method, address, protocol = first.split()
    path, _, query = address.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": protocol,
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for one in fields:
        name, _, value = one.partition(": ")
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ


def _parts(place: Place, name: str) -> Sequence[tuple[str, float]]:
    """What a request that writes cannot do without, each alone."""
    parts = []
    if name in _WITH_ASSERTION:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        signed = key.sign(b"x" * 512, padding.PKCS1v15(), hashes.SHA256())
        public = key.public_key()
        verification = _mean(lambda: public.verify(signed, b"x" * 512, padding.PKCS1v15(), hashes.SHA256()), 2000)
        parts.append(("its verification", verification))
    database = place.ini.parent / "data" / "identity.sqlite"
    if name in (*_WITH_ASSERTION, *_OF_PEOPLE) and database.exists():
        parts.append(("insert and commit of a token, sqlite3 alone", _insert(database)))
    return parts


def _insert(database: Path) -> float:
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        cursor = connection.execute("SELECT * FROM access_tokens LIMIT 1")
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone(), strict=True))
        statement = f"INSERT INTO access_tokens ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608

        def insert() -> None:
            connection.execute("BEGIN IMMEDIATE")
            random = os.urandom(32)
            connection.execute(statement, list({**row, "id": random.hex(), "digest": random}.values()))
            connection.execute("COMMIT")

        return _mean(insert, 500)
    finally:
        connection.close()


def _mean(action: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - started) / times


def _rows(stats: pstats.Stats) -> dict[Function, Any]:
    rows: dict[Function, Any] = stats.stats  # type: ignore[attr-defined]
    return rows


def _total(stats: pstats.Stats) -> float:
    return sum((row[2] for row in _rows(stats).values()), 0.0)


def _by_package(stats: pstats.Stats) -> list[tuple[str, float]]:
    """Own time per package; what is written in C counts for its maker if that is known, else for who called it."""
    sums: defaultdict[str, float] = defaultdict(float)
    for function, (_, _, own, _, callers) in _rows(stats).items():
        package = _package(function)
        if package is not None:
            sums[package] += own
            continue
        for caller, (_, _, part, _) in callers.items():
            sums[_package(caller) or "other"] += part
    return sorted(sums.items(), key=lambda item: -item[1])


def _package(function: Function) -> str | None:
    """The package that a function belongs to; None for built-in ones."""
    file, _, name = function
    if file == "~":
        makers = {"sqlite3": "sqlite3", "cryptography": "cryptography", "_hashlib": "hashlib", "psycopg": "psycopg"}
        return next((maker for mark, maker in makers.items() if mark in name.lower() or f"'{mark}" in name), None)
    path = Path(file)
    if path.is_relative_to(ROOT / "identity"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[: 3 if parts[1] == "plugins" else 2])
    parts = path.parts
    if "site-packages" in parts:
        after = parts[parts.index("site-packages") + 1 :]
        return ".".join(after[:2]) if after[0] == "zope" else after[0].removesuffix(".py")
    if file.startswith("<"):
        return "other"
    return "benchmarks" if path.is_relative_to(ROOT) else "standard library"


def _shown(function: Function) -> str:
    file, line, name = function
    if file == "~":
        return name[:66]
    parts = Path(file).parts
    return f"{'/'.join(parts[-2:])}:{line} {name}"[:66]


def _silently(action: Callable[[], Any]) -> Any:
    """The action's answer, without what it prints: the service announces itself."""
    printed, sys.stdout = sys.stdout, io.StringIO()
    try:
        return action()
    finally:
        sys.stdout = printed
