"""Decoded and validated request parameters."""

import re
from collections.abc import Container, Mapping
from urllib.parse import unquote_plus

from identity.provider.errors import InvalidRequest

MAX_PARAMETERS = 100
MAX_BODY_LENGTH = 16 * 1024

#: Never accepted in a query string: URLs end up in logs and browser histories (RFC 6749 §2.3.1, RFC 6750 §2.3).
SECRET_PARAMETERS = frozenset(
    {
        "access_token",
        "actor_token",
        "assertion",
        "client_assertion",
        "client_secret",
        "code",
        "code_verifier",
        "device_code",
        "password",
        "refresh_token",
        "subject_token",
        "token",
    }
)

_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"[\x21-\x7e]{1,100}\Z")


class Parameters(Mapping[str, str]):
    """Decoded parameters. An empty value counts as absent (RFC 6749 §3.1, §3.2). ``repeated`` holds the repeated
    parameters, which are not among the others."""

    __slots__ = ("_values", "repeated")

    def __init__(self, values: Mapping[str, str], repeated: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._values = values
        self.repeated = repeated or {}

    @classmethod
    def parse(cls, encoded: bytes, *, longest: int = MAX_BODY_LENGTH) -> "Parameters":
        """Decode application/x-www-form-urlencoded bytes. Raises InvalidRequest for repeated parameters, more than
        MAX_PARAMETERS, values over ``longest`` characters, invalid percent or UTF-8 encoding, and NUL."""
        parameters = cls.parse_leniently(encoded, longest=longest)
        parameters.refuse_repeated()
        return parameters

    @classmethod
    def parse_leniently(cls, encoded: bytes, *, longest: int = MAX_BODY_LENGTH) -> "Parameters":
        """Like ``parse``, but keep repeated parameters in ``repeated``. For requests whose errors are redirected to the
        client by the unambiguous parameters."""
        try:
            text = encoded.decode("ascii")
            if text.count("&") >= MAX_PARAMETERS:
                raise InvalidRequest(f"the request has more than {MAX_PARAMETERS} parameters")
            divided = [item.partition("=") for item in text.split("&") if item]
            pairs = [(_decoded(name), _decoded(value)) for name, _, value in divided]
        except UnicodeDecodeError:
            raise InvalidRequest("the request is not form-encoded UTF-8") from None
        if b"%" in encoded and _STRAY_PERCENT.search(encoded):
            raise InvalidRequest("the request is not form-encoded UTF-8")
        for name, value in pairs:
            if len(value) > longest:
                raise InvalidRequest(f"parameter {_printable_name(name)} is too long", reason="a parameter is too long")
            if "\0" in value:
                raise InvalidRequest(
                    f"parameter {_printable_name(name)} holds a NUL character",
                    reason="a parameter holds a NUL character",
                )
        repeated = _repeated(pairs) if len(dict(pairs)) != len(pairs) else ()
        values = {name: value for name, value in pairs if value and name not in repeated}
        several = {name: tuple(value for item, value in pairs if item == name and value) for name in repeated}
        return cls(values, several)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get_value(self, name: str) -> str | None:
        """None if the parameter is absent or empty."""
        return self._values.get(name)

    def require_value(self, name: str) -> str:
        """Raises InvalidRequest if the parameter is absent or empty."""
        value = self._values.get(name)
        if value is None:
            raise InvalidRequest(f"parameter {name} is missing")
        return value

    def refuse_repeated(self, allowed: Container[str] = ()) -> None:
        """Raise InvalidRequest if a parameter was repeated that is not ``allowed`` to be."""
        for name in self.repeated:
            if name not in allowed:
                raise repeated_parameter_error(name)

    def get_values(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be repeated, in order."""
        value = self._values.get(name)
        return self.repeated.get(name, ()) if value is None else (value,)

    def get_space_delimited(self, name: str) -> tuple[str, ...]:
        """The parameter's space-delimited values, in order, without duplicates."""
        # Only a space separates (RFC 6749 §3.3): a tab stays in its value and is refused there.
        return tuple(dict.fromkeys(item for item in self._values.get(name, "").split(" ") if item))

    @staticmethod
    def refuse_secrets(query: bytes) -> None:
        """Raise InvalidRequest if a query string contains a secret or a token."""
        if query and any(name in SECRET_PARAMETERS for name in Parameters.parse(query)):
            raise InvalidRequest("send credentials and tokens in the header or the body, never in the address")


def _decoded(text: str) -> str:
    # Most names and values are not percent-encoded.
    return unquote_plus(text, errors="strict") if "%" in text or "+" in text else text


def _repeated(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    names: set[str] = set()
    return tuple(dict.fromkeys(name for name, _ in pairs if name in names or names.add(name)))  # type: ignore[func-returns-value]


def repeated_parameter_error(name: str) -> InvalidRequest:
    return InvalidRequest(f"parameter {_printable_name(name)} was given twice", reason="a parameter was given twice")


def _printable_name(name: str) -> str:
    """The name without characters that error_description forbids: quotes and backslashes (RFC 6749 §5.2)."""
    return name if _NAME.match(name) and not {'"', "\\"} & set(name) else "(unprintable)"
