"""Which domains the service assigns itself, which need verification, and which are refused."""

import pytest

from identity.domain.domains import DomainNamespace

SPACE = DomainNamespace("id.example.com", frozenset({"id.example.com", "api.example.com", "login.example.com"}))


@pytest.mark.parametrize("name", ["acme.id.example.com", "a.id.example.com", "a-1.id.example.com"])
def test_one_label_below_needs_no_proof(name: str) -> None:
    assert SPACE.contains(name)
    assert SPACE.name_error(name) is None


@pytest.mark.parametrize("name", ["acme.example", "microsoft.com", "example.com", "co.uk", "xn--mcrosoft-tkb.com"])
def test_others_have_to_be_proven(name: str) -> None:
    assert not SPACE.contains(name)
    assert SPACE.name_error(name) is None


@pytest.mark.parametrize(
    "name",
    [
        # the service's own hosts and their subdomains
        "id.example.com",
        "api.example.com",
        "login.example.com",
        "acme.login.example.com",
        # deeper than one label: a subdomain of another organization's domain
        "evil.acme.id.example.com",
        "www.a.id.example.com",
        # punycode of a homograph
        "xn--mcrosoft-tkb.id.example.com",
        # names that cannot be verified
        "localhost",
        "acme",
        "com",
        "127.0.0.1",
        "10.0.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f.0x1",
        "acme.example.1",
    ],
)
def test_reserved_domains_are_refused(name: str) -> None:
    assert not SPACE.contains(name)
    assert SPACE.name_error(name) is not None


def test_host_of_the_service_inside_its_name_space() -> None:
    space = DomainNamespace("example.com", frozenset({"example.com", "login.example.com"}))
    assert space.contains("acme.example.com")
    assert not space.contains("login.example.com")
    assert space.name_error("login.example.com") is not None
