"""What is demanded of the application store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.applications import Application, ApplicationType, Client, ConsentRule
from identity.domain.users import TokenFormat
from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import (
    NOW,
    a_client_secret,
    a_code,
    a_family,
    a_project,
    a_refresh_token,
    an_access_token,
    an_application,
    an_id,
)
from identity.storage.contract.paging import (
    Fetch,
    check_active,
    check_insertion,
    check_order,
    check_query,
    check_sorts,
    check_totals,
    fetching,
)
from identity.storage.errors import Duplicate, Missing, Stale
from identity.storage.stores.applications import ORDERS


class ApplicationContract(ContractBase):
    """An application is found with all that decides whether it may act; secrets, codes and tokens go with it."""

    @pytest.fixture
    def applications(self, on: On) -> Fetch[Application]:
        """The list of the applications of ``project``."""
        project = on.project
        return fetching(on.reading, lambda storage, request: storage.applications.page(project.id, request))

    def test_applications_find_returns_what_was_added(self, on: On) -> None:
        application = an_application(
            on.project,
            name="Büro 株",
            type=ApplicationType.NATIVE,
            authentication_method="none",
            response_types=frozenset({"code", "id_token", "id_token token"}),
            grant_types=frozenset({"authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"}),
            redirect_uris=("https://b.example/cb?x=1&y=ü", "http://127.0.0.1/cb", "com.example.app:/cb"),
            post_logout_redirect_uris=("https://b.example/bye", "https://a.example/bye"),
            access_token_type=TokenFormat.JWT,
            access_token_lifetime=timedelta(days=36_500),
            id_token_lifetime=timedelta(seconds=1),
            id_token_userinfo_assertion=True,
            assert_roles_in_access_token=True,
            assert_roles_in_id_token=True,
            consent=ConsentRule.NEVER,
            may_manage=True,
            development=True,
            active=False,
            version=3,
        )
        on.save(application)
        with on.reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_find_of_an_unknown_id(self, on: On) -> None:
        application = on.application
        with on.reading() as storage:
            assert storage.applications.find(an_id()) is None
            assert storage.applications.find_client(an_id()) is None
            assert storage.applications.find(application.id.upper()) is None, "client ids are compared to the letter"

    def test_applications_a_taken_id_is_refused(self, on: On) -> None:
        application = on.application
        other = a_project(on.organization)
        on.save(other)
        with pytest.raises(Duplicate), on.writing() as storage:
            storage.applications.add(an_application(other, id=application.id))
        with on.reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_an_application_needs_its_project(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.add(an_application())

    def test_applications_find_client_returns_everything_above(self, on: On) -> None:
        application, project, organization = on.application, on.project, on.organization
        with on.reading() as storage:
            assert storage.applications.find_client(application.id) == Client(application, (), project, organization)
        older, newer = a_client_secret(created_at=NOW - timedelta(days=1)), a_client_secret(created_at=NOW)
        with on.writing() as storage:
            storage.applications.add_secret(application.id, newer)
            storage.applications.add_secret(application.id, older)
        with on.reading() as storage:
            client = storage.applications.find_client(application.id)
        assert client == Client(application, (older, newer), project, organization)

    def test_applications_find_client_shows_what_is_deactivated(self, on: On) -> None:
        closed = (
            replace(on.application, active=False, version=2),
            replace(on.project, active=False, version=2),
            replace(on.organization, active=False, version=2),
        )
        with on.writing() as storage:
            storage.applications.update(closed[0])
            storage.projects.update(closed[1])
            storage.organizations.update(closed[2])
        with on.reading() as storage:
            client = storage.applications.find_client(on.application.id)
        assert client is not None
        assert (client.application, client.project, client.organization) == closed

    def test_applications_origins_are_those_of_redirect_uris(self, on: On) -> None:
        uris = (
            "https://Shop.Example/callback?x=1",
            "https://shop.example:443/other",
            "http://localhost:8080/callback",
            "http://[::1]/callback",
            "com.example.app:/callback",
        )
        bye = ("https://bye.example/",)
        on.save(an_application(on.project, redirect_uris=uris, post_logout_redirect_uris=bye))
        with on.reading() as storage:
            for origin in ("https://shop.example", "http://localhost:8080", "http://[::1]"):
                assert storage.applications.is_origin(origin), origin
            for stranger in (
                "http://shop.example",
                "https://shop.example:8443",
                "https://shop.example/",
                "https://shop.exampl",
                "https://bye.example",
                "http://localhost",
                "com.example.app",
                "null",
                "",
            ):
                assert not storage.applications.is_origin(stranger), stranger

    def test_applications_origins_follow_the_redirect_uris(self, on: On) -> None:
        moving, other = (
            an_application(on.project, redirect_uris=uris)
            for uris in (("https://old.example/a", "https://both.example/a"), ("https://both.example/b",))
        )
        on.save(moving, other)
        with on.writing() as storage:
            storage.applications.update(replace(moving, redirect_uris=("https://new.example/a",), version=2))
        with on.reading() as storage:
            assert storage.applications.is_origin("https://new.example")
            assert storage.applications.is_origin("https://both.example"), "another application has it"
            assert not storage.applications.is_origin("https://old.example")
        with on.writing() as storage:
            storage.applications.remove(other.id)
        with on.reading() as storage:
            assert not storage.applications.is_origin("https://both.example")

    def test_applications_a_deactivated_application_has_no_origin(self, on: On) -> None:
        closed = replace(on.application, active=False, version=2)
        with on.reading() as storage:
            assert storage.applications.is_origin("https://shop.example")
        with on.writing() as storage:
            storage.applications.update(closed)
        with on.reading() as storage:
            assert not storage.applications.is_origin("https://shop.example")
        with on.writing() as storage:
            storage.applications.update(replace(closed, active=True, version=3))
        with on.reading() as storage:
            assert storage.applications.is_origin("https://shop.example")

    def test_applications_a_stale_update_moves_no_origin(self, on: On) -> None:
        application = on.application
        with on.writing() as storage, pytest.raises(Stale):
            storage.applications.update(replace(application, redirect_uris=("https://thief.example/",), version=1))
        with on.reading() as storage:
            assert storage.applications.is_origin("https://shop.example")
            assert not storage.applications.is_origin("https://thief.example")

    def test_applications_update_replaces_the_value_and_keeps_the_secrets(self, on: On) -> None:
        application = on.application
        secret = a_client_secret()
        with on.writing() as storage:
            storage.applications.add_secret(application.id, secret)
        changed = replace(
            application,
            name="Store",
            type=ApplicationType.API,
            authentication_method="client_secret_post",
            response_types=frozenset(),
            grant_types=frozenset({"client_credentials"}),
            redirect_uris=(),
            post_logout_redirect_uris=("https://shop.example/bye",),
            access_token_type=TokenFormat.JWT,
            access_token_lifetime=timedelta(minutes=5),
            id_token_lifetime=timedelta(minutes=6),
            active=False,
            changed_at=application.changed_at + timedelta(seconds=1),
            version=2,
        )
        with on.writing() as storage:
            storage.applications.update(changed)
        with on.reading() as storage:
            assert storage.applications.find(application.id) == changed
            assert storage.applications.secrets(application.id) == (secret,)

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_applications_update_of_another_version_is_stale(self, on: On, version: int) -> None:
        application = on.application
        with pytest.raises(Stale), on.writing() as storage:
            storage.applications.update(replace(application, name="Lost", version=version))
        with on.reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_update_of_an_unknown_application(self, on: On) -> None:
        project = on.project
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.update(an_application(project, version=2))

    def test_applications_remove_of_an_unknown_application(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.remove(an_id())

    def test_applications_remove_takes_secrets_codes_and_tokens_along(self, on: On) -> None:
        application = on.application
        family = a_family(on.human_user, application)
        code, refresh = a_code(family), a_refresh_token(family)
        token, own_token = an_access_token(on.human_user, application, family), an_access_token(None, application)
        on.save(family, code, refresh, token, own_token)
        with on.writing() as storage:
            storage.applications.add_secret(application.id, a_client_secret())
        with on.writing() as storage:
            storage.applications.remove(application.id)
        with on.reading() as storage:
            assert storage.applications.find(application.id) is None
            assert storage.applications.find_client(application.id) is None
            assert storage.applications.secrets(application.id) == ()
            assert storage.tokens.find_family(family.id) is None
            assert storage.tokens.find_access(token.digest) is None
            assert storage.tokens.find_access(own_token.digest) is None
            assert storage.tokens.find_refresh(refresh.digest) is None
        with pytest.raises(Missing), on.writing() as storage:
            storage.tokens.redeem_code(code.digest, client_id=application.id, at=code.issued_at)

    def test_applications_remove_leaves_other_applications_alone(self, on: On) -> None:
        application = on.application
        other = an_application(on.project)
        family = a_family(on.human_user, other)
        token, secret = an_access_token(on.human_user, other, family), a_client_secret()
        on.save(other, family, token)
        with on.writing() as storage:
            storage.applications.add_secret(other.id, secret)
        with on.writing() as storage:
            storage.applications.remove(application.id)
        with on.reading() as storage:
            assert storage.applications.find(other.id) == other
            assert storage.applications.secrets(other.id) == (secret,)
            assert storage.tokens.find_family(family.id) == family
            assert storage.tokens.find_access(token.digest) == token

    def test_applications_page_shows_the_project_alone(self, on: On, applications: Fetch[Application]) -> None:
        other = a_project(on.organization)
        on.save(other, an_application(other))
        check_order(applications, [on.application])

    def test_applications_page_is_ordered_by_name_then_id(self, on: On, applications: Fetch[Application]) -> None:
        names = ("alpha", "Same", "same", "SAME", "zeta")
        first, *twins, last = (an_application(on.project, name=name) for name in names)
        twins.sort(key=lambda each: each.id)
        on.save(last, *reversed(twins), first)
        check_order(applications, [first, *twins, last])

    def test_applications_page_while_rows_come(self, on: On, applications: Fetch[Application]) -> None:
        rows = [an_application(on.project, name=name) for name in ("b", "d", "f", "h")]
        on.save(*rows)
        more = [an_application(on.project, name=name) for name in ("a", "c", "e", "i")]
        check_insertion(applications, lambda: on.save(*more), rows)

    def test_applications_page_by_state(self, on: On, applications: Fetch[Application]) -> None:
        active = [an_application(on.project), an_application(on.project)]
        inactive = [an_application(on.project, active=False)]
        on.save(*active, *inactive)
        check_active(applications, active=active, inactive=inactive)

    def test_applications_page_sorted_by_each_of_its_orders(self, on: On, applications: Fetch[Application]) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            on.save(an_application(on.project, name=name, created_at=NOW + timedelta(seconds=seconds), active=active))
        check_sorts(applications, ORDERS, "ALL")
        check_totals(applications, rows=3, active=2)

    def test_applications_page_by_any_part_of_the_name(self, on: On, applications: Fetch[Application]) -> None:
        shop, street, percent = (an_application(on.project, name=name) for name in ("Shop", "Straße", "%"))
        on.save(shop, street, percent)
        check_query(applications, "SHO", [shop])
        check_query(applications, "strass", [street])
        check_query(applications, "%", [percent])
        check_query(applications, "hop", [shop])
        check_query(applications, "pp", [])
        check_query(applications, shop.id, [shop])

    def test_applications_secrets_are_oldest_first(self, on: On) -> None:
        application = on.application
        other = an_application(on.project)
        on.save(other)
        ordered = [a_client_secret(created_at=NOW + timedelta(seconds=index)) for index in range(3)]
        with on.writing() as storage:
            for secret in reversed(ordered):
                storage.applications.add_secret(application.id, secret)
            storage.applications.add_secret(other.id, a_client_secret())
        with on.reading() as storage:
            assert storage.applications.secrets(application.id) == tuple(ordered)
            assert storage.applications.secrets(an_id()) == ()

    def test_applications_secret_counts(self, on: On) -> None:
        application = on.application
        other, none = an_application(on.project), an_application(on.project)
        on.save(other, none)
        with on.writing() as storage:
            for owner in (application, application, other):
                storage.applications.add_secret(owner.id, a_client_secret())
        with on.reading() as storage:
            counts = storage.applications.secret_counts([application.id, other.id, none.id, an_id()])
            assert counts == {application.id: 2, other.id: 1, none.id: 0}
            assert storage.applications.secret_counts(()) == {}

    def test_applications_a_secret_needs_its_application(self, on: On) -> None:
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.add_secret(an_id(), a_client_secret())

    def test_applications_remove_secret(self, on: On) -> None:
        application = on.application
        kept, removed = a_client_secret(), a_client_secret()
        with on.writing() as storage:
            storage.applications.add_secret(application.id, kept)
            storage.applications.add_secret(application.id, removed)
        with on.writing() as storage:
            storage.applications.remove_secret(application.id, removed.id)
        with on.reading() as storage:
            assert storage.applications.secrets(application.id) == (kept,)

    def test_applications_remove_of_an_unknown_secret(self, on: On) -> None:
        application = on.application
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.remove_secret(application.id, an_id())

    def test_applications_remove_of_the_secret_of_another_application(self, on: On) -> None:
        application = on.application
        other, secret = an_application(on.project), a_client_secret()
        on.save(other)
        with on.writing() as storage:
            storage.applications.add_secret(other.id, secret)
        with pytest.raises(Missing), on.writing() as storage:
            storage.applications.remove_secret(application.id, secret.id)
        with on.reading() as storage:
            assert storage.applications.secrets(other.id) == (secret,)

    def test_applications_find_many(self, on: On) -> None:
        application = on.application
        other = an_application(on.project)
        on.save(other)
        with on.reading() as storage:
            both = {each.id: each for each in (application, other)}
            assert storage.applications.find_many([other.id, application.id, an_id()]) == both
            assert storage.applications.find_many(()) == {}

    def test_applications_touch_secrets_moves_forward_alone(self, on: On) -> None:
        application = on.application
        second = timedelta(seconds=1)
        used, untouched = a_client_secret(created_at=NOW - second, last_used_at=NOW), a_client_secret()
        with on.writing() as storage:
            storage.applications.add_secret(application.id, used)
            storage.applications.add_secret(application.id, untouched)
        for at, expected in ((NOW - second, NOW), (NOW + second, NOW + second), (NOW, NOW + second)):
            with on.writing() as storage:
                storage.applications.touch_secrets({used.id: at, an_id(): at})
            with on.reading() as storage:
                touched = (replace(used, last_used_at=expected), untouched)
                assert storage.applications.secrets(application.id) == touched
                client = storage.applications.find_client(application.id)
                assert client is not None
                assert client.secrets == touched
