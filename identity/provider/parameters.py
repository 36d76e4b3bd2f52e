"""Parameters: what a request carries, each at most once, in clean text."""

import re
from collections.abc import Container, Mapping
from urllib.parse import unquote_plus

from identity.provider.errors import InvalidRequest

MAX_PARAMETERS = 100
MAX_BODY_LENGTH = 16 * 1024

#: Never accepted in a query string: addresses are logged and kept in histories (RFC 6749 §2.3.1, RFC 6750 §2.3).
SECRET_PARAMETERS = frozenset(
    {
        "access_token",
        "assertion",
        "client_assertion",
        "client_secret",
        "code",
        "code_verifier",
        "password",
        "refresh_token",
        "token",
    }
)

_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NAME = re.compile(r"[\x21-\x7e]{1,100}\Z")


class Parameters(Mapping[str, str]):
    """Decoded parameters. An empty value counts as absent (RFC 6749 §3.1, §3.2).

    ``repeated`` holds what was given more than once, which is not among the others.
    """

    __slots__ = ("_values", "repeated")

    def __init__(self, values: Mapping[str, str], repeated: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._values = values
        self.repeated = repeated or {}

    @classmethod
    def parse(cls, encoded: bytes, *, longest: int = MAX_BODY_LENGTH) -> "Parameters":
        """Decode application/x-www-form-urlencoded bytes.

        Raises InvalidRequest for repeated parameters, more than MAX_PARAMETERS, values over ``longest`` characters,
        broken percent or UTF-8 encoding, and NUL.
        """
        parameters = cls.parse_leniently(encoded, longest=longest)
        parameters.refuse_repeated()
        return parameters

    @classmethod
    def parse_leniently(cls, encoded: bytes, *, longest: int = MAX_BODY_LENGTH) -> "Parameters":
        """As ``parse``, but repeated parameters are kept apart.

        For requests whose errors have to find their way back to a client by the parameters that are clear.
        """
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
        """The parameter's value, None if it is absent or empty."""
        return self._values.get(name)

    def require_value(self, name: str) -> str:
        """The parameter's value. Raises InvalidRequest if it is absent or empty."""
        value = self._values.get(name)
        if value is None:
            raise InvalidRequest(f"parameter {name} is missing")
        return value

    def refuse_repeated(self, allowed: Container[str] = ()) -> None:
        """Raise InvalidRequest if a parameter was given more than once, unless it may be."""
        for name in self.repeated:
            if name not in allowed:
                raise repeated_parameter_error(name)

    def get_values(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be given more than once, in order."""
        value = self._values.get(name)
        return self.repeated.get(name, ()) if value is None else (value,)

    def get_space_delimited(self, name: str) -> tuple[str, ...]:
        """The parameter's space-delimited words, in order, each once."""
        # Space alone divides (RFC 6749 §3.3): a tab stays in its word, and is refused there.
        return tuple(dict.fromkeys(item for item in self._values.get(name, "").split(" ") if item))


def _decoded(text: str) -> str:
    # Most names and values are as they were before they were encoded.
    return unquote_plus(text, errors="strict") if "%" in text or "+" in text else text


def refuse_secrets(query: bytes) -> None:
    """Raise InvalidRequest if a query string carries a secret or a token."""
    if query and any(name in SECRET_PARAMETERS for name in Parameters.parse(query)):
        raise InvalidRequest("send credentials and tokens in the header or the body, never in the address")


def _repeated(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    names: set[str] = set()
    return tuple(dict.fromkeys(name for name, _ in pairs if name in names or names.add(name)))  # type: ignore[func-returns-value]


def repeated_parameter_error(name: str) -> InvalidRequest:
    """The error for a parameter that was given twice."""
    return InvalidRequest(f"parameter {_printable_name(name)} was given twice", reason="a parameter was given twice")


def _printable_name(name: str) -> str:
    """The name as it may stand in an error_description (RFC 6749 §5.2 allows no quotes or backslashes)."""
    return name if _NAME.match(name) and not {'"', "\\"} & set(name) else "(unprintable)"
