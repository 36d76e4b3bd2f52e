"""Decoding of JSON bodies."""

from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest

from identity.domain.errors import Invalid
from identity.domain.validators import lifetime_problem
from identity.http.error_views import MalformedRequest
from identity.http.strict_json import parse_json_object
from identity.plugins.management.json_body import decode_command, decode_members
from identity.services.commands import Command
from identity.services.commands.documents import Document
from identity.services.commands.entity_fields import field_validator
from identity.services.commands.field_types import Name

TokenLifetime = Annotated[timedelta, field_validator(lifetime_problem)]


class ExampleMember(Command):
    text: str = ""


class Whole(Document):
    parts: tuple[ExampleMember, ...] | None = None


class ExampleCommand(Command):
    """A command with a member of each type."""

    name: Name = "x"
    flag: bool = False
    lifetime: TokenLifetime | None = None
    size: Literal[1, 2] = 1
    labels: frozenset[str] = frozenset()
    part: ExampleMember | None = None


def test_body_types_follow_the_schema() -> None:
    wrong: dict[str, list[Any]] = {
        "flag": ["yes", 1],
        "name": [["x"]],
        "lifetime": ["60", 60.0, False],
        "size": [True, "1", 3],
        "labels": ["a", {"a": 1}, ["a", 1]],
        "part": [[], {"text": 1}, {"other": ""}],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(Invalid) as refused:
                decode_members(ExampleCommand, {name: value})
            assert set(refused.value.fields) == {name}
            assert refused.value.fields[name]


def test_valid_body_is_decoded() -> None:
    members = {"name": "a", "flag": True, "lifetime": 60, "size": 2, "labels": ["b", "a", "b"], "part": {"text": "c"}}
    decoded = decode_members(ExampleCommand, members)
    assert decoded.lifetime == timedelta(seconds=60)
    assert decoded.labels == {"a", "b"}
    assert decoded.part == ExampleMember(text="c")
    assert decode_members(ExampleCommand, {"lifetime": None, "part": None}) == ExampleCommand()


def test_all_invalid_members_are_named() -> None:
    with pytest.raises(Invalid) as refused:
        decode_members(ExampleCommand, {"name": "", "flag": "yes", "other": 1, "size": 7})
    assert set(refused.value.fields) == {"name", "flag", "other", "size"}


def test_document_problems_have_paths() -> None:
    members = {"parts": [5, {"text": "a", "other": ""}, {"text": False}, {"text": "b"}], "more": 1}
    whole = decode_command(Whole, members)
    assert isinstance(whole, Whole)
    assert set(whole.parse_report.problems) == {"parts[0]", "parts[1].other", "parts[2].text", "more"}
    # Valid parts are decoded; later problems keep the path in the whole document.
    assert whole.parts == (ExampleMember(text="a"), ExampleMember(), ExampleMember(text="b"))
    assert whole.parse_report.merge_problems({"parts[2]": "b"}).keys() == {*whole.parse_report.problems, "parts[3]"}
    assert not decode_command(Whole, {"parts": [{"text": "a"}]}).parse_report.problems  # type: ignore[attr-defined]


def test_body_must_be_an_object_of_storable_texts() -> None:
    objects = (b"", b"{}x", b"{'a': 1}", b'{"a": Infinity}', b'{"a": {"b": 1, "b": 2}}', b"1")
    texts = (b'{"a": ["x", "\\u0000"]}', b'{"a\\u0000": 1}', b'{"a": [["\\udfff"]]}')
    for body in (*objects, *texts):
        with pytest.raises(MalformedRequest):
            parse_json_object(body)
