"""Cookies as browsers store and send them (RFC 6265, and SameSite)."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

#: Cookie name prefixes that require certain attributes.
HOST_PREFIX, SECURE_PREFIX = "__Host-", "__Secure-"
SAFE_METHODS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCookie:
    """A stored cookie; ``domain`` is empty for one that is sent only to its own host."""

    name: str
    value: str = field(repr=False)
    host: str
    domain: str = ""
    path: str = "/"
    secure: bool = False
    http_only: bool = False
    same_site: str = "lax"
    expires_at: datetime | None = None
    creation_order: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """Key by which a later cookie replaces it (RFC 6265 §5.3)."""
        return self.name, self.domain or self.host, self.path

    def matches_url(self, url: str) -> bool:
        """True if the cookie applies to this URL (RFC 6265 §5.4)."""
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path or "/"
        if self.domain:
            if host != self.domain and not host.endswith(f".{self.domain}"):
                return False
        elif host != self.host:
            return False
        if self.secure and parts.scheme != "https":
            return False
        return path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")


class CookieJar:
    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str, str], StoredCookie] = {}
        self._numbers = itertools.count()

    def __iter__(self) -> Iterator[StoredCookie]:
        return iter(tuple(self._cookies.values()))

    def __len__(self) -> int:
        return len(self._cookies)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(cookie.name for cookie in self)

    def store(self, url: str, header: str, now: datetime) -> None:
        """Store one Set-Cookie header of a response from ``url``, unless browsers would ignore it."""
        first, *attributes = (part.strip() for part in header.split(";"))
        name, separator, value = (part.strip() for part in first.partition("="))
        known = {
            key.strip().lower(): value.strip()
            for key, _, value in (attribute.partition("=") for attribute in attributes)
        }
        parts = urlsplit(url)
        host, domain = parts.hostname or "", known.get("domain", "").lstrip(".").lower()
        secure = "secure" in known
        if not separator or not name or (secure and parts.scheme != "https"):
            return
        if domain and host != domain and not host.endswith(f".{domain}"):
            return
        if name.startswith(SECURE_PREFIX) and not secure:
            return
        if name.startswith(HOST_PREFIX) and (not secure or domain or known.get("path") != "/"):
            return
        path = known.get("path", "")
        cookie = StoredCookie(
            name=name,
            value=value,
            host=host,
            domain=domain,
            path=path if path.startswith("/") else _default_path(parts.path),
            secure=secure,
            http_only="httponly" in known,
            same_site=known.get("samesite", "lax").lower(),
            expires_at=_end(known, now),
            creation_order=next(self._numbers),
        )
        if cookie.expires_at is not None and cookie.expires_at <= now:
            self._cookies.pop(cookie.key, None)
        else:
            self._cookies[cookie.key] = cookie

    def header(self, url: str, now: datetime, *, method: str = "GET", site: str = "none") -> str:
        """The Cookie header of a top-level request; ``site`` is its Sec-Fetch-Site."""
        foreign = site == "cross-site"
        cookies = [
            cookie
            for cookie in self
            if cookie.matches_url(url)
            and (cookie.expires_at is None or cookie.expires_at > now)
            and not (foreign and cookie.same_site == "strict")
            and not (foreign and cookie.same_site == "lax" and method not in SAFE_METHODS)
        ]
        cookies.sort(key=lambda cookie: (-len(cookie.path), cookie.creation_order))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies)

    def delete(self, name: str) -> None:
        """Delete all cookies of this name, as a person can."""
        for cookie in self:
            if cookie.name == name:
                del self._cookies[cookie.key]

    def clear(self) -> None:
        self._cookies.clear()


def _default_path(path: str) -> str:
    """RFC 6265 §5.1.4."""
    return path.rpartition("/")[0] or "/"


def _end(attributes: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = attributes.get("max-age", "")
    if seconds.removeprefix("-").isdigit():
        return now + timedelta(seconds=int(seconds)) if int(seconds) > 0 else now
    if "expires" in attributes:
        return parsedate_to_datetime(attributes["expires"])
    return None
