"""Sign-in with the password of an LDAP directory: Debian's slapd (security 19.8)."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from identity.domain.attempts import FREE_ATTEMPTS
from identity.domain.attributes import AttributeDefinition
from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.groups import Group
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, Subject
from identity.fair_semaphore import client_network_scope
from identity.password_hashing import PasswordHasher, ServerBusy
from identity.plugins.ldap.client import LdapClient, LdapEntry
from identity.plugins.ldap.settings import LdapPluginSettings
from identity.provider.directory import DirectoryUnavailable
from identity.services.access_control import Principal
from identity.services.commands.attributes import AddAttributeMapping
from identity.services.commands.groups import AddGroup, AddGroupManager, AddGroupMapping, ChangeGroupMapping
from identity.services.commands.users import ChangeHumanUser
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.directories import MAX_DIRECTORY_TESTS
from identity.services.organization_transfer import OrganizationTransfer
from identity.settings_parser import InvalidSetting
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.http_server import loopback_socket
from tests.plugins.ldap import slapd
from tests.plugins.ldap.slapd import GROUPS, PASSWORD, PEOPLE, SERVICE, Slapd

pytestmark = [
    pytest.mark.skipif(slapd.SLAPD is None, reason="slapd is not installed: apt-get install slapd ldap-utils"),
    # The directory does not depend on the storage.
    pytest.mark.storages("memory"),
]

DOMAIN = "people.example"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as server:
        yield server


def settings_of(directory: Slapd, **changed: Any) -> LdapPluginSettings:
    usual: dict[str, Any] = {
        "servers": (directory.tls,),
        "organization": DOMAIN,
        "ca_file": directory.ca_file,
        "bind_dn": SERVICE,
        "password_file": directory.password_file,
        "base": PEOPLE,
    }
    return LdapPluginSettings(**usual | changed)


def authenticate(search: LdapClient, login: str, password: str) -> LdapEntry | None:
    """The entry with this name and password; None if there is none."""
    entry = search.find_entry(login)
    return entry if search.verify_password(entry, password) else None


def make_user_name() -> str:
    return f"ada{next(_NUMBERS)}"


@dataclass
class LdapScenario:
    """A service with the directory."""

    world: World
    directory: Slapd
    organization: Organization

    def sign_in(self, name: str, password: str = PASSWORD, browser: Browser | None = None) -> Any:
        """Sign in, by default with a new browser."""
        browser = browser or Browser(self.world)
        browser.open("/login")
        return browser.sign_in(f"{name}@{DOMAIN}", password)

    def person(self, name: str) -> HumanUser | None:
        with self.world.read_only_services() as services:
            subject = services.storage.users.find_by_login_name(f"{name}@{DOMAIN}")
        return None if subject is None else subject.user  # type: ignore[return-value]

    def change(self, **changed: Any) -> None:
        """Change settings, as by a restart."""
        [people] = self.world.identity.protocol_registry.directories.values()
        people._settings = replace(people._settings, **changed)  # type: ignore[attr-defined]
        people._search = LdapClient(people._settings)  # type: ignore[attr-defined]


@pytest.fixture
def scene(make_world: WorldFactory, directory: Slapd) -> LdapScenario:
    prefix = "identity.plugin.ldap."
    settings = {
        "servers": f"{directory.tls} {directory.start_tls}",
        "organization": DOMAIN,
        "ca_file": str(directory.ca_file),
        "bind_dn": SERVICE,
        "password_file": str(directory.password_file),
        "base": PEOPLE,
        "roles": f"ORG_USER_MANAGER=cn=helpdesk\\20people,{GROUPS}",
    }
    world = make_world(**{prefix + name: value for name, value in settings.items()})
    return LdapScenario(world, directory, world.make_organization(primary_domain=DOMAIN))


@pytest.mark.parametrize("transport", ["tls", "start_tls"])
def test_ldap_sign_in_works_over_tls(directory: Slapd, transport: str) -> None:
    name = make_user_name()
    directory.person(name, mail="ada@people.example")
    search = LdapClient(settings_of(directory, servers=(getattr(directory, transport),)))
    entry = authenticate(search, name, PASSWORD)
    assert entry is not None
    assert (entry.attributes["sn"], entry.attributes["mail"]) == ("Lovelace", "ada@people.example")
    assert authenticate(search, name, "wrong") is None
    assert authenticate(search, "nobody", PASSWORD) is None


@pytest.mark.parametrize("transport", ["tls", "start_tls"])
def test_untrusted_or_mismatched_certificate_is_refused(directory: Slapd, transport: str) -> None:
    name = make_user_name()
    directory.person(name)
    server = getattr(directory, transport)
    with pytest.raises(DirectoryUnavailable):
        authenticate(LdapClient(settings_of(directory, servers=(server,), ca_file=None)), name, PASSWORD)
    # The same server under a name that its certificate does not contain.
    with pytest.raises(DirectoryUnavailable):
        authenticate(
            LdapClient(settings_of(directory, servers=(server.replace("localhost", "127.1"),))), name, PASSWORD
        )
    assert authenticate(LdapClient(settings_of(directory, servers=(server,))), name, PASSWORD) is not None


@pytest.mark.parametrize("password", ["", "\0", "a\0b", "x" * 501])
def test_empty_password_is_not_sent(directory: Slapd, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_user_name()
    directory.person(name)
    search = LdapClient(settings_of(directory))
    let_in = search._can_bind
    monkeypatch.setattr(search, "_can_bind", lambda server, dn, tried: tried != password and let_in(server, dn, tried))
    assert authenticate(search, name, password) is None


@pytest.mark.parametrize("login", ["*", "ada*", "a)(uid=*", "*)(objectClass=*", "\\2a", "a\0b", "("])
def test_login_name_is_escaped_in_ldap_filter(directory: Slapd, login: str) -> None:
    directory.person(make_user_name())
    assert authenticate(LdapClient(settings_of(directory)), login, PASSWORD) is None


def test_ambiguous_login_name_is_refused(directory: Slapd) -> None:
    name = make_user_name()
    directory.person(name)
    directory.person(f"{name}x", cn=name)
    assert (
        authenticate(LdapClient(settings_of(directory, filter="(|(uid={login})(cn={login}))")), name, PASSWORD) is None
    )


def test_servers_fail_over_in_order(directory: Slapd) -> None:
    name = make_user_name()
    directory.person(name)
    closed_socket = loopback_socket()
    port = closed_socket.getsockname()[1]
    closed_socket.close()
    search = LdapClient(settings_of(directory, servers=(f"ldaps://localhost:{port}", directory.tls)))
    assert authenticate(search, name, PASSWORD) is not None
    with pytest.raises(DirectoryUnavailable):
        authenticate(LdapClient(settings_of(directory, servers=(f"ldaps://localhost:{port}",))), name, PASSWORD)


def test_silent_server_times_out(directory: Slapd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.ldap.client.TIMEOUT_SECONDS", 1)
    with loopback_socket() as silent:
        silent.listen()
        port = silent.getsockname()[1]
        for scheme in ("ldap", "ldaps"):
            with pytest.raises(DirectoryUnavailable):
                authenticate(
                    LdapClient(settings_of(directory, servers=(f"{scheme}://localhost:{port}",))), "ada", PASSWORD
                )


def test_directory_slots_are_limited_per_network(directory: Slapd) -> None:
    search = LdapClient(settings_of(directory))
    with client_network_scope("192.0.2.0/24"):
        for _ in range(4):
            search._slots.acquire()
        with pytest.raises(DirectoryUnavailable):
            authenticate(search, "ada", PASSWORD)
    with client_network_scope("198.51.100.0/24"):
        authenticate(search, "ada", PASSWORD)


def test_refused_service_account_is_unavailable(directory: Slapd, tmp_path: Path) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("wrong")
    wrong.chmod(0o600)
    with pytest.raises(DirectoryUnavailable):
        authenticate(LdapClient(settings_of(directory, password_file=wrong)), "anybody", PASSWORD)


def test_invalid_ldap_settings_are_refused(directory: Slapd, tmp_path: Path) -> None:
    (open_file := tmp_path / "open").write_text("secret")
    for changed in (
        {"servers": ("http://x.example",)},
        {"filter": "uid=x"},
        {"organization": ""},
        {"base": ""},
        {"password_file": None},
        {"password_file": open_file},
        {"roles": ("ORG_OWNER",)},
        {"attributes": ("email_verified=mail",)},
        {"ca_file": tmp_path / "none"},
    ):
        with pytest.raises(InvalidSetting) as refused:
            settings_of(directory, **changed)
        assert "secret" not in str(refused.value)


def test_first_ldap_sign_in_creates_account(
    scene: LdapScenario,
) -> None:
    name = make_user_name()
    scene.directory.person(name, mail=f"{name}@people.example", displayName="Ada L.")
    browser = Browser(scene.world)
    scene.sign_in(name, browser=browser)
    assert browser.path.startswith("/account"), browser.page
    person = scene.person(name)
    assert person is not None
    assert (person.profile.name, person.profile.email) == ("Ada L.", f"{name}@people.example")
    assert not person.profile.email_verified


def test_ldap_failures_are_indistinguishable(scene: LdapScenario) -> None:
    name, local = make_user_name(), scene.world.make_human_user(scene.organization)
    scene.directory.person(name)
    set_password(scene.world, local)
    pages = [scene.sign_in(item, "wrong") for item in (name, "nobody", local.user_name)]
    assert {page.status_int for page in pages} == {422}
    assert len({page.html.select_one(".field__error, .notice").text for page in pages}) == 1
    assert scene.person(name) is None


def test_ldap_attempts_are_rate_limited(scene: LdapScenario) -> None:
    name = make_user_name()
    scene.directory.person(name)
    statuses = [scene.sign_in(name, "wrong").status_int for _ in range(7)]
    assert statuses[:5] == [422] * 5
    assert 429 in statuses[5:]
    assert scene.sign_in(name).status_int == 429, "the right password was looked at"


def test_local_password_of_ldap_user_is_ignored(scene: LdapScenario) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    set_password(scene.world, person, "another password of theirs")
    assert scene.sign_in(name, "another password of theirs").status_int == 422
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nreplace: userPassword\nuserPassword: changed meanwhile\n")
    assert scene.sign_in(name).status_int == 422
    browser = Browser(scene.world)
    scene.sign_in(name, "changed meanwhile", browser)
    assert browser.session_cookies


def test_ldap_entry_with_same_name_is_another_user(scene: LdapScenario) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    scene.directory.remove(dn)
    scene.directory.person(name)
    assert scene.sign_in(name).status_int == 422


def test_ldap_entry_does_not_take_over_local_login_name(scene: LdapScenario) -> None:
    local = scene.world.make_human_user(scene.organization)
    set_password(scene.world, local, "the password kept here")
    scene.directory.person(local.user_name)
    assert scene.sign_in(local.user_name).status_int == 422
    browser = Browser(scene.world)
    scene.sign_in(local.user_name, "the password kept here", browser)
    assert browser.session_cookies


def test_renamed_ldap_entry_does_not_take_over_user(scene: LdapScenario) -> None:
    name = make_user_name()
    scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    scene.world.operator_services.users.change(person.id, ChangeHumanUser(user_name=f"{name}-before"))
    user = scene.world.make_human_user(scene.organization)
    scene.world.operator_services.users.change(user.id, ChangeHumanUser(user_name=name))
    browser = Browser(scene.world)
    assert scene.sign_in(name, browser=browser).status_int == 422
    assert not browser.session_cookies


def test_ldap_sign_in_updates_profile(scene: LdapScenario) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nreplace: sn\nsn: King\n")
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    assert person.profile.family_name == "King"


def test_ldap_groups_grant_and_revoke_roles(scene: LdapScenario) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    group = scene.directory.group("helpdesk people", dn)
    scene.sign_in(name)
    assert roles_of(scene, name) == {"ORG_USER_MANAGER"}
    scene.directory.remove(group)
    scene.sign_in(name)
    assert roles_of(scene, name) == set()


def roles_of(scene: LdapScenario, name: str) -> set[str]:
    person = scene.person(name)
    assert person is not None
    key = Resource.of_organization(scene.organization.id).key
    with scene.world.read_only_services() as services:
        managers = services.storage.managers.list_for_user(person.id)
    return {role for manager in managers if manager.resource == key for role in manager.roles}


def test_ldap_groups_grant_project_roles(scene: LdapScenario) -> None:
    name = make_user_name()
    project = scene.world.make_project(scene.organization, roles=("editor", "reader"))
    dn = scene.directory.person(name)
    group = scene.directory.group("editors", dn)
    scene.change(roles=(f"{project.id}/editor={group}", f"gone/x={group}"))
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    with scene.world.read_only_services() as services:
        [grant] = services.storage.user_grants.page("user_id", person.id)
    assert grant.roles == {"editor"}
    scene.directory.remove(group)
    scene.sign_in(name)
    with scene.world.read_only_services() as services:
        assert not list(services.storage.user_grants.page("user_id", person.id))


@pytest.fixture
def binds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Distinguished names of all bind attempts."""
    bound_dns: list[str] = []
    original = LdapClient._can_bind

    def note(search: LdapClient, server: Any, dn: str, password: str) -> bool:
        bound_dns.append(dn)
        return original(search, server, dn, password)

    monkeypatch.setattr(LdapClient, "_can_bind", note)
    return bound_dns


