"""Searches the log output of the current test for the secrets that it created or sent."""

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

#: Shorter secrets and single lowercase words also occur by chance (hypothesis uses words of the program), so both count
#: only as whole values. Digits count as whole words, and even shorter texts never.
_SHORTEST, _SHORTEST_VALUE = 8, 3
_LOWERCASE = re.compile(r"[a-z]+")
_DIGITS = re.compile(r"[0-9]{6,}")
#: Common words that tests use as secrets, and values that logs may contain: ids, URLs, and names registered by RFCs.
_PUBLIC_TEXTS = frozenset({"password", "wrong password", "another one"})
_PUBLIC = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|https?://\S+|urn:\S+|[a-z]+(?:_[a-z]+)+"
)

#: Random secrets are searched for until the end of the run, because threads and processes log about earlier tests.
_UNGUESSABLE = (re.compile(r"[\w-]{20,}"), re.compile(r"[\w+/]{20,}"))
_VARIETY = 10

#: Patterns of secrets that another process created: tokens and one-time passwords among the words, and texts that
#: contain a marker, which is fast to search for. Base64 digests are longer than tokens or contain other characters.
_SECRET_WORD = re.compile(
    r"(?=[A-Za-z]*[0-9])(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9]{43}|[a-hjkmnp-z2-9]{5}(?:-[a-hjkmnp-z2-9]{5}){3}"
)
_SHAPES = {
    "PRIVATE KEY": re.compile("PRIVATE KEY"),
    "eyJ": re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    "$argon2": re.compile(r"\$argon2\w+\$"),
    "whsec_": re.compile(r"whsec_[\w+/]{20,}"),
    "@": re.compile(r"://[^\s:/@]+:(?!\*\*\*)[^\s:/@]+@"),
}

#: Coordinates of public elliptic-curve keys (RFC 7518, section 6.2.1) have the shape of tokens.
_COORDINATE = re.compile(r"""["'][xy]\\*["']\s*:\s*\\*["']([\w-]{43})\\*["']""")

#: How many characters of a found secret are shown.
_EXCERPT_LENGTH = 40

#: Loggers of packages that play mail server, application or browser, and may log what they receive; and such functions
#: of packages that the service uses, too.
_FOREIGN_LOGGERS = frozenset({"httpx", "mail", "requests_oauthlib", "selenium", "urllib3"})
#: Logs the mapped classes, whose names may equal words in a fuzzed request.
_OF_CLASSES = "sqlalchemy.orm.mapper"
_FUNCTIONS_OF_OTHERS = frozenset(
    {
        ("oic.oic", "user_info_request"),
        ("oic.oic", "do_user_info_request"),
        ("oic.oauth2", "parse_response"),
        ("oic.oauth2.util", "verify_header"),
    }
)


class SecretSearch:
    """The lines and secrets since the last call of ``found()``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: Audit events. Users choose some of their values, so short secrets do not count there.
        self.trail: list[str] = []
        self.secrets: set[str] = set()
        self._short: set[str] = set()
        self._known: set[str] = set()
        self._formatter = logging.Formatter()
        #: Functions that return the lines written elsewhere since their last call.
        self.sources: list[Callable[[], Iterable[str]]] = []

    def note(self, secret: object) -> None:
        """Search for this secret until the end of the test; for a random one until the end of the run."""
        if isinstance(secret, bytes):
            self._note_bytes(secret)
        if not isinstance(secret, str) or secret in _PUBLIC_TEXTS or _PUBLIC.fullmatch(secret):
            return
        if len(set(secret)) >= _VARIETY and any(item.fullmatch(secret) for item in _UNGUESSABLE):
            self._known.add(secret)
        if (len(secret) >= _SHORTEST and not _LOWERCASE.fullmatch(secret)) or _DIGITS.fullmatch(secret):
            self.secrets |= {
                secret,
                quote(secret, "", errors="replace"),
                quote_plus(secret, errors="replace"),
                json.dumps(secret)[1:-1],
            }
        elif len(secret) >= _SHORTEST_VALUE:
            self._short.add(secret)

    def _note_bytes(self, secret: bytes) -> None:
        self.note(secret.hex())
        self.note(repr(secret)[2:-1])
        self.note(base64.b64encode(secret).decode().rstrip("="))
        self.note(base64.urlsafe_b64encode(secret).decode().rstrip("="))

    def hear(self, record: logging.LogRecord) -> None:
        """Keep the formatted message of a log record."""
        if record.name.partition(".")[0] in _FOREIGN_LOGGERS or (record.name, record.funcName) in _FUNCTIONS_OF_OTHERS:
            return
        if record.name.startswith(_OF_CLASSES):
            return
        try:
            text = record.getMessage()
        except Exception as problem:
            text = f"{record.msg!r} cannot be formatted: {problem!r}"
        if record.exc_info:
            text = self._formatter.format(record)
        self.lines.append(f"{record.name} {text}")

    def found(self) -> list[str]:
        """The secrets found, each with its line; resets the search."""
        for source in self.sources:
            self.lines += source()
        lines, self.lines = self.lines, []
        secrets, self.secrets = self.secrets, set()
        short, self._short = self._short, set()
        trail, self.trail = self.trail, []
        logged = "\n".join(dict.fromkeys(lines))
        content = "\n".join((logged, *trail))
        random_texts, encoded_texts = (set(item.findall(content)) for item in _UNGUESSABLE)
        leaked = {secret for secret in secrets if secret in content} | self._known & (random_texts | encoded_texts)
        leaked |= {
            candidate
            for candidate in random_texts - set(_COORDINATE.findall(content))
            if _SECRET_WORD.fullmatch(candidate) and f"{candidate}=" not in content
        }
        patterns = [re.compile(rf"\b{item}\b" if item.isdecimal() else re.escape(item)) for item in leaked]
        patterns += [shape for part, shape in _SHAPES.items() if part in content]
        found = [(content, at) for pattern in patterns for at in pattern.finditer(content)]
        found += [(logged, at) for item in short if item in logged for at in _as_value(item).finditer(logged)]
        return [
            f"{secret[:_EXCERPT_LENGTH]!r} in: {line}"
            for line, secret in {_line(text, at): at[0] for text, at in found}.items()
        ]


def _line(text: str, at: re.Match[str]) -> str:
    return text[text.rfind("\n", 0, at.start()) + 1 : (text + "\n").find("\n", at.end())]


def _as_value(text: str) -> re.Pattern[str]:
    """A pattern that finds the text only as a whole value: quoted but not as a key, or after an equals sign."""
    return re.compile(rf"""(?:["']{re.escape(text)}["'](?!:)|=\s?{re.escape(text)}(?:[&,;\s)}}]|$))""", re.MULTILINE)
