"""Signing in with the password of a directory: Debian's slapd (security 19.8)."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.users import HumanUser
from identity.fair_shares import asked_from
from identity.ini_values import BadSetting
from identity.plugins.ldap.search import Search
from identity.plugins.ldap.settings import Settings
from identity.provider.directory import Absent
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser, give_password
from identity.testing.fixtures import MakeWorld
from identity.testing.serving import loopback_socket
from identity.testing.world import World
from tests.plugins.ldap import slapd
from tests.plugins.ldap.slapd import GROUPS, PASSWORD, PEOPLE, SERVICE, Slapd

pytestmark = [
    pytest.mark.skipif(slapd.SLAPD is None, reason="slapd is not installed: apt-get install slapd ldap-utils"),
    # What the directory says is the same on every storage.
    pytest.mark.storages("memory"),
]

DOMAIN = "people.example"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as server:
        yield server


def settings_of(directory: Slapd, **changed: Any) -> Settings:
    usual: dict[str, Any] = {
        "servers": (directory.tls,),
        "organization": DOMAIN,
        "ca_file": directory.ca_file,
        "bind_dn": SERVICE,
        "password_file": directory.password_file,
        "base": PEOPLE,
    }
    return Settings(**usual | changed)


def a_name() -> str:
    return f"ada{next(_NUMBERS)}"


@dataclass
class Scene:
    """A service that knows the directory."""

    world: World
    directory: Slapd
    organization: Organization

    def sign_in(self, name: str, password: str = PASSWORD, browser: Browser | None = None) -> Any:
        """At a browser of one's own."""
        browser = browser or Browser(self.world)
        browser.open("/login")
        return browser.sign_in(f"{name}@{DOMAIN}", password)

    def person(self, name: str) -> HumanUser | None:
        with self.world.reading() as services:
            subject = services.storage.users.find_by_login_name(f"{name}@{DOMAIN}")
        return None if subject is None else subject.user  # type: ignore[return-value]

    def change(self, **changed: Any) -> None:
        """Other settings, as after a restart."""
        [people] = self.world.identity.protocol.directories.values()
        people._settings = replace(people._settings, **changed)  # type: ignore[attr-defined]
        people._search = Search(people._settings)  # type: ignore[attr-defined]


@pytest.fixture
def scene(make_world: MakeWorld, directory: Slapd) -> Scene:
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
    return Scene(world, directory, world.an_organization(primary_domain=DOMAIN))


@pytest.mark.parametrize("way", ["tls", "start_tls"])
def test_somebody_is_found_and_let_in_over_tls_alone(directory: Slapd, way: str) -> None:
    name = a_name()
    directory.person(name, mail="ada@people.example")
    search = Search(settings_of(directory, servers=(getattr(directory, way),)))
    entry = search.find(name, PASSWORD)
    assert entry is not None
    assert (entry.attributes["sn"], entry.attributes["mail"]) == ("Lovelace", "ada@people.example")
    assert search.find(name, "wrong") is None
    assert search.find("nobody", PASSWORD) is None


@pytest.mark.parametrize("way", ["tls", "start_tls"])
def test_a_certificate_of_strangers_or_for_another_name_is_not_believed(directory: Slapd, way: str) -> None:
    name = a_name()
    directory.person(name)
    server = getattr(directory, way)
    with pytest.raises(Absent):
        Search(settings_of(directory, servers=(server,), ca_file=None)).find(name, PASSWORD)
    # The same server by a name that is not in its certificate.
    with pytest.raises(Absent):
        Search(settings_of(directory, servers=(server.replace("localhost", "127.1"),))).find(name, PASSWORD)
    assert Search(settings_of(directory, servers=(server,))).find(name, PASSWORD) is not None


