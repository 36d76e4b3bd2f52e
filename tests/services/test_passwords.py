"""Passwords: attempts are counted before they are verified, and new passwords must be strong."""

import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.application import IdentityApplication
from identity.application_factory import _read_password_blocklist
from identity.domain.audit import AuditFilter
from identity.domain.errors import Invalid, NotFound
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.attempts import TooManyAttempts
from identity.services.commands.policies import ChangePolicy
from identity.services.container import Services
from identity.services.one_time_links import InvalidOneTimeLink
from identity.services.passwords import PasswordAttempt, estimate_strength
from identity.settings_parser import InvalidSetting
from identity.storage.paging import FIRST_PAGE
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, subject_of

_SINCE = datetime(2030, 1, 1, tzinfo=UTC)
OTHER_ORGANIZATION = Organization(
    id="elsewhere", name="Elsewhere", primary_domain="elsewhere.example", created_at=_SINCE, changed_at=_SINCE
)
GOOD = "correct horse battery staple"


@pytest.fixture
def anna(identity: IdentityApplication) -> Subject:
    with identity.transaction() as services:
        organization = make_organization(services, domain="acme.example")
        subject = subject_of(services, make_human_user(services, organization, email="a@b.example"))
        services.passwords.change(subject, services.passwords.hash(GOOD))
        return subject


def attempt(services: Services, login_name: str) -> PasswordAttempt:
    """One attempt in an unknown browser."""
    return services.passwords.begin_attempt(LoginName.parse(login_name), {})


def tried(identity: IdentityApplication, login_name: str) -> int | None:
    """The seconds to wait; None if the attempt was allowed."""
    try:
        with identity.transaction() as services:
            attempt(services, login_name)
    except TooManyAttempts as refusal:
        return refusal.seconds
    return None


def test_delay_doubles_after_five_failures(identity: IdentityApplication, anna: Subject, clock: FakeClock) -> None:
    assert [tried(identity, "anna") for _ in range(5)] == [None] * 5
    waits = []
    for _ in range(12):
        wait = tried(identity, "anna")
        assert wait is not None
        waits.append(wait)
        clock.advance(seconds=wait)
        assert tried(identity, "anna") is None
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_account_locks_after_hundred_failures(identity: IdentityApplication, anna: Subject, clock: FakeClock) -> None:
    granted = 0
    for _ in range(110):
        granted += tried(identity, "anna") is None
        clock.advance(seconds=900)
    assert granted == 100
    with identity.transaction() as services:
        assert services.users.count_failed_attempts(anna.user.id) == 100
        code = services.passwords.issue_reset_link(anna.user.id).rpartition("/")[2]
        services.passwords.reset(code, services.passwords.hash(GOOD))
        assert services.users.count_failed_attempts(anna.user.id) == 0
    assert tried(identity, "anna") is None


def test_unlock_is_recorded_once_after_failures(identity: IdentityApplication, anna: Subject) -> None:
    tried(identity, "anna")
    for _ in range(2):
        with identity.transaction() as services:
            services.users.unlock(anna.user.id, principal=Principal.OPERATOR)
    with identity.read_session() as services:
        events = services.storage.audit.page(FIRST_PAGE, AuditFilter(event="user.unlocked")).items
        assert [event.object_id for event in events] == [anna.user.id]
        assert services.users.count_failed_attempts(anna.user.id) == 0


def test_deactivated_user_is_refused_with_right_password(identity: IdentityApplication, anna: Subject) -> None:
    with identity.transaction() as services:
        services.organizations.deactivate(anna.organization.id, principal=Principal.OPERATOR)
    with identity.transaction() as services:
        assert services.passwords.complete_attempt(attempt(services, "anna")) is None


def test_outdated_hash_is_replaced(identity: IdentityApplication, anna: Subject) -> None:
    with identity.transaction() as services:
        before = services.storage.users.find_password(anna.user.id)
        services.passwords.complete_attempt(attempt(services, "anna"), outdated_hash="$new$")
        after = services.storage.users.find_password(anna.user.id)
    assert before is not None
    assert after is not None
    assert (after.hash, after.must_change, after.changed_at) == ("$new$", False, before.changed_at)


def test_weak_passwords_are_refused(services: Services) -> None:
    name, known = "Do not use your user name.", "This password is too well known. Choose another."
    for password, sentence in (
        ("", "Enter a password."),
        ("fourteen chars", "Use at least 15 characters; several words work well."),
        (unicodedata.normalize("NFD", "ü" * 14), "Use at least 15 characters; several words work well."),
        ("x" * 257, "Use at most 256 characters."),
        *((item, name) for item in ("anna@acme.example", "ＡＮＮＡ@acme.example")),
        *((item, known) for item in ("1qaz2wsx3edc4rfv", "1QAZ2WSX3EDC4RFV")),
    ):
        with pytest.raises(Invalid) as refusal:
            services.passwords.require_acceptable(
                password, None, owner=OTHER_ORGANIZATION, names=("anna", "anna@acme.example")
            )
        assert refusal.value.fields == {"new_password": sentence}
    with pytest.raises(Invalid) as refusal:
        services.passwords.require_acceptable(GOOD, GOOD[:-1], owner=OTHER_ORGANIZATION, names=())
    assert refusal.value.fields == {"new_password_again": "Type the same password twice."}
    for good in (GOOD, "ü" * 15, "密码密码密码密码密码密码密码密", "               x", "x" * 256):
        services.passwords.require_acceptable(good, good, owner=OTHER_ORGANIZATION, names=("anna",))


