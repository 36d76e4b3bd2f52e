"""What was told in the test that runs, and the secrets that were made or given in it."""

import base64
import json
import logging
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

#: What is shorter stands in texts by chance, and so does one word (hypothesis takes those of the program): both are
#: searched for as whole values. Codes of digits are searched for as words, and what is even shorter, not at all.
_SHORTEST, _SHORTEST_VALUE = 8, 3
_WORD = re.compile(r"[a-z]+")
_DIGITS = re.compile(r"[0-9]{6,}")
#: What tests give in place of a secret that is an everyday word, and what stands in logs with good reason: identifiers,
#: addresses, names that RFCs register.
_WORDS = frozenset({"password", "wrong password", "another one"})
_PUBLIC = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|https?://\S+|urn:\S+|[a-z]+(?:_[a-z]+)+"
)

#: Secrets nobody guesses are looked for up to the end of the run: threads and processes tell of earlier tests.
_UNGUESSABLE = (re.compile(r"[\w-]{20,}"), re.compile(r"[\w+/]{20,}"))
_VARIETY = 10

#: What gives secrets away that nobody has noted, since a process has made them: tokens and one-time passwords of the
#: service among those words, and texts that hold a part, which is quickly looked for. Digests in base64 are longer than
#: tokens, or have other signs in between.
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

#: How much of a secret is shown that was found.
_SHOWN = 40

#: Packages in the place of mail servers, of applications and of people with browsers: theirs is what is sent to them.
#: And functions of those that speak for the service too.
_OTHERS = frozenset({"mail", "requests_oauthlib", "selenium", "urllib3"})
#: What tells of classes as they are declared: a fuzzed request may hold the same words of a program.
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
    """Lines and secrets, from one ``found()`` to the next."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        #: Events, whose details people choose: words are nothing there.
        self.trail: list[str] = []
        self.secrets: set[str] = set()
        self._short: set[str] = set()
        self._kept: set[str] = set()
        self._formatter = logging.Formatter()
        #: Each brings lines that were written elsewhere since it was asked last.
        self.sources: list[Callable[[], Iterable[str]]] = []

    def note(self, secret: object) -> None:
        """Look for it from now on, up to the end of the test, and for what nobody guesses up to that of the run."""
        if isinstance(secret, bytes):
            self._note_bytes(secret)
        if not isinstance(secret, str) or secret in _WORDS or _PUBLIC.fullmatch(secret):
            return
        if len(set(secret)) >= _VARIETY and any(item.fullmatch(secret) for item in _UNGUESSABLE):
            self._kept.add(secret)
        if (len(secret) >= _SHORTEST and not _WORD.fullmatch(secret)) or _DIGITS.fullmatch(secret):
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
        """Keep a line as a person would read it."""
        if record.name.partition(".")[0] in _OTHERS or (record.name, record.funcName) in _FUNCTIONS_OF_OTHERS:
            return
        if record.name.startswith(_OF_CLASSES):
            return
        try:
            told = record.getMessage()
        except Exception as problem:
            told = f"{record.msg!r} cannot be formatted: {problem!r}"
        if record.exc_info:
            told = self._formatter.format(record)
        self.lines.append(f"{record.name} {told}")

    def found(self) -> list[str]:
        """The secrets that lines hold, each with the line; then begin anew."""
        for source in self.sources:
            self.lines += source()
        lines, self.lines = self.lines, []
        secrets, self.secrets = self.secrets, set()
        short, self._short = self._short, set()
        trail, self.trail = self.trail, []
        logged = "\n".join(dict.fromkeys(lines))
        told = "\n".join((logged, *trail))
        words, others = (set(item.findall(told)) for item in _UNGUESSABLE)
        shown = {secret for secret in secrets if secret in told} | self._kept & (words | others)
        shown |= {word for word in words if _SECRET_WORD.fullmatch(word) and f"{word}=" not in told}
        patterns = [re.compile(rf"\b{item}\b" if item.isdecimal() else re.escape(item)) for item in shown]
        patterns += [shape for part, shape in _SHAPES.items() if part in told]
        found = [(told, at) for pattern in patterns for at in pattern.finditer(told)]
        found += [(logged, at) for item in short if item in logged for at in _as_value(item).finditer(logged)]
        return [
            f"{secret[:_SHOWN]!r} in: {line}" for line, secret in {_line(text, at): at[0] for text, at in found}.items()
        ]


def _line(told: str, at: re.Match[str]) -> str:
    return told[told.rfind("\n", 0, at.start()) + 1 : (told + "\n").find("\n", at.end())]


def _as_value(text: str) -> re.Pattern[str]:
    """The text as a whole value: quoted and no member's name, or behind an equals sign."""
    return re.compile(rf"""(?:["']{re.escape(text)}["'](?!:)|=\s?{re.escape(text)}(?:[&,;\s)}}]|$))""", re.MULTILINE)
