"""identity service-user-secret."""

import re

import pytest

from identity.domain.audit import ActorKind

SECRET = re.compile(r"^secret +([A-Za-z0-9]{43})   \(shown only now\)$", re.MULTILINE)


def test_prints_a_secret_and_the_client_id_that_goes_with_it(on_data, stored):
    ran = on_data("service-user-secret", "--user", "example@identity.localhost")
    assert ran.status == 0
    user = stored.users.find_by_login_name("example@identity.localhost").user
    [secret] = stored.credentials.secrets(user.id)
    [text] = SECRET.findall(ran.out)
    assert re.search(rf"^client id +{user.id}$", ran.out, re.MULTILINE)
    assert re.search(rf"^live secrets +{secret.id} \(\d{{4}}-\d\d-\d\d \d\d:\d\d UTC\)$", ran.out, re.MULTILINE)
    event = next(one for one in stored.audit.page().items if one.event == "service_user_secret.added")
    assert event.actor.kind is ActorKind.OPERATOR
    assert text not in str(stored.audit.page().items)


def test_replaces_a_secret_in_three_steps(on_data, stored):
    command = ("service-user-secret", "--user", "example")
    first, second = (SECRET.findall(on_data(*command).out) for _ in range(2))
    assert first != second
    user = stored.users.find_by_login_name("example@identity.localhost").user
    older, newer = stored.credentials.secrets(user.id)
    third = on_data(*command)
    assert third.status == 1
    assert re.match(rf"identity: Two secrets are live: {older.id} \(.+\), {newer.id} \(.+\)\. End one", third.err)
    assert third.err.count("\n") == 1
    ended = on_data(*command, "--remove", older.id)
    assert ended.status == 0
    assert not SECRET.search(ended.out)
    assert older.id not in ended.out
    assert newer.id in ended.out
    assert "none" in on_data(*command, "--remove", newer.id).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--user", "nobody"], "There is no user nobody."),
        (["--user", "admin"], "is a person. Name a service user."),
        (["--user", "example", "--remove", "x"], "There is no secret x."),
    ],
)
def test_says_what_is_wrong(on_data, words, sentence):
    ran = on_data("service-user-secret", *words)
    assert ran.status == 1
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
