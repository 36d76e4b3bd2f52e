"""Form: submitted data. FormState: how a form is rendered, with its values and errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from markupsafe import Markup

from identity.crypto.secrets import new_id
from identity.domain.errors import Conflict
from identity.pages.translation import Translator
from identity.provider.errors import InvalidRequest
from identity.provider.parameters import MAX_BODY_LENGTH, MAX_PARAMETERS, Parameters

#: The field by which FormPage knows a form that was sent twice.
SUBMISSION_ID_FIELD = "once"

FieldValue = str | tuple[str, ...]


class Form(Mapping[str, FieldValue]):
    """The fields of a form, decoded strictly; empty fields count as absent. Line ends are normalized to line feeds."""

    #: The field that FormPage fills in with the version of what the form changes.
    VERSION_FIELD = "version"

    def __init__(self, values: Mapping[str, FieldValue], sent: frozenset[str] = frozenset()) -> None:
        self._values = values
        #: The names of all submitted fields, including empty ones.
        self.sent = sent

    @classmethod
    def parse(
        cls, encoded: bytes, repeated: frozenset[str] = frozenset(), *, max_length: int = MAX_BODY_LENGTH
    ) -> "Form":
        """Parse a form body; ``repeated`` fields may occur many times. Raises InvalidRequest, as Parameters does."""
        single: list[bytes] = []
        several: dict[str, list[str]] = {}
        parts = encoded.split(b"&")
        if len(parts) > MAX_PARAMETERS:
            raise InvalidRequest(f"the request has more than {MAX_PARAMETERS} parameters")
        for part in parts:
            name = _decode_field_name(part)
            if name not in repeated:
                single.append(part)
            elif (value := Parameters.parse(part).get_value(name)) is not None:
                several.setdefault(name, []).append(value)
        values: dict[str, FieldValue] = {
            name: value.replace("\r\n", "\n")
            for name, value in Parameters.parse(b"&".join(single), longest=max_length).items()
        }
        repeated_values = {name: tuple(dict.fromkeys(found)) for name, found in several.items()}
        return cls(
            values | repeated_values, frozenset(unquote_plus(_decode_field_name(part)) for part in parts if part)
        )

    def __getitem__(self, name: str) -> FieldValue:
        return self._values[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        return value if isinstance(value, str) else " ".join(value)

    def version(self) -> int:
        """The version of what the form changes. Raises Conflict if it is missing or malformed."""
        text = self.text(self.VERSION_FIELD)
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise Conflict("The form does not say what it changes.")
        return int(text)

    def texts(self, name: str) -> tuple[str, ...]:
        """The distinct texts of a repeated field."""
        value = self._values.get(name, ())
        return (value,) if isinstance(value, str) else value

    def repeated_text(self, name: str) -> str | None:
        """The repetition in ``{name}_again``; None if that field was not sent, as by scripts."""
        field = f"{name}_again"
        return self.text(field) if field in self.sent else None

    def command_values(self, *names: str) -> dict[str, str]:
        """These fields as input for a command; absent ones are empty."""
        return {name: self.text(name) for name in names}


def _decode_field_name(part: bytes) -> str:
    return part.partition(b"=")[0].decode("ascii", "replace")


@dataclass(frozen=True)
class FormMessage:
    """A message above the form; ``kind`` is success, info, warning or danger."""

    kind: str
    text: Markup


@dataclass(frozen=True, kw_only=True)
class FormState:
    """A form as templates see it: action, token, values, errors.

    ``fields`` are the rendered fields in page order; ``document_field`` is the one whose text is a document with
    members of its own. After a conflict ``stored`` has the values that were saved meanwhile.
    """

    action: str
    token: str
    translator: Translator
    fields: Sequence[str]
    values: Mapping[str, FieldValue] = field(default_factory=dict)
    stored: Mapping[str, FieldValue] | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    message: FormMessage | None = None
    is_creation: bool = False
    document_field: str = ""
    #: Fields without text input, such as a checkbox or a button beside the only text field.
    non_text_fields: frozenset[str] = frozenset()

    def value(self, name: str) -> str:
        value = self.values.get(name, "")
        return value if isinstance(value, str) else "\n".join(value)

    def is_checked(self, name: str, option: str) -> bool:
        """True if the option is among the field's values."""
        value = self.values.get(name, "")
        return option == value if isinstance(value, str) else option in value

    def error(self, name: str) -> Markup | None:
        problem = self.errors.get(name)
        return None if problem is None else self.translator.gettext(problem)

    def saved(self, name: str) -> str:
        """After a conflict, the stored value if it differs from the field's value."""
        if self.stored is None or name not in self.stored or self.stored[name] == self.values.get(name, ""):
            return ""
        value = self.stored[name]
        return value if isinstance(value, str) else ", ".join(value)

    @property
    def error_summary(self) -> list[tuple[str, Markup]]:
        """Pairs of field and error message in page order; empty if a single field shows its own error.

        Errors of fields that the page does not render have no link.
        """
        known = [name for name in self.fields if name in self.errors]
        strays = [name for name in self.errors if name not in self.fields]
        if len(set(self.fields) - self.non_text_fields) <= 1 and not strays:
            return []
        return [
            (name if name in known else "", self.translator.gettext(self.errors[name])) for name in (*known, *strays)
        ]

    @property
    def error_count(self) -> int:
        return len(self.error_summary) - (self.document_field in self.errors and len(self.error_summary) > 1)

    @property
    def is_field_focused(self) -> bool:
        """True unless a message above the form has the focus."""
        return not self.error_summary and self.message is None

    @property
    def has_errors(self) -> bool:
        return bool(self.errors) or (self.message is not None and self.message.kind == "danger")

    @property
    def version(self) -> str:
        """The version that the form edits; empty on other forms."""
        return self.value(Form.VERSION_FIELD)

    @property
    def submission_id(self) -> str:
        """The single-use id of a creation form; it stays the same when the form is shown again."""
        return (self.value(SUBMISSION_ID_FIELD) or new_id()) if self.is_creation else ""