@pytest.mark.parametrize("password", ["", "\0", "a\0b", "x" * 501])
def test_an_empty_password_reaches_no_server(directory: Slapd, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_name()
    directory.person(name)
    search = Search(settings_of(directory))
    monkeypatch.setattr(search, "_ask", lambda *_: pytest.fail("the directory was asked"))
    assert search.find(name, password) is None


@pytest.mark.parametrize("login", ["*", "ada*", "a)(uid=*", "*)(objectClass=*", "\\2a", "a\0b", "("])
def test_no_name_is_a_filter(directory: Slapd, login: str) -> None:
    directory.person(a_name())
    assert Search(settings_of(directory)).find(login, PASSWORD) is None


def test_of_two_with_one_name_nobody_is_let_in(directory: Slapd) -> None:
    name = a_name()
    directory.person(name)
    directory.person(f"{name}x", cn=name)
    assert Search(settings_of(directory, filter="(|(uid={login})(cn={login}))")).find(name, PASSWORD) is None


def test_servers_are_asked_in_order_and_the_next_one_if_one_is_away(directory: Slapd) -> None:
    name = a_name()
    directory.person(name)
    gone = loopback_socket()
    port = gone.getsockname()[1]
    gone.close()
    search = Search(settings_of(directory, servers=(f"ldaps://localhost:{port}", directory.tls)))
    assert search.find(name, PASSWORD) is not None
    with pytest.raises(Absent):
        Search(settings_of(directory, servers=(f"ldaps://localhost:{port}",))).find(name, PASSWORD)


def test_a_server_that_never_answers_is_given_up(directory: Slapd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("identity.plugins.ldap.search.SECONDS", 1)
    with loopback_socket() as silent:
        silent.listen()
        port = silent.getsockname()[1]
        for way in ("ldap", "ldaps"):
            with pytest.raises(Absent):
                Search(settings_of(directory, servers=(f"{way}://localhost:{port}",))).find("ada", PASSWORD)


def test_one_network_that_asks_all_the_time_leaves_the_directory_to_others(directory: Slapd) -> None:
    search = Search(settings_of(directory))
    with asked_from("192.0.2.0/24"):
        for _ in range(4):
            search._places.take()
        with pytest.raises(Absent):
            search.find("ada", PASSWORD)
    with asked_from("198.51.100.0/24"):
        search.find("ada", PASSWORD)


def test_a_service_account_that_is_not_let_in_is_no_answer(directory: Slapd, tmp_path: Path) -> None:
    wrong = tmp_path / "password"
    wrong.write_text("wrong")
    wrong.chmod(0o600)
    with pytest.raises(Absent):
        Search(settings_of(directory, password_file=wrong)).find("anybody", PASSWORD)


def test_settings_that_cannot_be_are_refused(directory: Slapd, tmp_path: Path) -> None:
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
        with pytest.raises(BadSetting) as refused:
            settings_of(directory, **changed)
        assert "secret" not in str(refused.value)


def test_whoever_signs_in_for_the_first_time_gets_an_account_and_is_not_asked_for_another_password(
    scene: Scene,
) -> None:
    name = a_name()
    scene.directory.person(name, mail=f"{name}@people.example", displayName="Ada L.")
    browser = Browser(scene.world)
    scene.sign_in(name, browser=browser)
    assert browser.path.startswith("/account"), browser.page
    person = scene.person(name)
    assert person is not None
    assert (person.profile.name, person.profile.email) == ("Ada L.", f"{name}@people.example")
    assert not person.profile.email_verified


def test_a_wrong_password_an_unknown_name_and_a_name_of_the_service_look_alike(scene: Scene) -> None:
    name, local = a_name(), scene.world.a_person(scene.organization)
    scene.directory.person(name)
    give_password(scene.world, local)
    pages = [scene.sign_in(one, "wrong") for one in (name, "nobody", local.user_name)]
    assert {page.status_int for page in pages} == {422}
    assert len({page.html.select_one(".field__error, .notice").text for page in pages}) == 1
    assert scene.person(name) is None


def test_attempts_at_names_of_the_directory_are_counted_as_all_are(scene: Scene) -> None:
    name = a_name()
    scene.directory.person(name)
    statuses = [scene.sign_in(name, "wrong").status_int for _ in range(7)]
    assert statuses[:5] == [422] * 5
    assert 429 in statuses[5:]
    assert scene.sign_in(name).status_int == 429, "the right password was looked at"


def test_people_of_the_directory_have_its_password_alone(scene: Scene) -> None:
    name = a_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    give_password(scene.world, person, "another password of theirs")
    assert scene.sign_in(name, "another password of theirs").status_int == 422
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nreplace: userPassword\nuserPassword: changed meanwhile\n")
    assert scene.sign_in(name).status_int == 422
    browser = Browser(scene.world)
    scene.sign_in(name, "changed meanwhile", browser)
    assert browser.session_cookies


def test_another_entry_of_the_same_name_is_somebody_else(scene: Scene) -> None:
    name = a_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    scene.directory.remove(dn)
    scene.directory.person(name)
    assert scene.sign_in(name).status_int == 422


def test_a_name_that_somebody_has_here_already_is_not_taken_over(scene: Scene) -> None:
    local = scene.world.a_person(scene.organization)
    give_password(scene.world, local, "the password kept here")
    scene.directory.person(local.user_name)
    assert scene.sign_in(local.user_name).status_int == 422
    browser = Browser(scene.world)
    scene.sign_in(local.user_name, "the password kept here", browser)
    assert browser.session_cookies


def test_an_entry_is_not_let_in_as_whoever_has_its_name_here_by_now(scene: Scene) -> None:
    name = a_name()
    scene.directory.person(name)
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    scene.world.operator.users.change(person.id, ChangeHumanUser(user_name=f"{name}-before"))
    other = scene.world.a_person(scene.organization)
    scene.world.operator.users.change(other.id, ChangeHumanUser(user_name=name))
    browser = Browser(scene.world)
    assert scene.sign_in(name, browser=browser).status_int == 422
    assert not browser.session_cookies


def test_names_are_those_of_now(scene: Scene) -> None:
    name = a_name()
    dn = scene.directory.person(name)
    scene.sign_in(name)
    scene.directory.modify(f"dn: {dn}\nchangetype: modify\nreplace: sn\nsn: King\n")
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    assert person.profile.family_name == "King"


def test_groups_give_roles_and_take_them(scene: Scene) -> None:
    name = a_name()
    dn = scene.directory.person(name)
    group = scene.directory.group("helpdesk people", dn)
    scene.sign_in(name)
    assert roles_of(scene, name) == {"ORG_USER_MANAGER"}
    scene.directory.remove(group)
    scene.sign_in(name)
    assert roles_of(scene, name) == set()


def roles_of(scene: Scene, name: str) -> set[str]:
    person = scene.person(name)
    assert person is not None
    key = organization_resource(scene.organization.id).key
    with scene.world.reading() as services:
        held = services.storage.managers.of_user(person.id)
    return {role for one in held if one.resource == key for role in one.roles}


def test_groups_give_roles_of_projects(scene: Scene) -> None:
    name = a_name()
    project = scene.world.a_project(scene.organization, roles=("editor", "reader"))
    dn = scene.directory.person(name)
    group = scene.directory.group("editors", dn)
    scene.change(roles=(f"{project.id}/editor={group}", f"gone/x={group}"))
    scene.sign_in(name)
    person = scene.person(name)
    assert person is not None
    with scene.world.reading() as services:
        [grant] = services.storage.user_grants.page("user_id", person.id)
    assert grant.roles == {"editor"}
    scene.directory.remove(group)
    scene.sign_in(name)
    with scene.world.reading() as services:
        assert not list(services.storage.user_grants.page("user_id", person.id))


def test_a_directory_that_is_away_holds_up_nobody_else_and_counts_nothing(scene: Scene) -> None:
    local, name = scene.world.a_person(scene.organization), a_name()
    give_password(scene.world, local, "the password kept here")
    scene.directory.person(name)
    scene.sign_in(name)
    scene.change(servers=("ldaps://localhost:1",))
    for _ in range(7):
        assert scene.sign_in(name).status_int == 503
        assert scene.sign_in("nobody").status_int == 503
    browser = Browser(scene.world)
    scene.sign_in(local.user_name, "the password kept here", browser)
    assert browser.session_cookies
    scene.change(servers=(scene.directory.tls,))
    browser = Browser(scene.world)
    scene.sign_in(name, browser=browser)
    assert browser.session_cookies


def test_without_the_setting_nobody_gets_an_account(scene: Scene) -> None:
    name = a_name()
    scene.directory.person(name)
    scene.change(create_accounts=False)
    assert scene.sign_in(name).status_int == 422
    assert scene.person(name) is None
