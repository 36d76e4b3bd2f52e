"""identity password-link."""

import re

import pytest

from identity.crypto.passwords import verify_password


def test_prints_a_link_on_the_login_host(on_data, stored):
    ran = on_data("password-link", "--user", "admin@identity.localhost")
    assert ran.status == 0
    [link] = re.findall(r"http://localhost:8080/password/reset/([A-Za-z0-9]{43})", ran.out)
    assert re.search(r"^until +\d{4}-\d\d-\d\d \d\d:\d\d UTC$", ran.out, re.MULTILINE)
    assert "password.link_issued" in {one.event for one in stored.audit.page().items}
    assert link not in str(stored.audit.page().items)


def test_the_password_stays_until_the_link_is_used(on_data, data, stored):
    shown = on_data("recover-admin", "--user", "admin").out
    password = next(line.split()[1] for line in shown.splitlines() if line.startswith("password"))
    assert on_data("password-link", "--user", "admin").status == 0
    user = stored.users.find_by_login_name("admin@identity.localhost").user
    assert verify_password(stored.users.find_password(user.id).hash, password)


@pytest.mark.parametrize(
    ("user", "sentence"), [("example", "is a service user. Name a person."), ("nobody", "There is no user nobody.")]
)
def test_says_who_gets_none(on_data, user, sentence):
    ran = on_data("password-link", "--user", user)
    assert ran.status == 1
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
