import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from identity import bootstrap
from identity.application import IdentityApplication
from identity.crypto.argon2id import verify_password
from identity.domain.errors import Invalid
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.users import EmailVerifier
from identity.services import instance_bootstrap
from identity.services.access_control import Principal
from identity.testing.clock import FakeClock


def test_second_bootstrap_changes_nothing(identity: IdentityApplication, tmp_path: Path) -> None:
    key_file, client_file = tmp_path / "key.json", tmp_path / "client.json"
    first = bootstrap.run_bootstrap(identity, user_name="robot", key_out=key_file, client_out=client_file)
    texts = key_file.read_text(), client_file.read_text()
    second = bootstrap.run_bootstrap(identity, user_name="robot", key_out=key_file, client_out=client_file)
    assert (key_file.read_text(), client_file.read_text()) == texts
    assert second.owner is None
    assert (second.organization_id, second.project_id) == (first.organization_id, first.project_id)
    with identity.read_session() as services:
        assert len(services.storage.signing_keys.list_all()) == 1
        assert len(services.storage.organizations.page()) == 1


def test_owner_is_iam_owner_and_must_change_password(identity: IdentityApplication) -> None:
    owner = bootstrap.run_bootstrap(identity, owner_email="owner@acme.example").owner
    assert owner is not None
    assert (owner.user.profile.email, owner.user.email_verified_by) == ("owner@acme.example", EmailVerifier.OPERATOR)
    assert owner.password not in repr(owner)
    with identity.read_session() as services:
        stored = services.storage.users.find_password(owner.user.id)
        assert stored is not None
        assert stored.must_change
        assert verify_password(stored.hash, owner.password).is_match
        (manager,) = services.storage.managers.list_for_user(owner.user.id)
        assert manager.roles == {"IAM_OWNER"}


def test_secret_files_are_private(identity: IdentityApplication, tmp_path: Path) -> None:
    files = tmp_path / "deep" / "key.json", tmp_path / "deep" / "client.json"
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=files[0], client_out=files[1])
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["client.json", "key.json"]


def test_lost_key_file_is_replaced_and_the_old_key_kept(identity: IdentityApplication, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=file)
    old = KeyFile.from_json(file.read_text())
    file.unlink()
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=file)
    new = KeyFile.from_json(file.read_text())
    assert new.user_id == old.user_id
    assert new.key_id != old.key_id
    with identity.read_session() as services:
        assert len(services.storage.credentials.page(ServiceUserKey, new.user_id)) == 2


def test_removed_key_is_replaced(identity: IdentityApplication, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=file)
    old = KeyFile.from_json(file.read_text())
    with identity.transaction() as services:
        services.service_users.remove_key(old.user_id, old.key_id, principal=Principal.OPERATOR)
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=file)
    assert KeyFile.from_json(file.read_text()).key_id != old.key_id


def test_foreign_file_is_not_overwritten(identity: IdentityApplication, tmp_path: Path) -> None:
    file = tmp_path / "precious.txt"
    file.write_text("precious")
    for arguments in ({"user_name": "robot", "key_out": file}, {"client_out": file}):
        with pytest.raises(Invalid, match="move it away"):
            bootstrap.run_bootstrap(identity, **arguments)
    assert file.read_text() == "precious"


def test_unwritable_file_changes_nothing(identity: IdentityApplication, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    first_key = tmp_path / "key.json"
    with pytest.raises(Invalid, match="cannot be written"):
        bootstrap.run_bootstrap(identity, user_name="robot", key_out=first_key, client_out=blocked / "client.json")
    assert not first_key.exists()
    with identity.read_session() as services:
        assert services.storage.organizations.find_instance() is None


def test_role_is_assigned_once_and_added_to_existing_roles(identity: IdentityApplication) -> None:
    bootstrap.run_bootstrap(identity, user_name="robot", role="ORG_OWNER")
    bootstrap.run_bootstrap(identity, user_name="robot", role="ORG_OWNER")
    bootstrap.run_bootstrap(identity, user_name="robot", role="ORG_USER_MANAGER")
    bootstrap.run_bootstrap(identity, user_name="robot", role="IAM_OWNER")
    with identity.read_session() as services:
        instance = services.storage.organizations.find_instance()
        assert instance is not None
        user = services.storage.users.find_by_name(instance.organization_id, "robot")
        assert user is not None
        roles = {manager.resource.level: manager.roles for manager in services.storage.managers.list_for_user(user.id)}
    assert roles == {"organization": {"ORG_OWNER", "ORG_USER_MANAGER"}, "instance": {"IAM_OWNER"}}


@pytest.mark.parametrize(("role", "problem"), [("NO_ROLE", "There is no role"), ("PROJECT_OWNER", "held at a project")])
def test_unassignable_role_stops_bootstrap(identity: IdentityApplication, role: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        bootstrap.run_bootstrap(identity, user_name="robot", role=role)
    with identity.read_session() as services:
        assert services.storage.organizations.find_instance() is None


def test_human_user_is_not_used_as_service_user(identity: IdentityApplication) -> None:
    bootstrap.run_bootstrap(identity)
    with pytest.raises(Invalid, match="a person"):
        bootstrap.run_bootstrap(identity, user_name=instance_bootstrap.OWNER_USER_NAME)


def test_lost_client_secret_is_replaced_within_the_limit(identity: IdentityApplication, tmp_path: Path) -> None:
    file = tmp_path / "client.json"
    results = []
    for _ in range(4):
        bootstrap.run_bootstrap(identity, client_out=file)
        results.append(json.loads(file.read_text()))
        file.unlink()
    assert len({item["client_id"] for item in results}) == 1
    with identity.read_session() as services:
        accepted = [services.applications.authenticate(item["client_id"], item["client_secret"]) for item in results]
    assert [client is not None for client in accepted] == [False, False, True, True]


def test_key_gets_the_longest_allowed_lifetime(identity: IdentityApplication, tmp_path: Path, clock: FakeClock) -> None:
    object.__setattr__(identity.settings, "service_user_key_max_age", timedelta(days=90))
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=tmp_path / "key.json")
    file = KeyFile.from_json((tmp_path / "key.json").read_text())
    with identity.read_session() as services:
        key = services.storage.credentials.find(ServiceUserKey, file.key_id, file.user_id)
    assert key is not None
    assert key.expires_at == clock() + timedelta(days=90)
    clock.advance(days=90)
    bootstrap.run_bootstrap(identity, user_name="robot", key_out=tmp_path / "key.json")
    assert KeyFile.from_json((tmp_path / "key.json").read_text()).key_id != file.key_id, "the expired key is replaced"
