"""The search page: hits by kind, pages and settings, and only what the caller may read."""

from typing import Any
from urllib.parse import urlencode

import pytest

from identity.domain.audit import AuditFilter
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

PATH = "/console/search"


def search(browser: Browser, query: str) -> Any:
    return browser.open(f"{PATH}?{urlencode({'q': query})}")


def make_person(world: World, organization: Organization, user_name: str, given_name: str, family_name: str) -> str:
    command = CreateHumanUser(user_name=user_name, given_name=given_name, family_name=family_name)
    with world.identity.transaction() as services:
        return services.users.create(organization.id, command).id


def hits(browser: Browser, query: str) -> dict[str, list[str]]:
    """Names by the heading of their group."""
    page = search(browser, query)
    return {
        section.h2.get_text(): [name.get_text() for name in section.select(".hit__name")]
        for section in page.html.select("#search-results section")
    }


def test_search_finds_people_and_marks_the_words(world: World, owner: Browser, organization: Organization) -> None:
    user_id = make_person(world, organization, "quendel7", "Annette", "Müller")
    assert hits(owner, "muel")["Users"] == ["Annette Müller"]
    page = search(owner, "müll")
    link = page.html.select_one("#search-results a")
    assert link["href"] == f"/console/users/{user_id}"
    assert [mark.get_text() for mark in link.select("mark")] == ["Müller"]
    assert f"quendel7@{organization.primary_domain}" in link.get_text()


def test_search_finds_groups_of_the_organization(world: World, owner: Browser, organization: Organization) -> None:
    with world.identity.transaction() as services:
        for owner_id in (organization.id, world.make_organization().id):
            services.groups.add(owner_id, AddGroup(name="Quernmühle"), principal=Principal.OPERATOR)
    assert hits(owner, "quern")["Groups"] == ["Quernmühle"]
    assert owner.click("Quernmühle").html.h1.get_text(strip=True).startswith("Quernmühle")


def test_search_covers_all_organizations_only_for_the_instance(
    world: World, owner: Browser, instance_owner: Browser
) -> None:
    make_person(world, world.make_organization(), "quendel7", "Annette", "Quast")
    assert "Users" not in hits(owner, "quast")
    assert hits(instance_owner, "quast")["Users"] == ["Annette Quast"]


def test_search_shows_five_of_a_kind_and_links_to_more(
    world: World, owner: Browser, organization: Organization
) -> None:
    for number in range(7):
        make_person(world, organization, f"quendel{number}", "Annette", f"Quast{number}")
    page = search(owner, "quast")
    [users] = [section for section in page.html.select("#search-results section") if section.h2.get_text() == "Users"]
    assert len(users.select(".hit__name")) == 5
    more = owner.open(users.select_one(".hit--more")["href"])
    assert len(more.html.select("#search-results .hit__name")) == 7


def test_search_finds_pages_and_settings_in_the_readers_language(owner: Browser, sign_in: SignIn) -> None:
    found = hits(owner, "sign-in pol")
    assert "Sign-in policy" in found["Pages"]
    assert hits(owner, "minimum len")["Settings"] == ["Minimum length"]
    german = sign_in()
    german.languages = "de"
    assert hits(german, "benutz")["Seiten"]
    assert "Pages" not in hits(owner, "benutz")


def test_search_lists_no_setting_that_the_caller_may_not_open(sign_in: SignIn) -> None:
    viewer = sign_in("ORG_OWNER_VIEWER")
    assert "Settings" not in hits(viewer, "accent colour")
    assert hits(sign_in(), "accent colour")["Settings"]


def test_search_finds_what_a_request_id_recorded(world: World, owner: Browser, organization: Organization) -> None:
    owner.open(f"/console/organizations/{organization.id}/edit")
    owner.submit({"name": "Renamed"})
    with world.identity.read_session() as services:
        [event] = services.audit_trail.page(
            AuditFilter(event="organization.changed", organization_id=organization.id)
        ).items
    request_id = str(event.actor.request_id)
    assert hits(owner, request_id)["Audit events"] == ["Organization changed"]
    stranger = Browser(world)
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_USER_MANAGER", resource=Resource.of_organization(organization.id))
    stranger.start_session(person)
    assert "Audit events" not in hits(stranger, request_id)


@pytest.mark.parametrize("query", ["", "   ", "zzzzzz", "%", "\x00", "\u202e", "<script>", "'\"", "@", "0" * 36])
def test_search_answers_any_text(owner: Browser, query: str) -> None:
    assert search(owner, query).status_int == 200


def test_search_refuses_texts_that_are_too_long(owner: Browser) -> None:
    page = search(owner, "a" * 201)
    assert page.status_int == 422
    assert "Use at most 200 characters." in page
