"""Passwords: attempts are counted before they are judged, and a password has to be good enough."""

import unicodedata
from pathlib import Path

import pytest

from identity.app import _known_bad
from identity.domain.audit import AuditFilter
from identity.domain.errors import Invalid, NotFound
from identity.domain.login_names import LoginName
from identity.domain.users import Subject
from identity.ini_values import BadSetting
from identity.process import Identity
from identity.services.access import THE_OPERATOR
from identity.services.attempts import TooManyAttempts
from identity.services.bundle import Services
from identity.services.commands.policies import ChangePolicy
from identity.services.links import LinkUsed
from identity.services.passwords import Trial, strength_of
from identity.storage.paging import FIRST_PAGE
from identity.testing.clock import MovableClock
from tests.services.people import a_person, an_organization, subject_of

GOOD = "correct horse battery staple"


@pytest.fixture
def anna(identity: Identity) -> Subject:
    with identity.transaction() as services:
        organization = an_organization(services, domain="acme.example")
        subject = subject_of(services, a_person(services, organization, email="a@b.example"))
        services.passwords.change(subject, services.passwords.hash(GOOD))
        return subject


def attempt(services: Services, login_name: str) -> Trial:
    """One attempt at a browser that nobody knows."""
    return services.passwords.reserve(LoginName.of(login_name), {})


def tried(identity: Identity, login_name: str) -> int | None:
    """Seconds to wait, None if an attempt was granted."""
    try:
        with identity.transaction() as services:
            attempt(services, login_name)
    except TooManyAttempts as refusal:
        return refusal.seconds
    return None


def test_after_five_failures_delays_double(identity: Identity, anna: Subject, clock: MovableClock) -> None:
    assert [tried(identity, "anna") for _ in range(5)] == [None] * 5
    waits = []
    for _ in range(12):
        wait = tried(identity, "anna")
        assert wait is not None
        waits.append(wait)
        clock.advance(seconds=wait)
        assert tried(identity, "anna") is None
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_a_hundred_failures_need_a_reset(identity: Identity, anna: Subject, clock: MovableClock) -> None:
    granted = 0
    for _ in range(110):
        granted += tried(identity, "anna") is None
        clock.advance(seconds=900)
    assert granted == 100
    with identity.transaction() as services:
        assert services.users.failures(anna.user.id) == 100
        code = services.passwords.issue_link(anna.user.id).rpartition("/")[2]
        services.passwords.reset(code, services.passwords.hash(GOOD))
        assert services.users.failures(anna.user.id) == 0
    assert tried(identity, "anna") is None


def test_an_unlock_is_told_once_and_only_if_there_was_something(identity: Identity, anna: Subject) -> None:
    tried(identity, "anna")
    for _ in range(2):
        with identity.transaction() as services:
            services.users.unlock(anna.user.id, by=THE_OPERATOR)
    with identity.reading() as services:
        events = services.storage.audit.page(FIRST_PAGE, AuditFilter(event="user.unlocked")).items
        assert [event.object_id for event in events] == [anna.user.id]
        assert services.users.failures(anna.user.id) == 0


def test_a_deactivated_person_is_refused_with_the_right_password(identity: Identity, anna: Subject) -> None:
    with identity.transaction() as services:
        services.organizations.deactivate(anna.organization.id, by=THE_OPERATOR)
    with identity.transaction() as services:
        assert services.passwords.succeeded(attempt(services, "anna")) is None


def test_an_outdated_hash_is_replaced_and_nothing_else(identity: Identity, anna: Subject) -> None:
    with identity.transaction() as services:
        before = services.storage.users.find_password(anna.user.id)
        services.passwords.succeeded(attempt(services, "anna"), outdated_hash="$new$")
        after = services.storage.users.find_password(anna.user.id)
    assert before is not None
    assert after is not None
    assert (after.hash, after.must_change, after.changed_at) == ("$new$", False, before.changed_at)


def test_what_is_wrong_with_a_password(services: Services) -> None:
    name, known = "Do not use your user name.", "This password is too well known. Choose another."
    for password, sentence in (
        ("", "Enter a password."),
        ("fourteen chars", "Use at least 15 characters; several words work well."),
        (unicodedata.normalize("NFD", "ü" * 14), "Use at least 15 characters; several words work well."),
        ("x" * 257, "Use at most 256 characters."),
        *((one, name) for one in ("anna@acme.example", "ＡＮＮＡ@acme.example")),
        *((one, known) for one in ("1qaz2wsx3edc4rfv", "1QAZ2WSX3EDC4RFV")),
    ):
        with pytest.raises(Invalid) as refusal:
            services.passwords.check(password, None, organization_id="", names=("anna", "anna@acme.example"))
        assert refusal.value.fields == {"new_password": sentence}
    with pytest.raises(Invalid) as refusal:
        services.passwords.check(GOOD, GOOD[:-1], organization_id="", names=())
    assert refusal.value.fields == {"new_password_again": "Type the same password twice."}
    for good in (GOOD, "ü" * 15, "密码密码密码密码密码密码密码密", "               x", "x" * 256):
        services.passwords.check(good, good, organization_id="", names=("anna",))