@pytest.mark.parametrize(
    ("rules", "refused", "accepted"),
    [
        ({"password_min_length": 20}, "nineteen character", "twenty characters at"),
        ({"password_strength": 3}, "qwertyuiopasdfgh", "wie der Wind im Walde"),
        ({"password_strength": 3}, "anna.anna.anna.anna", "correct horse battery staple"),
        ({"password_strength": 4}, "p@ssw0rd p@ssw0rd p@ssw0rd", "correct horse battery staple"),
    ],
)
def test_organization_policy_tightens_password_rules(
    identity: IdentityApplication, anna: Subject, rules: dict[str, int], refused: str, accepted: str
) -> None:
    def checked(password: str, owner: Subject | Organization) -> None:
        with identity.read_session() as services:
            services.passwords.require_acceptable(password, password, owner=owner, names=("anna",))

    checked(refused, anna)
    with identity.transaction() as services:
        services.policies.change(anna.organization.id, ChangePolicy.build(**rules))
    with pytest.raises(Invalid):
        checked(refused, anna)
    checked(accepted, anna.organization)
    checked(refused, OTHER_ORGANIZATION)


class TestAFileOfTheOperator:
    @pytest.fixture
    def further(self, tmp_path: Path) -> dict[str, str]:
        file = tmp_path / "bad.txt"
        file.write_text("Acme Acme Acme Acme\n\nzzz\n")
        return {"identity.password_blocklist": str(file)}

    def test_names_passwords_that_are_refused(self, services: Services) -> None:
        with pytest.raises(Invalid) as refusal:
            services.passwords.require_acceptable("acme acme ACME acme", None, owner=OTHER_ORGANIZATION, names=())
        assert refusal.value.fields == {"new_password": "This password is too well known. Choose another."}
        services.passwords.require_acceptable("acme acme acme acme acme", None, owner=OTHER_ORGANIZATION, names=())

    def test_missing_file_stops_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidSetting, match="password_blocklist"):
            _read_password_blocklist(tmp_path / "none.txt")


def test_password_strength_estimate_is_bounded() -> None:
    """Substitutions once multiplied the work: this password took seconds. The test counts instead of measuring time."""
    from zxcvbn import matching

    call_count = 0
    look = matching.dictionary_match

    def counting(*arguments: object, **more: object) -> object:
        nonlocal call_count
        call_count += 1
        return look(*arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "dictionary_match", counting)
        assert estimate_strength("4@8({[<369&#!1/|0$5+7%2/" * 10, ()) == 4
    assert call_count < 100


def test_unicode_normal_forms_are_one_password(identity: IdentityApplication) -> None:
    hasher = identity.process_state.hasher
    stored = hasher.hash(unicodedata.normalize("NFD", "Füße über Bäume, fünf"))
    assert hasher.verify(stored, unicodedata.normalize("NFC", "Füße über Bäume, fünf")).is_match


# --- links ------------------------------------------------------------------------------------------------------------


def test_link_works_once(identity: IdentityApplication, anna: Subject) -> None:
    with identity.transaction() as services:
        link = services.passwords.issue_reset_link(anna.user.id)
    assert link.startswith("https://id.example.com/password/reset/")
    code = link.rpartition("/")[2]
    for _ in range(3):
        with identity.read_session() as services:
            assert services.passwords.find_by_reset_link(code).user.id == anna.user.id
    with identity.transaction() as services:
        services.passwords.reset(code, "$hash$")
    with pytest.raises(InvalidOneTimeLink), identity.transaction() as services:
        services.passwords.reset(code, "$other$")
    with pytest.raises(InvalidOneTimeLink), identity.read_session() as services:
        services.passwords.find_by_reset_link(code)


def test_link_expires(identity: IdentityApplication, anna: Subject, clock: FakeClock) -> None:
    with identity.transaction() as services:
        code = services.passwords.issue_reset_link(anna.user.id).rpartition("/")[2]
    clock.advance(hours=1)
    with pytest.raises(InvalidOneTimeLink), identity.read_session() as services:
        services.passwords.find_by_reset_link(code)
    with pytest.raises(InvalidOneTimeLink), identity.transaction() as services:
        services.passwords.reset(code, "$hash$")


def test_new_link_replaces_previous_link(identity: IdentityApplication, anna: Subject) -> None:
    with identity.transaction() as services:
        old = services.passwords.issue_reset_link(anna.user.id).rpartition("/")[2]
        services.passwords.issue_reset_link(anna.user.id)
    with pytest.raises(InvalidOneTimeLink), identity.read_session() as services:
        services.passwords.find_by_reset_link(old)


def test_new_password_ends_links_sessions_and_tokens(identity: IdentityApplication, anna: Subject) -> None:
    with identity.transaction() as services:
        code = services.passwords.issue_reset_link(anna.user.id).rpartition("/")[2]
        _, current = services.sessions.start(anna, (), proofs=(), user_agent="")
        _, secret = services.sessions.start(anna, (), proofs=(), user_agent="")
        services.passwords.change(
            anna, "$hash$", except_session=services.sessions.list_by_secrets([current])[0].session.id
        )
    with identity.read_session() as services:
        assert services.sessions.list_by_secrets([secret]) == ()
        assert services.sessions.list_by_secrets([current])
        with pytest.raises(InvalidOneTimeLink):
            services.passwords.find_by_reset_link(code)


def test_unknown_user_gets_no_link(identity: IdentityApplication) -> None:
    with pytest.raises(NotFound), identity.transaction() as services:
        services.passwords.issue_reset_link("nobody")
