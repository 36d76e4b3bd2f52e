"""identity add-manager and recover-admin."""

import pytest

from identity.crypto.passwords import verify_password
from identity.domain.audit import ActorKind
from identity.domain.users import HumanUser


class TestAddManager:
    def test_at_an_organization_named_by_its_domain(self, on_data):
        words = ("add-manager", "--user", "example", "--organization", "identity.localhost")
        first = on_data(*words, "--role", "ORG_OWNER")
        assert first.status == 0
        assert "example@identity.localhost" in first.out
        again = on_data(*words, "--role", "ORG_USER_MANAGER", "--role", "ORG_SETTINGS_MANAGER")
        assert "holds ORG_OWNER, ORG_SETTINGS_MANAGER, ORG_USER_MANAGER at the organization" in again.out

    def test_at_an_organization_or_project_named_by_its_id(self, on_data, stored):
        instance = stored.organizations.find_instance()
        user = stored.users.find_by_login_name("example@identity.localhost").user
        words = ("add-manager", "--user", user.id)
        assert on_data(*words, "--role", "ORG_OWNER", "--organization", instance.organization_id).status == 0
        assert on_data(*words, "--role", "PROJECT_OWNER", "--project", instance.project_id).status == 0

    def test_at_the_instance_when_nothing_else_is_named(self, on_data):
        assert (
            "holds IAM_OWNER at the instance" in on_data("add-manager", "--user", "example", "--role", "IAM_OWNER").out
        )

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--user", "nobody", "--role", "IAM_OWNER"], "There is no user nobody."),
            (["--user", "example", "--role", "KING"], "There is no role KING."),
            (["--user", "example", "--role", "ORG_OWNER"], "ORG_OWNER is held at an organization: add --organization"),
            (["--user", "example", "--role", "PROJECT_OWNER"], "PROJECT_OWNER is held at a project: add --project"),
            (["--user", "example", "--role", "IAM_OWNER", "--project", "x"], "There is no project x."),
            (["--user", "example", "--role", "ORG_OWNER", "--organization", "x"], "There is no organization x."),
            (["--user", "example", "--role", "ORG_OWNER", "--project-grant", "x"], "There is no project_grant x."),
            (
                ["--user", "example", "--role", "IAM_OWNER", "--organization", "identity.localhost"],
                "IAM_OWNER is held at the instance",
            ),
        ],
    )
    def test_says_what_is_wrong(self, on_data, words, sentence):
        ran = on_data("add-manager", *words)
        assert ran.status == 1
        assert ran.err.replace("project grant x", "project_grant x").startswith(f"identity: {sentence}")
        assert ran.err.count("\n") == 1

    def test_is_audited_as_done_by_the_operator(self, on_data, stored):
        on_data("add-manager", "--user", "example", "--role", "IAM_OWNER")
        event = next(one for one in stored.audit.page().items if one.event == "manager.added" and one.detail)
        assert event.actor.kind is ActorKind.OPERATOR


class TestRecoverAdmin:
    def test_gives_a_new_one_time_password(self, on_data, stored):
        ran = on_data("recover-admin", "--user", "admin@identity.localhost")
        assert ran.status == 0
        password = next(line.split()[1] for line in ran.out.splitlines() if line.startswith("password"))
        subject = stored.users.find_by_login_name("admin@identity.localhost")
        assert isinstance(subject.user, HumanUser)
        kept = stored.users.find_password(subject.user.id)
        assert kept.must_change
        assert verify_password(kept.hash, password)

    def test_is_audited(self, on_data, stored):
        on_data("recover-admin", "--user", "admin")
        events = {one.event for one in stored.audit.page().items}
        assert {"user.recovered", "password.set"} <= events

    @pytest.mark.parametrize(
        ("user", "sentence"), [("example", "is a service user. Name a person."), ("nobody", "There is no user nobody.")]
    )
    def test_says_who_cannot_be_recovered(self, on_data, user, sentence):
        ran = on_data("recover-admin", "--user", user)
        assert ran.status == 1
        assert sentence in ran.err