@pytest.mark.parametrize(
    ("rules", "refused", "taken"),
    [
        ({"password_min_length": 20}, "nineteen character", "twenty characters at"),
        ({"password_strength": 3}, "qwertyuiopasdfgh", "wie der Wind im Walde"),
        ({"password_strength": 3}, "anna.anna.anna.anna", "correct horse battery staple"),
        ({"password_strength": 4}, "p@ssw0rd p@ssw0rd p@ssw0rd", "correct horse battery staple"),
    ],
)
def test_the_policy_of_an_organization_asks_more_of_passwords(
    identity: Identity, anna: Subject, rules: dict[str, int], refused: str, taken: str
) -> None:
    def checked(password: str, organization_id: str) -> None:
        with identity.reading() as services:
            services.passwords.check(password, password, organization_id=organization_id, names=("anna",))

    checked(refused, anna.organization.id)
    with identity.transaction() as services:
        services.policies.change(anna.organization.id, ChangePolicy.of(**rules))
    with pytest.raises(Invalid):
        checked(refused, anna.organization.id)
    checked(taken, anna.organization.id)
    checked(refused, "another organization")


class TestAFileOfTheOperator:
    @pytest.fixture
    def further(self, tmp_path: Path) -> dict[str, str]:
        file = tmp_path / "bad.txt"
        file.write_text("Acme Acme Acme Acme\n\nzzz\n")
        return {"identity.password_known_bad": str(file)}

    def test_names_passwords_that_are_refused(self, services: Services) -> None:
        with pytest.raises(Invalid) as refusal:
            services.passwords.check("acme acme ACME acme", None, organization_id="", names=())
        assert refusal.value.fields == {"new_password": "This password is too well known. Choose another."}
        services.passwords.check("acme acme acme acme acme", None, organization_id="", names=())

    def test_that_is_not_there_stops_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(BadSetting, match="password_known_bad"):
            _known_bad(tmp_path / "none.txt")


def test_what_makes_a_password_costly_to_judge_is_bounded() -> None:
    """Each way to write a letter multiplied the work: this one took seconds. Counted, not timed."""
    from zxcvbn import matching

    asked = 0
    look = matching.dictionary_match

    def counting(*given: object, **more: object) -> object:
        nonlocal asked
        asked += 1
        return look(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "dictionary_match", counting)
        assert strength_of("4@8({[<369&#!1/|0$5+7%2/" * 10, ()) == 4
    assert asked < 100


def test_composed_and_decomposed_letters_are_one_password(identity: Identity) -> None:
    hasher = identity.process.hasher
    stored = hasher.hash(unicodedata.normalize("NFD", "Füße über Bäume, fünf"))
    assert hasher.verify(stored, unicodedata.normalize("NFC", "Füße über Bäume, fünf")).matches


# --- links ------------------------------------------------------------------------------------------------------------


def test_a_link_works_once(identity: Identity, anna: Subject) -> None:
    with identity.transaction() as services:
        link = services.passwords.issue_link(anna.user.id)
    assert link.startswith("https://id.example.com/password/reset/")
    code = link.rpartition("/")[2]
    for _ in range(3):
        with identity.reading() as services:
            assert services.passwords.find_by_link(code).user.id == anna.user.id
    with identity.transaction() as services:
        services.passwords.reset(code, "$hash$")
    with pytest.raises(LinkUsed), identity.transaction() as services:
        services.passwords.reset(code, "$other$")
    with pytest.raises(LinkUsed), identity.reading() as services:
        services.passwords.find_by_link(code)


def test_a_link_expires(identity: Identity, anna: Subject, clock: MovableClock) -> None:
    with identity.transaction() as services:
        code = services.passwords.issue_link(anna.user.id).rpartition("/")[2]
    clock.advance(hours=1)
    with pytest.raises(LinkUsed), identity.reading() as services:
        services.passwords.find_by_link(code)
    with pytest.raises(LinkUsed), identity.transaction() as services:
        services.passwords.reset(code, "$hash$")


def test_a_newer_link_ends_the_older(identity: Identity, anna: Subject) -> None:
    with identity.transaction() as services:
        old = services.passwords.issue_link(anna.user.id).rpartition("/")[2]
        services.passwords.issue_link(anna.user.id)
    with pytest.raises(LinkUsed), identity.reading() as services:
        services.passwords.find_by_link(old)


def test_a_new_password_ends_links_sessions_and_tokens(identity: Identity, anna: Subject) -> None:
    with identity.transaction() as services:
        code = services.passwords.issue_link(anna.user.id).rpartition("/")[2]
        _, kept = services.sessions.sign_in(anna, (), proofs=(), user_agent="")
        _, secret = services.sessions.sign_in(anna, (), proofs=(), user_agent="")
        services.passwords.change(anna, "$hash$", keep=services.sessions.of_browser([kept])[0].session.id)
    with identity.reading() as services:
        assert services.sessions.of_browser([secret]) == ()
        assert services.sessions.of_browser([kept])
        with pytest.raises(LinkUsed):
            services.passwords.find_by_link(code)


def test_links_are_for_people(identity: Identity) -> None:
    with pytest.raises(NotFound), identity.transaction() as services:
        services.passwords.issue_link("nobody")
