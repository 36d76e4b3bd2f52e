"""What is a JSON body, and what becomes of its members."""

from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest

from identity.domain.errors import Invalid
from identity.domain.rules import lifetime_problem
from identity.http.errors import Malformed
from identity.http.json_object import read_object
from identity.plugins.management.json_body import decode_members, decoded
from identity.services.commands import Command
from identity.services.commands.derived import checked
from identity.services.commands.documents import Document
from identity.services.commands.fields import Name

TokenLifetime = Annotated[timedelta, checked(lifetime_problem)]


class Part(Command):
    """A part of a command."""

    text: str = ""


class Whole(Document):
    """A command that holds others."""

    parts: tuple[Part, ...] | None = None


class Example(Command):
    """A command with everything that there is."""

    name: Name = "x"
    flag: bool = False
    lifetime: TokenLifetime | None = None
    size: Literal[1, 2] = 1
    words: frozenset[str] = frozenset()
    part: Part | None = None


def test_types_are_those_of_the_schema() -> None:
    wrong: dict[str, list[Any]] = {
        "flag": ["yes", 1],
        "name": [["x"]],
        "lifetime": ["60", 60.0, False],
        "size": [True, "1", 3],
        "words": ["a", {"a": 1}, ["a", 1]],
        "part": [[], {"text": 1}, {"other": ""}],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(Invalid) as refused:
                decode_members(Example, {name: value})
            assert set(refused.value.fields) == {name}
            assert refused.value.fields[name]


def test_what_fits_is_decoded() -> None:
    members = {"name": "a", "flag": True, "lifetime": 60, "size": 2, "words": ["b", "a", "b"], "part": {"text": "c"}}
    decoded = decode_members(Example, members)
    assert decoded.lifetime == timedelta(seconds=60)
    assert decoded.words == {"a", "b"}
    assert decoded.part == Part(text="c")
    assert decode_members(Example, {"lifetime": None, "part": None}) == Example()


def test_every_member_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        decode_members(Example, {"name": "", "flag": "yes", "other": 1, "size": 7})
    assert set(refused.value.fields) == {"name", "flag", "other", "size"}


def test_places_in_documents_are_told_by_path() -> None:
    members = {"parts": [5, {"text": "a", "other": ""}, {"text": False}, {"text": "b"}], "more": 1}
    whole = decoded(Whole, members)
    assert isinstance(whole, Whole)
    assert set(whole.reading.problems) == {"parts[0]", "parts[1].other", "parts[2].text", "more"}
    # What can be read is, and what is found in it later stands where it stood in the whole.
    assert whole.parts == (Part(text="a"), Part(), Part(text="b"))
    assert whole.reading.together({"parts[2]": "b"}).keys() == {*whole.reading.problems, "parts[3]"}
    assert not decoded(Whole, {"parts": [{"text": "a"}]}).reading.problems  # type: ignore[attr-defined]


def test_only_objects_are_read_of_texts_that_can_be_stored() -> None:
    objects = (b"", b"{}x", b"{'a': 1}", b'{"a": Infinity}', b'{"a": {"b": 1, "b": 2}}', b"1")
    texts = (b'{"a": ["x", "\\u0000"]}', b'{"a\\u0000": 1}', b'{"a": [["\\udfff"]]}')
    for body in (*objects, *texts):
        with pytest.raises(Malformed):
            read_object(body)
