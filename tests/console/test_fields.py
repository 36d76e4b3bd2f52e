"""One declaration: a field of an entity that has words is asked for in forms and told on pages by these alone."""

from datetime import timedelta
from enum import StrEnum

import pytest

from identity.domain.entity import entity, made, once, setting
from identity.domain.names import name_problem, user_name_problem
from identity.domain.rules import description_problem, email_problem, unless_empty
from identity.domain.words import say
from identity.plugins.console.fields import LITERAL, Choice, Field, Lines, Minutes, Text, Tick, Ticks, fields_of


class Colour(StrEnum):
    """What it can look like."""

    RED = "red"
    BLUE = "blue"


@entity
class Thing:
    """Something with a field of each kind."""

    id: str = made()
    key: str = once(rule=user_name_problem, label=say("Key"), missing=say("Enter a key."))
    title: str = setting(rule=name_problem, label=say("Title"), hint=say("On its cover."))
    wordless: str = setting(default="")
    about: str = setting(default="", rule=description_problem, label=say("About"))
    email: str = setting(default="", rule=unless_empty(email_problem), label=say("Email"))
    loud: bool = setting(default=False, section=say("More"), label=say("Loud"))
    lasts: timedelta | None = setting(default=None, label=say("Lasts"))
    colour: Colour = setting(
        default=Colour.RED, label=say("Colour"), words={Colour.RED: say("Red"), Colour.BLUE: say("Blue")}
    )
    words: frozenset[str] = setting(default=frozenset(), label=say("Words"))
    addresses: tuple[str, ...] = setting(default=(), label=say("Addresses"))


FIELDS = {one.member: one for one in fields_of(Thing, "title", options={"words": lambda _: [("a", "A")]})}


def test_what_has_words_and_can_be_set_is_asked_for_and_parts_come_last() -> None:
    assert list(FIELDS) == ["title", "key", "about", "email", "lasts", "colour", "words", "addresses", "loud"]
    assert FIELDS["words"].name == "word"
    assert (FIELDS["title"].hint, FIELDS["key"].missing, FIELDS["loud"].part) == (
        "On its cover.",
        "Enter a key.",
        "More",
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("key", Field),
        ("about", Text),
        ("loud", Tick),
        ("lasts", Minutes),
        ("colour", Choice),
        ("words", Ticks),
        ("addresses", Lines),
    ],
)
def test_the_type_says_how_it_is_asked_for(name: str, kind: type[Field]) -> None:
    assert type(FIELDS[name]) is kind


def test_the_rule_says_what_is_required_and_how_it_is_typed() -> None:
    assert {name for name, one in FIELDS.items() if one.required and not isinstance(one, Choice)} == {"title", "key"}
    assert FIELDS["key"].attributes == LITERAL
    assert FIELDS["email"].attributes["type"] == "email"
