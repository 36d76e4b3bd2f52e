"""identity apply: the instance gets exactly the state in the file; applying it again changes nothing."""

import json
import re
import stat
from typing import Any

import pytest
import requests
import yaml

from identity.cli import apply
from identity.crypto.signature_keys import PublicKey
from identity.services.commands.desired_state import OrganizationSpec, ProjectGrantSpec, ProjectSpec, ServiceUserSpec
from tests.cli.conftest import INI, ROOT

EXAMPLE = ROOT / "docs" / "how-to" / "operators" / "examples" / "state.yaml"
SAME = "Everything is as described; nothing to change."


def small(**members: Any) -> dict[str, Any]:
    return {"version": 1, "organizations": [{"name": "Acme", "primary_domain": "acme.example", **members}]}


@pytest.fixture
def applied(on_data, tmp_path):
    """Applies a state, which is given as a dictionary, with further options."""

    def run(state: dict[str, Any], *arguments: object):
        path = tmp_path / "state.json"
        path.write_text(json.dumps(state))
        return on_data("apply", "-f", path, *arguments)

    return run


@pytest.fixture
def events(on_data):
    """The number of audit events."""
    return lambda: on_data("audit").out.count("\n")


class TestExample:
    @pytest.mark.thorough
    def test_example_is_applied_once(self, on_data, events, tmp_path):
        keys, secrets = tmp_path / "keys", tmp_path / "secrets.json"
        arguments = ("-f", EXAMPLE, "--keys-out", keys, "--secrets-out", secrets)
        before = events()
        plan = on_data("apply", *arguments, "--plan")
        assert plan.status == 2
        assert not keys.exists()
        assert events() == before

        first = on_data("apply", *arguments)
        assert (first.status, first.err) == (0, "")
        assert [line for line in plan.out.splitlines() if line[:1] in "+~-"] == [
            line for line in first.out.splitlines() if line[:1] in ("+", "~", "-")
        ]
        [key_file] = keys.iterdir()
        assert key_file.name == "reports@acme.example.json"
        assert set(json.loads(key_file.read_text())) == {"type", "keyId", "key", "userId"}
        stored = json.loads(secrets.read_text())
        assert {item["name"].rpartition(" / ")[2] for item in stored.values()} == {"Website", "Stock API"}
        assert all(client_id in first.out for client_id in stored)
        for path in (key_file, secrets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        output = first.out + first.err
        assert not any(item["client_secret"] in output for item in stored.values())

        after, files = events(), (key_file.read_bytes(), secrets.read_bytes())
        second = on_data("apply", *arguments)
        assert (second.status, second.out.splitlines()[0]) == (0, SAME)
        assert "last active IAM_OWNER" in on_data("apply", *arguments, "--plan", "--prune").err
        assert (key_file.read_bytes(), secrets.read_bytes()) == files
        assert events() == after

    def test_program_with_the_key_file_reads_its_organization(self, service, run, tmp_path):
        arguments = ("-c", INI, f"data={service.data}", "-f", EXAMPLE, "--keys-out", tmp_path)
        assert run("apply", *arguments).status == 0
        key_file = tmp_path / "reports@acme.example.json"
        answer = run("token", "--key-file", key_file, "--issuer", service.issuer, "--project", "service")
        headers = {"Authorization": f"Bearer {json.loads(answer.out)['access_token']}"}
        [role] = requests.get(f"{service.issuer}/management/v1/me", headers=headers, timeout=60).json()["roles"]
        assert role["roles"] == ["ORG_OWNER"]
        address = f"{service.issuer}/management/v1/organizations/{role['resource_id']}"
        organization = requests.get(address, headers=headers, timeout=60).json()
        assert (organization["name"], organization["primary_domain"]) == ("Acme", "acme.example")


class TestChanges:
    def test_changes_are_listed_and_applied(self, applied):
        project = {"name": "Shop", "roles": [{"key": "a", "display_name": "A"}]}
        assert applied(small(projects=[project])).status == 0
        project = {"name": "Shop", "check_roles": True, "roles": [{"key": "a", "display_name": "B"}]}
        ran = applied(small(registration=True, projects=[project]))
        assert "~ organization acme.example   (registration: false → true)" in ran.out
        assert "~ project acme.example / Shop   (check_roles: false → true)" in ran.out
        assert '~ project role acme.example / Shop / a   (display_name: "A" → "B")' in ran.out
        assert ran.out.splitlines()[-1] == "Done: 0 added, 3 changed, 0 removed."

    def test_omitted_members_stay_unchanged(self, applied):
        user = {"user_name": "anna", "given_name": "A", "family_name": "B", "nickname": "Annie", "active": False}
        assert "1 changed" not in applied(small(users=[user])).out
        ran = applied(small(users=[{"user_name": "Anna", "given_name": "A", "family_name": "B"}]))
        assert '~ user Anna@acme.example   (user_name: "anna" → "Anna")' in ran.out
        assert "reactivated" in applied(small(users=[{**user, "user_name": "Anna", "active": True}])).out

    def test_attributes_are_defined_and_set(self, applied):
        size = {"key": "size", "label": "Size", "type": "choice", "choices": ["S", "M"]}
        anna = {"user_name": "anna", "given_name": "A", "family_name": "B", "attributes": {"size": "S", "level": 2.5}}
        state = small(attributes=[size, {"key": "level", "label": "Level", "type": "number"}], users=[anna])
        ran = applied(state)
        assert "+ attribute acme.example / size" in ran.out
        assert applied(state).out.startswith(SAME)
        anna["attributes"] = {"size": "M", "level": 2.5}
        assert "~ user anna@acme.example   (attributes: size)" in applied(state).out
        anna["attributes"] = {"size": "L", "floor": 1}
        size["choices"] = ["S"]
        ran = applied(state)
        assert ran.status != 0
        assert "organizations[0].attributes[0].choices: 1 person has" in ran.err
        assert "organizations[0].users[0].attributes.floor: " in ran.err
        assert (
            "- attribute acme.example / level"
            in applied(small(attributes=[size | {"choices": ["M"]}]), "--prune", "--yes").out
        )

    def test_order_of_words_and_sets_is_no_change(self, applied):
        application = {"name": "W", "type": "web", "redirect_uris": ["https://a.example/"]}
        described = {**application, "response_types": ["token id_token", "code"], "access_token_lifetime": 60}
        assert applied(small(projects=[{"name": "P", "applications": [described]}])).status == 0
        assert applied(small(projects=[{"name": "P", "applications": [described]}])).out.startswith(SAME)
        described["response_types"] = ["code", "id_token token"]
        assert applied(small(projects=[{"name": "P", "applications": [described]}])).out.startswith(SAME)
        described["access_token_lifetime"] = None
        ran = applied(small(projects=[{"name": "P", "applications": [described]}]))
        assert "(access_token_lifetime: 60 → null)" in ran.out

    def test_resource_with_id_is_renamed(self, applied):
        ran = applied(small(projects=[{"name": "P", "applications": [{"name": "A", "type": "api"}]}]))
        client_id = re.search(r"[0-9a-f]{32}", ran.out)[0]
        application = {"id": client_id, "name": "B", "type": "api"}
        ran = applied(small(projects=[{"name": "P", "applications": [application]}]))
        assert '(name: "A" → "B")' in ran.out


class TestPrune:
    FULL = small(
        users=[{"user_name": "anna", "given_name": "A", "family_name": "B"}],
        projects=[{"name": "P", "roles": [{"key": "a", "display_name": "A"}]}, {"name": "Q"}],
        managers=[{"user": "anna", "roles": ["ORG_OWNER"]}],
    )

    def test_prune_removes_unlisted_resources_of_listed_kinds_only(self, applied):
        applied(self.FULL)
        state = small(projects=[{"name": "P", "roles": []}])
        plan = applied(state, "--prune", "--plan")
        assert plan.status == 2
        assert set(re.findall(r"^- (.*?)(?:   .*)?$", plan.out, re.MULTILINE)) == {
            "project role acme.example / P / a",
            "project acme.example / Q",
        }
        assert applied(state).out.startswith(SAME)
        assert applied(state, "--prune", "--yes").out.splitlines()[-1] == "Done: 0 added, 0 changed, 2 removed."
        assert applied(state, "--prune").out.startswith(SAME)

    def test_prune_asks_for_confirmation(self, applied, monkeypatch):
        applied(self.FULL)
        state = small(projects=[])
        ran = applied(state, "--prune")
        assert (ran.status, ran.err.count("Add --yes")) == (1, 1)
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", lambda question: "no")
        assert applied(state, "--prune").status == 1
        monkeypatch.setattr("builtins.input", lambda question: "yes")
        assert "2 removed" in applied(state, "--prune").out

    def test_prune_keeps_the_own_organization(self, applied):
        applied(self.FULL)
        ran = applied({"version": 1, "organizations": []}, "--prune", "--yes")
        assert re.search(r"^- organization acme.example \(Acme\)   \(users: 1, projects: 2, ", ran.out, re.MULTILINE)
        assert ran.out.splitlines()[-1] == "Done: 0 added, 0 changed, 1 removed."

    def test_last_owner_stays(self, applied):
        ran = applied({"version": 1, "instance": {"managers": []}}, "--prune", "--yes")
        assert ran.status == 1
        assert ran.err.startswith("instance.managers: This is the last active IAM_OWNER.")

    def test_new_owner_is_added_before_the_old_one_is_removed(self, applied):
        service_users = [{"user_name": "boss", "display_name": "Boss"}]
        managers = [{"user": "boss@acme.example", "roles": ["IAM_OWNER"]}]
        state = {**small(service_users=service_users), "instance": {"managers": managers}}
        admin = {"user_name": "admin", "given_name": "First", "family_name": "Owner", "active": False}
        state["organizations"].insert(0, {"name": "Identity", "users": [admin]})
        ran = applied(state, "--prune", "--yes")
        assert "~ user admin@identity.localhost   (deactivated)" in ran.out
        assert "- manager admin@identity.localhost of the instance" in ran.out


class TestSecrets:
    def test_secrets_are_added_to_the_file_and_replace_nothing(self, applied, tmp_path):
        applications = [{"name": name, "type": "api"} for name in "AB"]
        path = tmp_path / "secrets.json"
        assert applied(small(projects=[{"name": "P", "applications": applications[:1]}])).status == 0
        arguments = ("--secrets-out", path)
        assert "1 added" in applied(small(projects=[{"name": "P", "applications": applications[:1]}]), *arguments).out
        first = json.loads(path.read_text())
        assert applied(small(projects=[{"name": "P", "applications": applications}]), *arguments).status == 0
        both = json.loads(path.read_text())
        assert len(both) == 2
        assert first.items() < both.items()

        other = tmp_path / "other.json"
        other.write_text('{"precious": 1}')
        applications.append({"name": "C", "type": "api"})
        ran = applied(small(projects=[{"name": "P", "applications": applications}]), "--secrets-out", other)
        assert (ran.status, ran.err.count("holds something else")) == (1, 1)
        assert other.read_text() == '{"precious": 1}'


class TestKeys:
    USER = {"user_name": "r", "display_name": "R", "generated_key": {}}  # noqa: RUF012

    def test_generated_key_needs_a_folder_and_overwrites_nothing(self, applied, tmp_path, events):
        before = events()
        ran = applied(small(service_users=[self.USER]))
        assert (ran.status, ran.err.count("--keys-out")) == (1, 1)
        (tmp_path / "keys").mkdir()
        (tmp_path / "keys" / "r@acme.example.json").write_text("precious")
        ran = applied(small(service_users=[self.USER]), "--keys-out", tmp_path / "keys")
        assert (ran.status, ran.err.count("exists already")) == (1, 1)
        assert (tmp_path / "keys" / "r@acme.example.json").read_text() == "precious"
        assert events() == before

    def test_failed_run_leaves_no_file(self, applied, tmp_path, monkeypatch):
        def fail(*_):
            raise OSError(28, "No space left on device", "secrets.json")

        monkeypatch.setattr(apply, "_write_secrets", fail)
        assert applied(small(service_users=[self.USER]), "--keys-out", tmp_path / "keys").status == 1
        assert list((tmp_path / "keys").iterdir()) == []

    def test_public_keys_are_found_by_their_numbers(self, applied, key_pool):
        key = PublicKey(key_pool.next().public_key())
        for text in (key.to_pem(), json.dumps(key.to_jwk("x"))):
            user = {"user_name": "r", "display_name": "R", "keys": [{"public_key": text}]}
            ran = applied(small(service_users=[user]))
        assert ran.out.startswith(SAME)
        user["keys"] = [{"public_key": text, "expires_at": "2099-01-01T00:00:00Z"}]
        assert "keys[0].expires_at: Keys do not change" in applied(small(service_users=[user])).err


class TestProblems:
    def test_problems_at_all_levels_are_reported_with_choices(self, applied, events):
        """Unreadable parts of the file hide no other problem, and what refers to them is not reported as missing."""
        web = {"type": "web", "redirect_uris": ["https://a.example/cb"], "response_types": ["code"]}
        ada = {"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace"}
        state = small(
            users=[
                {"user_name": "a b", "given_name": "A", "family_name": "B"},
                ada,
                ada,
                {**ada, "user_name": "bob", "email": "nowhere", "family_name": "Babbage"},
            ],
            service_users=[
                {"user_name": "robot", "display_name": "Robot", "access_token_type": "paper"},
                {"user_name": "ada", "display_name": "Ada"},
            ],
            projects=[
                {"name": "Unread", "roles": "reader", "colour": "red"},
                {
                    "name": "P",
                    "roles": [{"key": "writer", "display_name": "W"}, {"key": "reader", "display_name": "R"}],
                    "applications": [
                        {"name": "Desk", "type": "desktop"},
                        {"name": "Web", **web, "grant_types": ["authorization_code", "passwords"]},
                        {"name": "Other", **web, "response_types": ["codes"]},
                    ],
                    "grants": [{"organization": "nowhere.example", "roles": ["reader"]}],
                    "user_grants": [
                        {"user": "bob", "roles": ["boss"]},
                        {"user": "robot", "roles": ["reader"]},
                        {"user": "eve", "roles": ["king"]},
                    ],
                    "managers": [{"user": "ada", "roles": ["ORG_OWNER"]}],
                },
            ],
            managers=[
                {"user": "a b", "roles": ["ORG_OWNER"]},
                {"user": "ada", "roles": ["ORG_BOSS"]},
                {"user": "eve", "roles": ["ORG_KING"]},
            ],
        )
        state["instance"] = {"managers": [{"user": "ada@acme.example", "roles": ["IAM_BOSS"]}]}
        state["organizations"].insert(0, {"name": "First", "primary_domain": "no domain"})
        before = events()
        for options in ((), ("--plan",), ("--prune", "--yes")):
            ran = applied(state, *options)
            messages = dict(line.partition(": ")[::2] for line in ran.err.splitlines())
            assert ran.status == 1
            assert "nothing is changed" in messages.pop("identity")
            organization, project = "organizations[1].", "organizations[1].projects[1]."
            assert set(messages) == {
                "organizations[0].primary_domain",
                f"{organization}users[0].user_name",
                f"{organization}users[2]",
                f"{organization}users[3].email",
                f"{organization}service_users[0].access_token_type",
                f"{organization}service_users[1].user_name",
                f"{organization}projects[0].roles",
                f"{organization}projects[0].colour",
                f"{project}applications[0].type",
                f"{project}applications[1].grant_types",
                f"{project}applications[2].response_types",
                f"{project}grants[0].organization",
                f"{project}user_grants[0].roles",
                f"{project}user_grants[2].user",
                f"{project}user_grants[2].roles",
                f"{project}managers[0].roles",
                f"{organization}managers[1].roles",
                f"{organization}managers[2].user",
                f"{organization}managers[2].roles",
                "instance.managers[0].roles",
            }, messages
            for path, choices in {
                f"{organization}service_users[0].access_token_type": "Choose from opaque, jwt.",
                f"{project}applications[0].type": "Choose from web, native, browser, api.",
                f"{project}applications[1].grant_types": "Choose from authorization_code, ",
                f"{project}applications[2].response_types": "Choose from code, ",
                f"{project}user_grants[0].roles": "Choose from reader, writer.",
                f"{project}user_grants[2].roles": "Choose from reader, writer.",
                f"{project}managers[0].roles": "Choose from PROJECT_OWNER, ",
                f"{organization}managers[1].roles": "Choose from ORG_",
                "instance.managers[0].roles": "Choose from IAM_",
            }.items():
                assert choices in messages[path], messages[path]
        assert events() == before

    def test_duplicate_names_need_an_id(self, applied):
        organization = {"name": "Twin"}
        both = [{**organization, "primary_domain": f"{item}.example"} for item in "ab"]
        assert applied({"version": 1, "organizations": both}).status == 0
        ran = applied({"version": 1, "organizations": [organization]})
        assert "organizations[0].name: Several entries are named Twin." in ran.err

    def test_duplicate_descriptions_are_refused(self, applied):
        user = {"user_name": "r", "display_name": "R"}
        managers = [{"user": "r", "roles": ["ORG_OWNER"]}, {"user": "r@acme.example", "roles": ["ORG_OWNER_VIEWER"]}]
        ran = applied(small(service_users=[user, user], managers=managers))
        assert [line.partition(": ")[0] for line in ran.err.splitlines()] == [
            "organizations[0].service_users[1]",
            "organizations[0].managers[1]",
            "identity",
        ]

    def test_user_of_another_kind(self, applied):
        applied(small(service_users=[{"user_name": "r", "display_name": "R"}]))
        ran = applied(small(users=[{"user_name": "r", "given_name": "A", "family_name": "B"}]))
        assert ran.err.startswith("organizations[0].users[0].user_name: ")


def test_page_names_every_member_of_lists():
    page = (ROOT / "docs" / "how-to" / "operators" / "apply.rst").read_text()
    example = yaml.safe_load(EXAMPLE.read_text())
    assert set(example) == {"version", "organizations", "instance"}
    described = (OrganizationSpec, ServiceUserSpec, ProjectSpec, ProjectGrantSpec)
    lists = {
        name for kind in described for name, field in kind.model_fields.items() if "tuple" in str(field.annotation)
    }
    assert {name for name in lists if f"``{name}``" not in page} == set()
