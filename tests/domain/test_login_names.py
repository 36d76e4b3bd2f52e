"""Login names: split once and compared case-insensitively."""

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.login_names import LoginName
from identity.domain.names import login_name_key, user_name_error
from identity.storage.contract import factories as make

ACME = replace(make.organization(), primary_domain="acme.example")
PIECES = st.lists(st.sampled_from(["ada", "Ada", "@", "＠", "﹫", " ", "\u200b", "ß", "acme.example", "1"]) | st.text())


def test_bare_name_belongs_to_the_organization() -> None:
    name = LoginName.parse(" Ada ", ACME)
    assert (name.comparison_key, name.full, name.has_own_domain) == ("ada@acme.example", "Ada@acme.example", False)
    assert name.email_key is None, "nobody typed an address"
    assert LoginName.parse("Ada").comparison_key == "ada"


def test_domain_in_name_overrides_the_organization() -> None:
    name = LoginName.parse("ada@Bolt.Example", ACME)
    assert (name.comparison_key, name.full, name.has_own_domain) == ("ada@bolt.example", "ada@Bolt.Example", True)
    assert name.email_key == "ada@bolt.example"


@pytest.mark.parametrize(
    ("typed", "domain"),
    [
        ("ada@bücher.example", "xn--bcher-kva.example"),
        ("ada@BÜCHER.example", "xn--bcher-kva.example"),
        ("ada@xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ada@straße.example", "xn--strae-oqa.example"),
        ("ada@strasse.example", "strasse.example"),
        ("ada@ａcme.example", "acme.example"),
    ],
)
def test_domains_are_compared_as_dns_knows_them(typed: str, domain: str) -> None:
    assert LoginName.parse(typed).domain == domain


@pytest.mark.parametrize(
    "typed", ["ada@1@acme.example", "ada b@acme.example", "a\u200bda@acme.example", "@acme.example"]
)
def test_login_name_with_invalid_user_name_is_invalid(typed: str) -> None:
    assert not LoginName.parse(typed).is_valid


@given(PIECES.map("".join))
def test_every_text_is_split_at_its_last_at_sign(typed: str) -> None:
    """Storage look-ups, directories and rate limits use the same split."""
    name = LoginName.parse(typed, ACME)
    assert (name.user_key, name.domain if name.has_own_domain else "") == login_name_key(name.typed)
    assert "@" not in unicodedata.normalize("NFKC", name.domain)
    assert LoginName.parse(name.comparison_key).comparison_key == name.comparison_key or not name.user_key
    if name.is_valid:
        assert "@" not in unicodedata.normalize("NFKC", name.user_name)
        assert user_name_error(name.user_name) is None


@given(st.text(max_size=40), st.sampled_from([str.upper, str.lower, str.casefold, str.strip]))
def test_case_and_space_around_never_make_another_counter(user: str, respelt: object) -> None:
    assert callable(respelt)
    if user.isascii():
        assert (
            LoginName.parse(f"{respelt(user)}@acme.example").comparison_key
            == LoginName.parse(f"{user}@acme.example").comparison_key
        )
