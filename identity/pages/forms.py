"""Form: what was posted. FormState: how the form looks now, with what was typed and what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from markupsafe import Markup

from identity.crypto.secrets import new_id
from identity.pages.translation import Translator
from identity.provider.errors import InvalidRequest
from identity.provider.parameters import MAX_BODY_LENGTH, MAX_PARAMETERS, Parameters

#: Fields that the runner fills in by itself.
VERSION_FIELD, SUBMISSION_ID_FIELD = "version", "once"

FieldValue = str | tuple[str, ...]


class Form(Mapping[str, FieldValue]):
    """The fields of a form, decoded strictly; an empty one counts as absent. Lines end in a line feed alone."""

    def __init__(self, values: Mapping[str, FieldValue], sent: frozenset[str] = frozenset()) -> None:
        self._values = values
        #: The names of all fields that were sent, empty ones too.
        self.sent = sent

    @classmethod
    def parse(
        cls, encoded: bytes, repeated: frozenset[str] = frozenset(), *, max_length: int = MAX_BODY_LENGTH
    ) -> "Form":
        """The form in a body; ``repeated`` fields may be given many times. Raises InvalidRequest as Parameters do."""
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
        """The field's text; empty if it is absent."""
        value = self._values.get(name, "")
        return value if isinstance(value, str) else " ".join(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a field that may be repeated, each once."""
        value = self._values.get(name, ())
        return (value,) if isinstance(value, str) else value

    def repeated_text(self, name: str) -> str | None:
        """What was typed a second time, in ``{name}_again``; None if the sender has no such field, as programs do."""
        field = f"{name}_again"
        return self.text(field) if field in self.sent else None

    def command_values(self, *names: str) -> dict[str, str]:
        """These fields as a command takes them: absent ones are empty."""
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
    """A form as templates see it: address, token, values, problems.

    ``fields`` are those that the page draws, in its order; ``document_field`` is that of a file in which others stand.
    ``stored`` is set after a conflict: what others have saved meanwhile.
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
    #: Fields that nothing is typed into, such as a checkbox or a button beside the one field.
    non_text_fields: frozenset[str] = frozenset()

    def value(self, name: str) -> str:
        """What stands in the field."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else "\n".join(value)

    def is_checked(self, name: str, option: str) -> bool:
        """True if the option is among the field's values."""
        value = self.values.get(name, ())
        return option == value if isinstance(value, str) else option in value

    def error(self, name: str) -> Markup | None:
        """What is wrong with the field."""
        problem = self.errors.get(name)
        return None if problem is None else self.translator.gettext(problem)

    def saved(self, name: str) -> str:
        """After a conflict, what the field holds in the store, if that is not what stands in it."""
        if self.stored is None or name not in self.stored or self.stored[name] == self.values.get(name, ""):
            return ""
        value = self.stored[name]
        return value if isinstance(value, str) else ", ".join(value)

    @property
    def error_summary(self) -> list[tuple[str, Markup]]:
        """The problems in the page's order, as links: field and sentence. None where the one field tells its own.

        A problem that belongs to no field of the page has no link.
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
        """How many fields need a change. A field that holds others says only that some of these do."""
        return len(self.error_summary) - (self.document_field in self.errors and len(self.error_summary) > 1)

    @property
    def is_field_focused(self) -> bool:
        """True unless a message above the form has the focus."""
        return not self.error_summary and self.message is None

    @property
    def has_errors(self) -> bool:
        """True if something has to be mended."""
        return bool(self.errors) or (self.message is not None and self.message.kind == "danger")

    @property
    def version(self) -> str:
        """The version that a change is made to; empty on other forms."""
        return self.value(VERSION_FIELD)

    @property
    def submission_id(self) -> str:
        """The single-use id of a form that creates something: the same for as long as the form is drawn again."""
        return (self.value(SUBMISSION_ID_FIELD) or new_id()) if self.is_creation else ""
