"""Contract of the search over all organizations."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from identity.domain.search import PrefixQuery
from identity.domain.users import HumanUser, Profile
from identity.storage.contract import factories as make
from identity.storage.contract.harness import ContractBase, StorageHarness, remove
from identity.storage.stores.search import SearchedKind, SearchScope

_EVERYWHERE = SearchScope()
_KINDS: dict[SearchedKind, tuple[str, Callable[..., Any]]] = {
    SearchedKind.USER: (
        "users",
        lambda on, name: make.human_user(
            on.organization, user_name=name.replace(" ", ""), profile=Profile(display_name=name)
        ),
    ),
    SearchedKind.SERVICE_USER: ("users", lambda on, name: make.service_user(on.organization, display_name=name)),
    SearchedKind.APPLICATION: ("applications", lambda on, name: make.application(on.project, name=name)),
    SearchedKind.PROJECT: ("projects", lambda on, name: make.project(on.organization, name=name)),
    SearchedKind.ORGANIZATION: ("organizations", lambda on, name: make.organization(name=name)),
    SearchedKind.GROUP: ("groups", lambda on, name: make.group(on.organization, name=name)),
}


def find(on: StorageHarness, kind: SearchedKind, query: str, scope: SearchScope = _EVERYWHERE, limit: int = 9) -> Any:
    return on.read.search.find_ids(kind, PrefixQuery.parse(query), scope, limit)


def person(on: StorageHarness, user_name: str, **profile: Any) -> HumanUser:
    return make.human_user(on.organization, user_name=user_name, profile=Profile(**profile))


class SearchContract(ContractBase):
    """Entities are found by the starts of words of their names."""

    @pytest.mark.parametrize("kind", SearchedKind)
    def test_search_finds_each_kind_by_the_start_of_any_word(self, on: StorageHarness, kind: SearchedKind) -> None:
        entity = _KINDS[kind][1](on, "Frachtportal Qualität")
        on.store(entity)
        for query in ("fracht", "QUALITAT", "qual frac", "frachtportal qualität", " fracht "):
            assert find(on, kind, query) == (entity.id,), query
        for query in ("portal", "fracht zug", "", " ", "%", "fracht_", "\x00", "\ud800"):
            assert find(on, kind, query) == (), query
        assert [other for other in SearchedKind if find(on, other, "fracht")] == [kind]

    @pytest.mark.parametrize("kind", SearchedKind)
    def test_search_forgets_names_that_changed_and_what_was_deleted(
        self, on: StorageHarness, kind: SearchedKind
    ) -> None:
        store, build = _KINDS[kind]
        entity = build(on, "Frachtportal")
        on.store(entity)
        renamed = replace(build(on, "Hafenportal"), id=entity.id, version=2)
        getattr(on.write, store).update(renamed)
        assert find(on, kind, "fracht") == ()
        assert find(on, kind, "hafen") == (entity.id,)
        remove(on.write, renamed)
        assert find(on, kind, "hafen") == ()

    def test_search_forgets_everything_of_a_deleted_organization(self, on: StorageHarness) -> None:
        organization = make.organization(name="Quelle")
        project = make.project(organization, name="Quelle")
        on.store(
            organization,
            project,
            make.application(project, name="Quelle"),
            make.human_user(organization, user_name="quelle"),
            make.service_user(organization, user_name="quelle2"),
            make.group(organization, name="Quelle"),
        )
        assert all(find(on, kind, "quelle") for kind in SearchedKind)
        on.write.organizations.delete(organization.id)
        assert not any(find(on, kind, "quelle") for kind in SearchedKind)

    def test_search_finds_people_by_any_of_their_names(self, on: StorageHarness) -> None:
        anna = person(on, "quendel7", display_name="Annette Müller-Ostwald", email="ann.Quist@acme.example")
        on.store(anna)
        for query in ("quendel", "annett", "muller", "mueller", "MÜLLER", "ostw", "quist", "ann.qui", "muller-o"):
            assert find(on, SearchedKind.USER, query) == (anna.id,), query
        assert find(on, SearchedKind.USER, "ann.quist@acme.example") == (anna.id,)
        assert find(on, SearchedKind.USER, "acme") == (), "the host of an address names no person"

    def test_search_finds_umlauts_that_were_typed_as_two_letters(self, on: StorageHarness) -> None:
        wide = person(on, "quendel1", display_name="Xaver Mueller")
        narrow = person(on, "quendel2", display_name="Xaver Müller")
        on.store(wide, narrow)
        for query in ("xav mueller", "xav müller"):
            assert set(find(on, SearchedKind.USER, query)) == {wide.id, narrow.id}

    def test_search_finds_users_that_were_added_together(self, on: StorageHarness) -> None:
        people = [person(on, f"quendel{number}") for number in range(3)]
        assert on.organization.id
        on.write.users.add_many(people)
        assert find(on, SearchedKind.USER, "quendel") == tuple(item.id for item in people)

    def test_search_orders_by_the_matched_word_and_stops_at_the_limit(self, on: StorageHarness) -> None:
        names = ["Quist", "Quast", "Quern Quast"]
        people = [person(on, f"u{number}", display_name=name) for number, name in enumerate(names)]
        on.store(*people)
        quast = sorted(people[at].id for at in (1, 2))
        assert find(on, SearchedKind.USER, "qu") == (*quast, people[0].id)
        assert find(on, SearchedKind.USER, "qu", limit=1) == (quast[0],)

    def test_search_covers_only_the_organizations_of_its_scope(self, on: StorageHarness) -> None:
        local, foreign = (
            make.project(on.organization, name="Quelle"),
            make.project(on.other_organization, name="Quelle"),
        )
        applications = [make.application(project, name="Quelle") for project in (local, foreign)]
        people = [make.human_user(owner, user_name="quelle") for owner in (on.organization, on.other_organization)]
        on.store(local, foreign, *applications, *people)
        scope = SearchScope(frozenset({on.other_organization.id}))
        assert find(on, SearchedKind.PROJECT, "quelle", scope) == (foreign.id,)
        assert find(on, SearchedKind.APPLICATION, "quelle", scope) == (applications[1].id,)
        assert find(on, SearchedKind.USER, "quelle", scope) == (people[1].id,)
        for kind in SearchedKind:
            assert find(on, kind, "quelle", SearchScope(frozenset())) == ()

    def test_search_covers_single_projects_besides(self, on: StorageHarness) -> None:
        local, foreign = (
            make.project(on.organization, name="Quelle"),
            make.project(on.other_organization, name="Quelle"),
        )
        applications = [make.application(project, name="Quelle") for project in (local, foreign)]
        on.store(local, foreign, *applications)
        single = SearchScope(frozenset(), frozenset({local.id}))
        assert find(on, SearchedKind.PROJECT, "quelle", single) == (local.id,)
        assert find(on, SearchedKind.APPLICATION, "quelle", single) == (applications[0].id,)
        both = SearchScope(frozenset({on.other_organization.id}), frozenset({local.id}))
        assert set(find(on, SearchedKind.APPLICATION, "quelle", both)) == {item.id for item in applications}

    @pytest.mark.parametrize("kind", SearchedKind)
    def test_search_finds_each_kind_by_the_start_of_its_id(self, on: StorageHarness, kind: SearchedKind) -> None:
        entity = _KINDS[kind][1](on, "Frachtportal Qualität")
        on.store(entity)

        def find_by_start(start: str, scope: SearchScope = _EVERYWHERE) -> tuple[str, ...]:
            return on.read.search.find_ids_by_start(kind, start, scope, 5)

        assert find_by_start(entity.id) == (entity.id,)
        assert find_by_start(entity.id[:-1]) == (entity.id,)
        assert find_by_start(f"{entity.id}0") == ()
        assert find_by_start(entity.id, SearchScope(frozenset({on.other_organization.id}))) == ()
