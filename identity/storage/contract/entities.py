"""Contract of every entity store."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from identity.domain.applications import ApplicationType, ConsentRule
from identity.domain.upstream_providers import UpstreamAuthentication
from identity.domain.users import Address, EmailVerifier, Profile, TokenFormat
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import DuplicateValue, RowNotFound, StaleRow

ZOE = Profile(
    given_name="Zoë",
    family_name="Müller-Łukasz",
    middle_name="Q.",
    nickname="zo",
    display_name="Zoë 🚀 Müller",
    profile="https://zoe.example",
    picture="https://zoe.example/me.png",
    website="https://zoe.example/blog",
    gender="female",
    birthdate="1999-12-31",
    zoneinfo="Europe/Zürich",
    locale="de-CH",
    email="Zoe@Acme.Example",
    email_verified=True,
    phone="+41 44 000 00 00",
    phone_verified=True,
    address=Address(
        formatted="Weg 1\n8000 Zürich",
        street_address="Weg 1",
        locality="Zürich",
        region="ZH",
        postal_code="8000",
        country="Schweiz",
    ),
)
APPLICATION: dict[str, Any] = {
    "name": "Büro 株",
    "type": ApplicationType.NATIVE,
    "authentication_method": "none",
    "response_types": frozenset({"code", "id_token", "id_token token"}),
    "grant_types": frozenset({"a_grant", "urn:example:grant-type:other"}),
    "redirect_uris": ("https://b.example/cb?x=1&y=ü", "http://127.0.0.1/cb", "com.example.app:/cb"),
    "post_logout_redirect_uris": ("https://b.example/bye", "https://a.example/bye"),
    "access_token_type": TokenFormat.JWT,
    "access_token_lifetime": timedelta(days=36_500),
    "id_token_lifetime": SECOND,
    "id_token_userinfo_assertion": True,
    "assert_roles_in_access_token": True,
    "assert_roles_in_id_token": True,
    "consent": ConsentRule.NEVER,
    "may_manage": True,
    "development": True,
    "active": False,
}
UPSTREAM: dict[str, Any] = {
    "name": "Zürich 株",
    "client_id": "anderer client",
    "issuer": "https://zürich.example/realm",
    "authentication": UpstreamAuthentication.PRIVATE_KEY_JWT,
    "team_id": "TEAM",
    "key_id": "KEY",
    "scopes": "openid email",
    "claims": ("family_name = sn", "given_name ="),
    "create_accounts": True,
    "trust_email": True,
    "by_domain": True,
    "trust_methods": True,
    "sign_out_there": True,
    "everywhere": True,
    "secret": bytes(range(256)),
    "secret_changed_at": NOW,
    "active": False,
}
ROLES = frozenset({"löwe", "株", "a b"})


@dataclass(frozen=True)
class EntityCase:
    """A kind of entity: how to make one with stored parents and some without, and values for each field."""

    store: str
    make: Callable[..., Any]
    orphans: tuple[Callable[[StorageHarness], Any], ...]
    fields: dict[str, Any]


def make_grantee(on: StorageHarness) -> Any:
    """A new person of ``organization``, stored."""
    return on.store_value(make.human_user(on.organization))


ENTITIES = {
    "organization": EntityCase(
        "organizations",
        lambda on, **fields: make.organization(**fields),
        (),
        {"name": "Æther 株式会社", "primary_domain": "aether.example", "registration": False, "active": False},
    ),
    "project": EntityCase(
        "projects",
        lambda on, **fields: make.project(on.organization, **fields),
        (lambda on: make.project(),),
        {"name": "Räket 🚀", "assert_roles": True, "check_roles": True, "active": False},
    ),
    "application": EntityCase(
        "applications",
        lambda on, **fields: make.application(on.project, **fields),
        (lambda on: make.application(),),
        APPLICATION,
    ),
    "person": EntityCase(
        "users",
        lambda on, **fields: make.human_user(on.organization, **fields),
        (lambda on: make.human_user(),),
        {
            "user_name": "Zoë.Müller",
            "profile": ZOE,
            "email_verified_by": EmailVerifier.OWN_LINK,
            "registered": True,
            "named_at": NOW,
            "active": False,
        },
    ),
    "service user": EntityCase(
        "users",
        lambda on, **fields: make.service_user(on.organization, **fields),
        (lambda on: make.service_user(),),
        {
            "user_name": "Räuber",
            "display_name": "Röbi 株",
            "description": "Fetches\nwhat there is",
            "access_token_type": TokenFormat.JWT,
            "active": False,
        },
    ),
    "project grant": EntityCase(
        "project_grants",
        lambda on, **fields: make.project_grant(on.project, on.store_value(make.organization()), **fields),
        (lambda on: make.project_grant(None, on.organization), lambda on: make.project_grant(on.project, None)),
        {"roles": ROLES, "accepted": True, "active": False},
    ),
    "user grant": EntityCase(
        "user_grants",
        lambda on, **fields: make.user_grant(make_grantee(on), on.project, **fields),
        (
            lambda on: make.user_grant(None, on.project),
            lambda on: make.user_grant(on.human_user, None, organization_id=on.organization.id),
            lambda on: make.user_grant(on.human_user, on.project, project_grant_id=make_id()),
        ),
        {"roles": ROLES, "active": False},
    ),
    "manager": EntityCase(
        "managers",
        lambda on, **fields: make.manager(make_grantee(on), **fields),
        (lambda on: make.manager(),),
        {"roles": frozenset({"A_ROLE", "B_ROLE"})},
    ),
    "upstream provider": EntityCase(
        "upstream_providers",
        lambda on, **fields: make.upstream_provider(on.organization, **fields),
        (lambda on: make.upstream_provider(),),
        UPSTREAM,
    ),
}


class EntityContract(ContractBase):
    """An entity is found by id, updated by its next version, and deleted once."""

    @pytest.fixture(params=ENTITIES)
    def entity(self, request: pytest.FixtureRequest) -> EntityCase:
        return ENTITIES[request.param]

    def test_entities_come_back_as_they_were_added(self, on: StorageHarness, entity: EntityCase) -> None:
        plain, full = on.store_value(entity.make(on)), on.store_value(entity.make(on, **entity.fields, version=7))
        store = getattr(on.read, entity.store)
        assert store.find(plain.id) == plain
        assert store.find(full.id) == full
        assert store.find(full.id).created_at.utcoffset() == timedelta(0)
        assert store.find(make_id()) is None

    def test_entities_are_found_together(self, on: StorageHarness, entity: EntityCase) -> None:
        first, second = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        store = getattr(on.read, entity.store)
        assert store.find_many([first.id, make_id(), second.id]) == {first.id: first, second.id: second}
        assert store.find_many({first.id}) == {first.id: first}
        assert store.find_many(()) == {}

    def test_entities_of_a_taken_id_are_refused_and_the_transaction_goes_on(
        self, on: StorageHarness, entity: EntityCase
    ) -> None:
        first, other = on.store_value(entity.make(on)), entity.make(on)
        twin = replace(other, id=first.id)
        with on.transaction() as storage:
            with pytest.raises(DuplicateValue):
                getattr(storage, entity.store).add(twin)
            getattr(storage, entity.store).add(other)
        assert getattr(on.read, entity.store).find_many([first.id, other.id]) == {first.id: first, other.id: other}

    def test_entities_need_what_they_belong_to(self, on: StorageHarness, entity: EntityCase) -> None:
        orphans = [orphan(on) for orphan in entity.orphans]
        for orphan in orphans:
            with on.transaction() as storage, pytest.raises(RowNotFound):
                getattr(storage, entity.store).add(orphan)
        assert getattr(on.read, entity.store).find_many([orphan.id for orphan in orphans]) == {}

    def test_entities_are_replaced_by_their_next_version_alone(self, on: StorageHarness, entity: EntityCase) -> None:
        first, other = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        unknown = entity.make(on, version=2)
        changed = replace(first, **entity.fields, changed_at=NOW + SECOND, version=2)
        with on.transaction() as storage:
            for version in (0, 1, 3):
                with pytest.raises(StaleRow):
                    getattr(storage, entity.store).update(replace(changed, version=version))
            with pytest.raises(RowNotFound):
                getattr(storage, entity.store).update(unknown)
        store = getattr(on.read, entity.store)
        assert store.find(first.id) == first
        getattr(on.write, entity.store).update(changed)
        assert store.find_many([first.id, other.id, unknown.id]) == {first.id: changed, other.id: other}

    def test_entities_are_removed_once(self, on: StorageHarness, entity: EntityCase) -> None:
        deleted, remaining = on.store_value(entity.make(on)), on.store_value(entity.make(on))
        with on.transaction() as storage:
            getattr(storage, entity.store).delete(deleted.id)
            for unknown in (deleted.id, make_id()):
                with pytest.raises(RowNotFound):
                    getattr(storage, entity.store).delete(unknown)
        assert getattr(on.read, entity.store).find(deleted.id) is None
        assert getattr(on.read, entity.store).find_many([deleted.id, remaining.id]) == {remaining.id: remaining}
