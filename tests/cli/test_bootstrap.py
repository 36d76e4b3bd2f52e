import json
import stat

import pytest

INI_WORDS = ("--service-user", "deploy", "--role", "IAM_OWNER")


@pytest.mark.thorough
def test_prints_the_owner_password_once(run, tmp_path, ini):
    arguments = ("bootstrap", "-c", ini)
    first, second = (run(*arguments, f"data={tmp_path}/data") for _ in range(2))
    assert (first.status, second.status) == (0, 0)
    assert "admin@identity.localhost" in first.out
    assert "shown only now" in first.out
    assert "there already" in second.out
    assert "shown only now" not in second.out
    created, again = (json.loads(run(*arguments, f"data={tmp_path}/other", "--json").out) for _ in range(2))
    assert set(created["owner"]) == {"login_name", "password"}
    assert again == {**created, "owner": None}


def test_json_output_holds_all_credentials(on_data, tmp_path):
    key, client = tmp_path / "key.json", tmp_path / "client.json"
    ran = on_data("bootstrap", *INI_WORDS, "--key-out", key, "--client-out", client, "--json")
    created = json.loads(ran.out)
    assert created["owner"] is None
    assert created["service_user"]["user_name"] == "deploy"
    assert created["service_user"]["role"] == "IAM_OWNER"
    assert created["key_file"] == {"path": str(key), "written": True}
    assert created["client_file"] == {"path": str(client), "written": True}
    members = json.loads(key.read_text())
    assert set(members) == {"type", "keyId", "key", "userId"}
    assert members["userId"] == created["service_user"]["id"]


def test_repeated_bootstrap_changes_nothing(on_data, tmp_path):
    key = tmp_path / "key.json"
    on_data("bootstrap", *INI_WORDS, "--key-out", key)
    before = key.read_bytes()
    ran = on_data("bootstrap", *INI_WORDS, "--key-out", key)
    assert ran.status == 0
    assert "in place" in ran.out
    assert key.read_bytes() == before


def test_secret_files_are_private(on_data, tmp_path):
    key, client = tmp_path / "new" / "key.json", tmp_path / "client.json"
    on_data("bootstrap", "--service-user", "deploy", "--key-out", key, "--client-out", client)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (key, client, key.parent)] == [0o600, 0o600, 0o700]


def test_foreign_file_is_not_overwritten(on_data, tmp_path):
    key = tmp_path / "precious"
    for content in ("", "{}", "not a key file"):
        key.write_text(content)
        ran = on_data("bootstrap", "--service-user", "deploy", "--key-out", key)
        assert ran.status == 1
        assert "is no key file" in ran.err
        assert key.read_text() == content


def test_key_file_of_another_service_user_is_not_overwritten(on_data, data):
    key = data / "key.json"
    before = key.read_bytes()
    ran = on_data("bootstrap", "--service-user", "deploy", "--key-out", key)
    assert ran.status == 1
    assert "key file of another service user" in ran.err
    assert key.read_bytes() == before


def test_service_user_options_need_a_service_user(on_data):
    for option, value in {"--role": "IAM_OWNER", "--key-out": "x"}.items():
        ran = on_data("bootstrap", option, value)
        assert ran.status == 2
        assert f"{option} needs --service-user" in ran.err
