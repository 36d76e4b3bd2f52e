"""Maintenance commands: identity check, migrate, purge, plugins, rotate-keys and master-key."""

import re
import stat
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from identity.cli.command_context import open_application
from identity.crypto.sealing import read_master_keys
from identity.services.commands.users import CreateHumanUser
from identity.storage.contract import factories as make
from tests.cli.conftest import INI

MOMENT = re.compile(r"signs from (\S+ \S+) UTC")


class TestCheck:
    def test_names_every_check(self, on_data):
        ran = on_data("check")
        assert (ran.status, ran.err) == (0, "")
        assert "ok      storage" in ran.out
        assert "ok      signing key" in ran.out

    def test_failure_names_the_remedy(self, run, ini, tmp_path):
        assert run("migrate", "-c", ini, f"data={tmp_path}").status == 0
        ran = run("check", "-c", ini, f"data={tmp_path}")
        assert ran.status == 1
        assert "FAILED  signing key: There is no signing key. Run `identity bootstrap`." in ran.out


class TestMigrate:
    def test_dry_run_changes_nothing(self, run, ini, tmp_path):
        arguments = ("migrate", "-c", ini, f"data={tmp_path}")
        assert "would apply  0001" in run(*arguments, "--dry-run").out
        assert "would apply  0001" in run(*arguments, "--dry-run").out
        assert "applied  0001" in run(*arguments).out
        assert run(*arguments).out == "The schema is up to date.\n"


class TestPurge:
    def test_reports_when_nothing_was_purged(self, on_data):
        assert on_data("purge").out == "There was nothing to delete.\n"

    def test_cleanup_reports_counts_and_longest_batch(self, on_data, data):
        with (
            open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity,
            identity.transaction() as services,
        ):
            at = services.now - timedelta(days=2)
            services.storage.outbox.add(make.outbox_message(created_at=at, next_at=at, expires_at=at))
        summary = r" +1  outgoing messages\nThe longest batch took \d+ ms\.\n"
        assert re.fullmatch(summary, on_data("purge").out)
        assert on_data("purge").out == "There was nothing to delete.\n"

    @pytest.mark.thorough
    def test_purge_deletes_only_due_accounts(self, on_data, data, stored):
        """More accounts than one batch."""
        with (
            open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity,
            identity.transaction() as services,
        ):
            organization = services.storage.organizations.find_by_domain("identity.localhost")
            for number in range(102):
                named = {"user_name": f"leaves{number}", "given_name": "Ada", "family_name": "Byron"}
                person = services.users.create(organization.id, CreateHumanUser(**named))
                at = services.now + timedelta(days=1 if number == 0 else -1)
                services.storage.users.update(replace(person, deletion_at=at, version=person.version + 1))
        assert re.search(r"^ +101  accounts$", on_data("purge").out, re.MULTILINE)
        assert stored.users.find_by_login_name("leaves0@identity.localhost") is not None
        assert stored.users.find_by_login_name("leaves1@identity.localhost") is None
        assert "accounts" not in on_data("purge").out


class TestHold:
    def test_legal_hold_is_placed_listed_and_released(self, on_data):
        own_organization = "identity.localhost"
        assert on_data("legal-hold").out == "Nothing is under a legal hold.\n"
        placed = on_data("legal-hold", "--organization", own_organization, "--reason", "Case 12")
        assert (placed.status, placed.err) == (0, "")
        assert placed.out.endswith(f" ({own_organization}): Case 12\n")
        everything = on_data("legal-hold", "--everything", "--reason", "Inquiry")
        assert everything.out.startswith(placed.out)
        assert "  everything: Inquiry\n" in everything.out
        assert (
            on_data("legal-hold", "--organization", own_organization, "--reason", "again").err
            == "identity: This is already on hold.\n"
        )
        assert on_data("legal-hold", "--everything", "--release").out == placed.out
        assert (
            on_data("legal-hold", "--organization", own_organization, "--release").out
            == "Nothing is under a legal hold.\n"
        )
        assert on_data("audit", "--event", "legal_hold").out.count("\n") == 4

    def test_legal_hold_names_user_by_login_name_or_id(self, on_data, stored):
        login_name = "admin@identity.localhost"
        id_ = stored.users.find_by_login_name(login_name).user.id
        for name in (login_name, id_):
            assert on_data("legal-hold", "--user", name, "--reason", "Case 12").out.endswith(
                f"  {login_name}: Case 12\n"
            )
            assert on_data("legal-hold", "--user", name, "--release").out == "Nothing is under a legal hold.\n"
        assert on_data("legal-hold", "--user", name, "--release").err == "identity: This is not held.\n"
        assert "There is no user nobody." in on_data("legal-hold", "--user", "nobody", "--reason", "x").err

    def test_invalid_legal_hold_options_are_reported(self, on_data):
        assert (
            "There is no organization nowhere."
            in on_data("legal-hold", "--organization", "nowhere", "--reason", "x").err
        )
        for options in (["--everything"], ["--reason", "x"], ["--release"], ["--organization", "identity.localhost"]):
            assert on_data("legal-hold", *options).err.startswith("identity: Say both which ")


class TestPlugins:
    def test_plugins_are_listed_and_installed(self, on_data):
        ran = on_data("plugins")
        listed, _, installed = ran.out.partition("Installed, not listed:")
        assert ran.status == 0
        assert re.search(r"^  jwt_bearer +identity-iam 0\.1\.0 +identity_grant_types$", listed, re.MULTILINE)
        assert listed.index("  sql ") < listed.index("  manager_roles ")
        assert "  memory " in installed

    def test_needs_neither_database_nor_keys(self, run, ini, tmp_path):
        assert run("plugins", "-c", ini, f"data={tmp_path}/none").status == 0
        assert not (tmp_path / "none").exists()


