import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.domain.names import (
    display_name_error,
    domain_from_name,
    domain_name_error,
    login_name_key,
    name_key,
    user_name_error,
)


@pytest.mark.parametrize(
    ("first", "other"),
    [("Anna", "anna"), (" anna ", "anna"), ("STRASSE", "straße"), ("é", "e\u0301"), ("ﬁ", "fi")],
)
def test_spellings_of_one_name_are_equal(first: str, other: str) -> None:
    assert name_key(first) == name_key(other)


def test_different_names_differ() -> None:
    assert name_key("anna") != name_key("hanna")


@pytest.mark.parametrize(
    ("login_name", "key"),
    [
        ("Anna", ("anna", "")),
        (" ANNA @ Acme.Example ", ("anna", "acme.example")),
        ("ａnna＠ａcme.example", ("anna", "acme.example")),
        ("a@b@c", ("a@b", "c")),
        ("anna@", ("anna", "")),
        ("@acme.example", ("", "acme.example")),
        ("", ("", "")),
    ],
)
def test_key_of_a_login_name(login_name: str, key: tuple[str, str]) -> None:
    assert login_name_key(login_name) == key


@given(st.text())
def test_key_of_a_key_is_the_key(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\x00b", "a\u202eb", "a\nb"])
def test_unprintable_names_are_refused(name: str) -> None:
    assert display_name_error(name)


@pytest.mark.parametrize("name", ["a b", "a@b", "a/b", "a\\b", "a＠b", "a﹫b", "a／b", "", "x" * 201, "a\x07"])
def test_user_names_that_would_confuse_a_login_name_are_refused(name: str) -> None:
    assert user_name_error(name)


@pytest.mark.parametrize("name", ["ci-runner", "anna.müller", "张伟", "o'brien", "a+b"])
def test_other_user_names_are_fine(name: str) -> None:
    assert user_name_error(name) is None


@pytest.mark.parametrize("domain", ["acme.example", "a", "xn--mnchen-3ya.de", "1.2.3"])
def test_domains(domain: str) -> None:
    assert domain_name_error(domain) is None


@pytest.mark.parametrize(
    "domain", ["", "Acme.example", "-a.b", "a-.b", "a..b", "a b", "a" * 64, "a." * 127 + "toolong"]
)
def test_invalid_domains_are_refused(domain: str) -> None:
    assert domain_name_error(domain)


@given(st.text())
def test_derived_domain_is_a_domain(name: str) -> None:
    assert domain_name_error(domain_from_name(name, "id.example.com")) is None


def test_derived_domain_reads_like_the_name() -> None:
    assert domain_from_name("Acme GmbH & Co", "id.example.com") == "acme-gmbh-co.id.example.com"