def spellings(name: str, domain: str = DOMAIN) -> list[str]:
    """Twelve spellings of a name; some of them match its entry."""
    wide = "".join(chr(ord(item) + 0xFEE0) for item in name)
    return [
        f"{name}@{domain}",
        f"{name.upper()}@{domain}",
        f"{name.capitalize()}@{domain.upper()}",
        f"  {name}  @ {domain} ",
        f"{wide}@{domain}",
        f"{name}＠{domain}",
        f"{name[:2]}\u200b{name[2:]}@{domain}",
        f"{name[:2]}\u00ad{name[2:]}@{domain}",
        f"{name}\u3164@{domain}",
        f"{name[:2]}  {name[2:]}@{domain}",
        f"{name}@1@{domain}",
        f"{name}@{name}@{domain}",
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("has_account", [False, True])
def test_login_name_spellings_share_one_counter(scene: LdapScenario, binds: list[str], has_account: bool) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    if has_account:
        scene.sign_in(name)
    binds.clear()
    browser = Browser(scene.world)
    for number in range(60):
        spelling = spellings(name)[number % 12].replace("@1@", f"@{number}@")
        browser.open("/login")
        assert browser.sign_in(spelling, f"guess {number}").status_int in (422, 429)
    assert 0 < binds.count(dn) <= FREE_ATTEMPTS


@pytest.mark.thorough
def test_attempts_are_counted_per_entry(scene: LdapScenario, binds: list[str]) -> None:
    """Directories may have matching rules that equate unexpected names."""
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.change(filter="(|(uid={login})(sn=Lovelace))", base=dn)
    for number in range(60):
        assert scene.sign_in(f"other{number}", "wrong").status_int in (422, 429)
    assert 0 < binds.count(dn) <= FREE_ATTEMPTS
    assert scene.sign_in("yet-another").status_int == 422, "the right password was looked at"


def test_linked_user_signs_in_by_current_name_only(scene: LdapScenario, binds: list[str]) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    for spelling in spellings(name)[7:]:
        browser = Browser(scene.world)
        browser.open("/login")
        assert browser.sign_in(spelling, PASSWORD).status_int == 422
        assert not browser.session_cookies
    scene.world.operator_services.users.change(person.id, ChangeHumanUser(user_name=f"{name}-married"))
    scene.world.clock.advance(minutes=16)
    binds.clear()
    assert scene.sign_in(name).status_int == 422, "the name of the entry is not that of the account"
    assert dn not in binds
    browser = Browser(scene.world)
    scene.sign_in(f"{name}-married", browser=browser)
    assert browser.session_cookies


def test_linked_user_is_looked_up_by_entry_id(scene: LdapScenario) -> None:
    """Another entry with the same name is another user."""
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    scene.directory.modify(f"dn: {dn}\nchangetype: modrdn\nnewrdn: uid={name}-married\ndeleteoldrdn: 1\n")
    scene.directory.person(name, "of somebody else")
    browser = Browser(scene.world)
    assert scene.sign_in(name, "of somebody else", browser).status_int == 422
    scene.sign_in(name, browser=browser)
    assert browser.session_cookies


def test_legacy_links_get_entry_id(scene: LdapScenario) -> None:
    name = make_user_name()
    scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    [people] = scene.world.identity.protocol_registry.directories.values()
    with scene.world.transaction_services() as services:
        records = services.record_service(people._name_space)  # type: ignore[attr-defined]
        [record] = records.list_by_owner("person", user_id=person.id)
        records.replace(record, {"login": name})
    scene.sign_in(name)
    with scene.world.read_only_services() as services:
        [record] = services.record_service(people._name_space).list_by_owner("person", user_id=person.id)  # type: ignore[attr-defined]
    assert record.value["id"]


def test_ldap_filter_applies_to_linked_entries(scene: LdapScenario) -> None:
    name = make_user_name()
    dn = scene.directory.person(name)
    scene.change(filter="(&(uid={login})(!(description=gone)))")
    scene.sign_in(name)
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nadd: description\ndescription: gone\n")
    assert scene.sign_in(name).status_int == 422


def sign_in_to_application(scene: LdapScenario, login_name: str, password: str, browser: Browser) -> Any:
    """Sign in to an application that requests the directory's organization."""
    party = RelyingParty.register(scene.world, project_id=scene.world.make_project(scene.organization).id)
    browser.open(party.new_request().url, initiator=party.origin)
    return browser.sign_in(login_name, password)


def test_requested_organization_does_not_select_directory(scene: LdapScenario, binds: list[str]) -> None:
    name, browser = make_user_name(), Browser(scene.world)
    dn = scene.directory.person(name)
    assert sign_in_to_application(scene, name, PASSWORD, browser).status_int == 422
    assert dn not in binds
    assert scene.person(name) is None
    scene.sign_in(name)
    sign_in_to_application(scene, name, PASSWORD, browser)
    assert browser.session_cookies, "an account that is linked is found by its bare name as well"


def test_unlinked_users_never_query_directory(scene: LdapScenario, binds: list[str]) -> None:
    local, robot = (
        scene.world.make_human_user(scene.organization),
        scene.world.make_service_user_program(scene.organization).user,
    )
    set_password(scene.world, local, "the password kept here")
    entries = {scene.directory.person(item.user_name) for item in (local, robot)}
    for item in (local, robot):
        for password in (PASSWORD, "the password kept here"):
            scene.sign_in(item.user_name, password)
    assert not entries & set(binds)
    assert binds, "it takes as long"


def test_outage_is_indistinguishable_for_linked_and_unknown_names(scene: LdapScenario) -> None:
    name = make_user_name()
    scene.directory.person(name)
    scene.sign_in(name)
    scene.change(servers=("ldaps://localhost:1",))
    answers = {item: [scene.sign_in(item, "wrong") for _ in range(7)] for item in (name, "nobody", f"{name}@x")}
    statuses = {item: [answer.status_int for answer in found] for item, found in answers.items()}
    assert statuses[name][:FREE_ATTEMPTS] == [503] * FREE_ATTEMPTS
    assert 429 in statuses[name]
    assert len({tuple(found) for found in statuses.values()}) == 1
    assert len({answers[answer][0].html.select_one(".notice").text for answer in answers}) == 1
    scene.change(servers=(scene.directory.tls,))
    assert scene.sign_in(name).status_int == 429, "the guesses of the outage count"


def test_outage_does_not_affect_local_users(scene: LdapScenario) -> None:
    """Attempts at local users are counted and answered as usual during an outage."""
    local = scene.world.make_human_user(scene.organization)
    set_password(scene.world, local, "the password kept here")
    scene.change(servers=("ldaps://localhost:1",))
    browser = Browser(scene.world)
    scene.sign_in(local.user_name, "the password kept here", browser)
    assert browser.session_cookies
    statuses = [scene.sign_in(local.user_name, "wrong").status_int for _ in range(7)]
    assert statuses[:FREE_ATTEMPTS] == [422] * FREE_ATTEMPTS
    assert 429 in statuses
    assert scene.sign_in(local.user_name, "the password kept here").status_int == 429


def test_ldap_attempt_counts_while_hashing_is_busy(scene: LdapScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_user_name()
    scene.directory.person(name)

    def busy(*_: object, **__: object) -> None:
        raise ServerBusy

    with monkeypatch.context() as patched:
        patched.setattr(PasswordHasher, "verify", busy)
        statuses = [scene.sign_in(name, "wrong").status_int for _ in range(7)]
    assert statuses[:FREE_ATTEMPTS] == [503] * FREE_ATTEMPTS
    assert 429 in statuses


def test_slow_directory_does_not_delay_local_users(directory: Slapd) -> None:
    with loopback_socket() as silent:
        silent.listen()
        search = LdapClient(settings_of(directory, servers=(f"ldaps://localhost:{silent.getsockname()[1]}",)))
        search.simulate_query("ada")
        assert search._failed_at > 0
    queries: list[object] = []
    search._query_servers = lambda *_, **__: queries.append(1)  # type: ignore[method-assign,assignment,return-value]
    search.simulate_query("ada")
    assert not queries, "it is not asked again so soon"


def test_account_creation_requires_setting(scene: LdapScenario) -> None:
    name = make_user_name()
    scene.directory.person(name)
    scene.change(create_accounts=False)
    assert scene.sign_in(name).status_int == 422
    assert scene.person(name) is None


def test_refused_valid_password_is_hashed_once(scene: LdapScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_user_name()
    scene.directory.person(name)
    scene.change(create_accounts=False)
    hashes: list[str] = []
    original = PasswordHasher._run
    monkeypatch.setattr(PasswordHasher, "_run", lambda self, work: (hashes.append(name), original(self, work))[1])
    assert scene.sign_in(name, "wrong").status_int == 422
    of_wrong = len(hashes)
    assert scene.sign_in(name).status_int == 422
    assert (of_wrong, len(hashes)) == (1, 2)


@pytest.mark.parametrize("transport", ["tls", "start_tls"])
def test_connection_test_says_what_fails(directory: Slapd, tmp_path: Path, transport: str) -> None:
    directory.person(make_user_name())
    wrong_password = tmp_path / "wrong"
    wrong_password.write_text("wrong secret")
    wrong_password.chmod(0o600)
    server = getattr(directory, transport)
    scheme, _, port = server.partition("://localhost:")
    closed_socket = loopback_socket()
    closed = f"{scheme}://localhost:{closed_socket.getsockname()[1]}"
    closed_socket.close()

    def problem(**changed: Any) -> str:
        changed = {"servers": (server,)} | changed
        [(address, text)] = LdapClient(settings_of(directory, **changed)).check_servers()
        assert (address,) == changed["servers"]
        assert "secret" not in text
        return text

    assert problem() == ""
    assert problem(servers=(f"{scheme}://directory.invalid",)) == "There is no host of this name."
    assert problem(servers=(closed,)) == "The server does not respond."
    assert problem(servers=(f"{scheme}://127.1:{port}",)).startswith("The certificate of the server is not trusted")
    assert problem(ca_file=None).startswith("The certificate of the server is not trusted")
    authorities = tmp_path / "authorities.pem"
    authorities.write_text("gone after the start")
    assert problem(ca_file=authorities) == "The service cannot read the file of certificate authorities."
    assert problem(servers=(f"{scheme}://localhost:99999",)) == "There is no host of this name."
    assert problem(password_file=wrong_password) == "The server refuses the service's DN or password."
    assert problem(bind_dn=f"cn=nobody,{PEOPLE}") == "The server refuses the service's DN or password."
    assert problem(base=f"ou=nowhere,{PEOPLE}").startswith(f"There is no entry ou=nowhere,{PEOPLE}")
    assert problem(filter="(telexNumber={login})") == f"The filter finds no users below {PEOPLE}."
    assert problem(id_attribute="telexNumber") == "Entries have no telexNumber."
    wrong_password.unlink()


def test_connection_test_of_a_server_of_another_kind(directory: Slapd) -> None:
    """Each server is tested, whatever the others answer; a silent one within the timeout."""
    directory.person(make_user_name())
    plain_as_tls = directory.start_tls.replace("ldap://", "ldaps://")
    with loopback_socket() as silent:
        silent.listen()
        quiet = f"ldap://localhost:{silent.getsockname()[1]}"
        servers = (plain_as_tls, quiet, directory.tls)
        found = LdapClient(settings_of(directory, servers=servers)).check_servers()
    assert found == [
        (plain_as_tls, "The TLS handshake fails."),
        (quiet, "The server does not offer StartTLS."),
        (directory.tls, ""),
    ]


def signed_in_manager(scene: LdapScenario, role: str, resource: Resource) -> Browser:
    person = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(person, role, resource=resource)
    browser = Browser(scene.world)
    browser.start_session(person)
    return browser


def test_console_shows_and_tests_directory(scene: LdapScenario) -> None:
    scene.directory.person(make_user_name())
    path = f"/console/organizations/{scene.organization.id}/directories"
    owner = signed_in_manager(scene, "IAM_OWNER", Resource.INSTANCE)
    page = owner.open(path)
    assert "ldap" in page.html.main.text
    page = owner.open(f"{path}/ldap")
    assert "identity.plugin.ldap.bind_dn" in page
    assert str(scene.directory.password_file) in page
    assert slapd.SERVICE_PASSWORD not in page
    owner.click("Test the connection")
    page = owner.submit(form="page-form")
    assert page.html.main.text.count("The service can log in and finds people.") == 2
    [event] = scene.world.audit_events(event="directory.tested")
    assert (event.object_id, event.organization_id) == ("ldap", scene.organization.id)
    other = scene.world.make_organization()
    assert owner.open(f"/console/organizations/{other.id}/directories/ldap").status_int == 404
    assert f"{other.id}/directories" not in owner.open(f"/console/organizations/{other.id}")


def test_managers_of_the_organization_cannot_test_directory(scene: LdapScenario) -> None:
    """They see its settings, but neither names of the operator's files nor the button."""
    path = f"/console/organizations/{scene.organization.id}/directories/ldap"
    manager = signed_in_manager(scene, "ORG_OWNER", Resource.of_organization(scene.organization.id))
    page = manager.open(path)
    assert "identity.plugin.ldap.password_file" in page
    assert str(scene.directory.password_file) not in page
    assert "Test the connection" not in page
    assert manager.open(f"{path}/test").status_int == 403
    assert not scene.world.audit_events(event="directory.tested")


def test_connection_tests_are_rate_limited(scene: LdapScenario) -> None:
    with scene.world.transaction_services() as services:
        [found] = services.directories.list_of_organization(scene.organization)
        for _ in range(MAX_DIRECTORY_TESTS):
            services.directories.record_test(found, principal=Principal.OPERATOR)
        with pytest.raises(Conflict):
            services.directories.record_test(found, principal=Principal.OPERATOR)


@dataclass
class MappedScenario:
    """A group that ``memberOf`` fills and an attribute that ``departmentNumber`` fills, mapped by an instance owner."""

    scene: LdapScenario
    group: Group
    attribute: AttributeDefinition
    editor: HumanUser
    group_dn: str

    def members(self) -> list[str]:
        with self.scene.world.read_only_services() as services:
            return [member.user_id for member in services.storage.group_members.page(self.group.id).items]

    def value_of(self, user: HumanUser) -> object:
        with self.scene.world.read_only_services() as services:
            return services.attributes.user_values([user])[user.id].get(self.attribute.key)


def map_group_and_attribute(scene: LdapScenario) -> MappedScenario:
    world, organization = scene.world, scene.organization
    editor = world.make_human_user(organization)
    world.assign_manager_role(editor, "IAM_OWNER", resource=Resource.INSTANCE)
    attribute = world.make_attribute(organization, "department")
    name = f"sales {next(_NUMBERS)}"
    with world.transaction_services() as services:
        principal = services.access_control.load_principal(Subject(editor, organization))
        group = services.groups.add(organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)
        directory = services.directories.get(organization.id, "ldap")
        # Another spelling of the same distinguished name.
        value = f"CN={name}, OU=groups,DC=example"
        command = AddGroupMapping(claim="memberof", value=value, group_id=group.id)
        services.group_mappings.add(directory, command, principal=principal)
        named = AddAttributeMapping(claim="departmentNumber", attribute_id=attribute.id)
        services.attribute_mappings.add(directory, named, principal=principal)
    return MappedScenario(scene, group, attribute, editor, name)


def test_directory_mappings_fill_group_and_attribute(scene: LdapScenario) -> None:
    mapped, name = map_group_and_attribute(scene), make_user_name()
    dn = scene.directory.person(name, departmentNumber="Field sales")
    group_dn = scene.directory.group(mapped.group_dn, dn)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    assert mapped.members() == [person.id]
    assert mapped.value_of(person) == "Field sales"
    scene.directory.remove(group_dn)
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nreplace: departmentNumber\ndepartmentNumber: Support\n")
    scene.sign_in(name)
    assert mapped.members() == []
    assert mapped.value_of(person) == "Support"


def test_directory_mappings_act_with_the_present_rights_of_their_editor(scene: LdapScenario) -> None:
    mapped, name = map_group_and_attribute(scene), make_user_name()
    dn = scene.directory.person(name, departmentNumber="Field sales")
    scene.directory.group(mapped.group_dn, dn)
    with scene.world.transaction_services() as services:
        services.users.deactivate(mapped.editor.id, principal=Principal.OPERATOR)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    assert mapped.members() == []
    assert not mapped.value_of(person)
    assert len(scene.world.audit_events(event="group_mapping.refused")) == 1


def test_only_mapped_attributes_are_read(directory: Slapd, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_user_name()
    directory.person(name, departmentNumber="7", title="Dr")
    search = LdapClient(settings_of(directory))
    entry = search.find_entry(name)
    assert entry is not None
    assert "departmentnumber" not in entry.attributes
    sent: list[list[str]] = []
    read = search._read_values
    monkeypatch.setattr(
        search, "_read_values", lambda server, dn, names: (sent.append(names), read(server, dn, names))[1]
    )
    found = search.read_values(entry, ["DEPARTMENTNUMBER", "telexNumber", "*", "+", "userPassword", "a)(b"])
    assert found == {"DEPARTMENTNUMBER": ["7"]}
    assert sent == [["DEPARTMENTNUMBER", "telexNumber"]]
    directory.remove(entry.dn)
    with pytest.raises(DirectoryUnavailable):
        search.read_values(entry, ["title"])


def test_directory_mappings_take_instance_write(scene: LdapScenario) -> None:
    """Who controls the organization alone cannot decide who is in a group, nor change or remove what decides it."""
    mapped = map_group_and_attribute(scene)
    owner = scene.world.make_human_user(scene.organization)
    scene.world.assign_manager_role(owner, "ORG_OWNER")
    with scene.world.transaction_services() as services:
        principal = services.access_control.load_principal(Subject(owner, scene.organization))
        directory = services.directories.get(scene.organization.id, "ldap")
        [mapping] = services.group_mappings.list_of_source(directory)
        command = AddGroupMapping(claim="memberOf", value="cn=all", group_id=mapped.group.id)
        for refused in (
            lambda: services.group_mappings.add(directory, command, principal=principal),
            lambda: services.group_mappings.change(mapping.id, ChangeGroupMapping(value="cn=all"), principal=principal),
            lambda: services.group_mappings.remove(mapping.id, principal=principal),
            lambda: services.group_managers.add(
                mapped.group.id,
                AddGroupManager.build(
                    level="organization", resource_id=scene.organization.id, roles=["ORG_OWNER_VIEWER"]
                ),
                principal=principal,
            ),
        ):
            with pytest.raises(Denied):
                refused()


def test_mappings_of_a_directory_that_is_gone_do_nothing_and_can_be_removed(scene: LdapScenario) -> None:
    mapped = map_group_and_attribute(scene)
    with scene.world.transaction_services() as services:
        directory = services.directories.get(scene.organization.id, "ldap")
        [mapping] = services.group_mappings.list_of_source(directory)
    scene.change(organization="another.example")
    with scene.world.transaction_services() as services:
        assert services.group_mappings.refusal_reason(mapping)
    browser = signed_in_manager(scene, "IAM_OWNER", Resource.INSTANCE)
    assert "Adds no members" in browser.open(f"/console/groups/{mapped.group.id}/mappings")
    browser.open(f"/console/group-mappings/{mapping.id}/delete")
    browser.submit(form="page-form")
    with scene.world.read_only_services() as services:
        assert services.group_mappings.list_of_group(mapped.group.id) == ()


def test_directory_mappings_are_added_in_the_console(scene: LdapScenario) -> None:
    attribute = scene.world.make_attribute(scene.organization, "team")
    with scene.world.transaction_services() as services:
        group = services.groups.add(scene.organization.id, AddGroup(name="Sales"), principal=Principal.OPERATOR)
    path = f"/console/organizations/{scene.organization.id}/directories/ldap"
    owner = signed_in_manager(scene, "IAM_OWNER", Resource.INSTANCE)
    assert "No group mappings yet" in owner.open(path)
    owner.click("Add group mapping")
    page = owner.submit({"claim": "memberOf", "value": "cn=sales", "group": group.id}, form="page-form")
    assert "memberOf = cn=sales" in page.html.main.text
    owner.click("Add attribute mapping")
    page = owner.submit({"claim": "departmentNumber", "attribute": attribute.id}, form="page-form")
    assert "departmentNumber" in page.html.main.text
    assert "Changes nothing" not in page
    assert "ldap" in owner.open(f"/console/groups/{group.id}/mappings").html.main.text
    assert "1 attribute mapping is removed." in owner.open(f"/console/attributes/{attribute.id}/delete")
    with scene.world.read_only_services() as services:
        [mapping] = services.group_mappings.list_of_group(group.id)
    owner.open(f"/console/group-mappings/{mapping.id}/edit")
    assert "cn=support" in owner.submit({"value": "cn=support"}, form="page-form").html.main.text
    manager = signed_in_manager(scene, "ORG_OWNER", Resource.of_organization(scene.organization.id))
    page = manager.open(path)
    assert "cn=support" in page
    assert "Add group mapping" not in page
    assert "Remove" not in page
    assert manager.open(f"{path}/group-mappings/new").status_int == 403


def test_apply_and_export_of_directory_mappings(scene: LdapScenario) -> None:
    """What an export says, apply finds unchanged; a directory that the ini file does not set up is a problem."""
    map_group_and_attribute(scene)
    with scene.world.transaction_services() as services:
        exported = json.loads(
            "".join(OrganizationTransfer(services).export_document(scene.organization.id, principal=Principal.OPERATOR))
        )["organization"]
    [described] = exported["directories"]
    assert (described["name"], described["group_mappings"][0]["claim"]) == ("ldap", "memberof")
    assert described["attribute_mappings"][0]["claim"] == "departmentNumber"
    organization = {"id": scene.organization.id, "name": scene.organization.name, "directories": [described]}
    described["attribute_mappings"] = []

    def apply(**more: Any) -> Any:
        document = {"version": 1, "organizations": [organization], **more}
        with scene.world.transaction_services() as services:
            report = apply_desired_state(
                services, parse_desired_state(document), principal=Principal.OPERATOR, prune=True
            )
            left = services.attribute_mappings.list_of_source(services.directories.get(scene.organization.id, "ldap"))
            return report, left

    _, left = apply()
    assert left == ()
    described["name"] = "other"
    with pytest.raises(Invalid) as refused:
        apply()
    assert list(refused.value.fields) == ["organizations[0].directories[0].name"]