class TestRotateKeys:
    def test_repeated_rotation_announces_one_key(self, on_data):
        first, second = on_data("rotate-keys"), on_data("rotate-keys")
        assert first.out.startswith("The new signing key ")
        assert second.out.startswith("No key was made")
        assert MOMENT.search(first.out)[1] == MOMENT.search(second.out)[1]

    def test_emergency_rotation_takes_effect_soon(self, on_data):
        moment = datetime.fromisoformat(MOMENT.search(on_data("rotate-keys", "--emergency").out)[1]).replace(tzinfo=UTC)
        assert moment - datetime.now(UTC) <= timedelta(seconds=31)


class TestWithdraw:
    def test_withdrawn_key_is_replaced(self, on_data, stored):
        [first] = stored.signing_keys.list_all()
        ran = on_data("rotate-keys", "--withdraw", first.id)
        assert (ran.status, ran.err) == (0, "")
        [second] = stored.signing_keys.list_all()
        assert second.id != first.id
        assert second.active_at <= datetime.now(UTC)
        withdrawn, impact, *after = ran.out.splitlines()
        assert withdrawn == f"The signing key {first.id} (RS256) is withdrawn."
        assert "of 0 issued while it was active" in impact
        assert after == [
            f"The new signing key {second.id} signs from now on.",
            "Every process follows within 5 seconds, clients when they fetch the key list again.",
        ]

    def test_dry_run_says_what_would_end_and_changes_nothing(self, on_data, stored):
        keys = stored.signing_keys.list_all()
        ran = on_data("rotate-keys", "--withdraw", "all", "--dry-run")
        assert f"{keys[0].id} (RS256) would be withdrawn." in ran.out
        assert ran.out.endswith("Nothing was changed.\n")
        assert on_data("rotate-keys", "--dry-run").status == 1
        assert stored.signing_keys.list_all() == keys

    def test_inactive_key_is_withdrawn_individually_or_with_all(self, on_data, stored):
        [first] = stored.signing_keys.list_all()
        on_data("rotate-keys")
        _, waiting = stored.signing_keys.list_all()
        ran = on_data("rotate-keys", "--withdraw", waiting.id, "--withdraw", waiting.id)
        assert "The active signing key goes on signing." in ran.out
        assert stored.signing_keys.list_all() == (first,)
        on_data("rotate-keys")
        assert on_data("rotate-keys", "--withdraw", "all").out.count("is withdrawn") == 2
        [new] = stored.signing_keys.list_all()
        assert new.id not in (first.id, waiting.id)

    def test_unknown_key_changes_nothing_and_keys_are_listed(self, on_data, stored):
        [first] = stored.signing_keys.list_all()
        ran = on_data("rotate-keys", "--withdraw", first.id, "--withdraw", "abc")
        assert (ran.status, ran.err) == (
            1,
            f"identity: There is no signing key abc. There are: {first.id} (active).\n",
        )
        assert stored.signing_keys.list_all() == (first,)

    def test_key_and_all_are_mutually_exclusive(self, on_data):
        assert on_data("rotate-keys", "--withdraw", "all", "--emergency").status == 2


class TestRotateMasterKey:
    def test_rekey_seals_with_first_key_and_lists_unused_keys(self, run, ini, data, tmp_path):
        options, new = ["-c", tmp_path / "two.ini", f"data={data}"], tmp_path / "new.key"
        run("master-key", new)
        text = Path(ini).read_text()
        both = f"identity.master_keys = 2:{new} development:{data}/master.key"
        (tmp_path / "two.ini").write_text(text.replace("identity.master_keys =", both))
        ran = run("rotate-master-key", *options)
        assert (ran.status, ran.out) == (
            0,
            "1 values were resealed under the master key 2.\n"
            "Nothing is sealed under development any more: take it out of identity.master_keys.\n",
        )
        assert run("rotate-master-key", *options).out.startswith("0 values")
        (tmp_path / "two.ini").write_text(text.replace("identity.master_keys =", f"identity.master_keys = 2:{new}"))
        assert run("check", *options).status == 0
        assert run("rotate-master-key", *options).out == "0 values were resealed under the master key 2.\n"

    def test_reports_the_missing_master_key(self, run, ini, data, tmp_path):
        run("master-key", tmp_path / "new.key")
        other = f"identity.master_keys = 2:{tmp_path}/new.key"
        (tmp_path / "other.ini").write_text(Path(ini).read_text().replace("identity.master_keys =", other))
        ran = run("rotate-master-key", "-c", tmp_path / "other.ini", f"data={data}")
        assert (ran.status, ran.err.count("\n")) == (1, 1)
        assert "was left as it is: development (1). Signing keys among it: " in ran.err
        assert "Name the keys in identity.master_keys" in ran.err


class TestMasterKey:
    def test_creates_a_private_key_file(self, run, tmp_path):
        path = tmp_path / "master.key"
        ran = run("master-key", path)
        assert ran.status == 0
        assert f"identity.master_keys = 1:{path}" in ran.out
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(read_master_keys((f"1:{path}",))) == 1
        assert path.read_text().strip() not in ran.out

    def test_never_overwrites(self, run, tmp_path):
        path = tmp_path / "master.key"
        path.write_text("precious")
        ran = run("master-key", path)
        assert (ran.status, ran.err) == (1, f"identity: {path} exists already and is left alone.\n")
        assert path.read_text() == "precious"

    def test_reports_a_missing_folder(self, run, tmp_path):
        ran = run("master-key", tmp_path / "none" / "master.key")
        assert (ran.status, ran.err) == (1, f"identity: There is no folder {tmp_path / 'none'}.\n")
