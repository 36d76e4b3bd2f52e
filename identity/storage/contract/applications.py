"""What is demanded of the application store."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from identity.domain.applications import Application, ApplicationType, Client, ConsentRule
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import HumanUser, TokenFormat
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import (
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
    def applications(self, reading: Reading, project: Project) -> Fetch[Application]:
        """The list of the applications of ``project``."""
        return fetching(reading, lambda storage, request: storage.applications.page(project.id, request))

    def test_applications_find_returns_what_was_added(self, save: Save, reading: Reading, project: Project) -> None:
        application = an_application(
            project,
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
        save(application)
        with reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_find_of_an_unknown_id(self, reading: Reading, application: Application) -> None:
        with reading() as storage:
            assert storage.applications.find(an_id()) is None
            assert storage.applications.find_client(an_id()) is None
            assert storage.applications.find(application.id.upper()) is None, "client ids are compared to the letter"

    def test_applications_a_taken_id_is_refused(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        organization: Organization,
    ) -> None:
        other = a_project(organization)
        save(other)
        with pytest.raises(Duplicate), in_transaction() as storage:
            storage.applications.add(an_application(other, id=application.id))
        with reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_an_application_needs_its_project(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.add(an_application())

    def test_applications_find_client_returns_everything_above(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        project: Project,
        organization: Organization,
        now: datetime,
    ) -> None:
        with reading() as storage:
            assert storage.applications.find_client(application.id) == Client(application, (), project, organization)
        older, newer = a_client_secret(created_at=now - timedelta(days=1)), a_client_secret(created_at=now)
        with in_transaction() as storage:
            storage.applications.add_secret(application.id, newer)
            storage.applications.add_secret(application.id, older)
        with reading() as storage:
            client = storage.applications.find_client(application.id)
        assert client == Client(application, (older, newer), project, organization)

    def test_applications_find_client_shows_what_is_deactivated(
        self,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        project: Project,
        organization: Organization,
    ) -> None:
        closed = (
            replace(application, active=False, version=2),
            replace(project, active=False, version=2),
            replace(organization, active=False, version=2),
        )
        with in_transaction() as storage:
            storage.applications.update(closed[0])
            storage.projects.update(closed[1])
            storage.organizations.update(closed[2])
        with reading() as storage:
            client = storage.applications.find_client(application.id)
        assert client is not None
        assert (client.application, client.project, client.organization) == closed

    def test_applications_origins_are_those_of_redirect_uris(
        self, save: Save, reading: Reading, project: Project
    ) -> None:
        uris = (
            "https://Shop.Example/callback?x=1",
            "https://shop.example:443/other",
            "http://localhost:8080/callback",
            "http://[::1]/callback",
            "com.example.app:/callback",
        )
        bye = ("https://bye.example/",)
        save(an_application(project, redirect_uris=uris, post_logout_redirect_uris=bye))
        with reading() as storage:
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

    def test_applications_origins_follow_the_redirect_uris(
        self, save: Save, in_transaction: InTransaction, reading: Reading, project: Project
    ) -> None:
        moving, other = (
            an_application(project, redirect_uris=uris)
            for uris in (("https://old.example/a", "https://both.example/a"), ("https://both.example/b",))
        )
        save(moving, other)
        with in_transaction() as storage:
            storage.applications.update(replace(moving, redirect_uris=("https://new.example/a",), version=2))
        with reading() as storage:
            assert storage.applications.is_origin("https://new.example")
            assert storage.applications.is_origin("https://both.example"), "another application has it"
            assert not storage.applications.is_origin("https://old.example")
        with in_transaction() as storage:
            storage.applications.remove(other.id)
        with reading() as storage:
            assert not storage.applications.is_origin("https://both.example")

    def test_applications_a_deactivated_application_has_no_origin(
        self, in_transaction: InTransaction, reading: Reading, application: Application
    ) -> None:
        with reading() as storage:
            assert storage.applications.is_origin("https://shop.example")
        closed = replace(application, active=False, version=2)
        with in_transaction() as storage:
            storage.applications.update(closed)
        with reading() as storage:
            assert not storage.applications.is_origin("https://shop.example")
        with in_transaction() as storage:
            storage.applications.update(replace(closed, active=True, version=3))
        with reading() as storage:
            assert storage.applications.is_origin("https://shop.example")

    def test_applications_a_stale_update_moves_no_origin(
        self, in_transaction: InTransaction, reading: Reading, application: Application
    ) -> None:
        with in_transaction() as storage, pytest.raises(Stale):
            storage.applications.update(replace(application, redirect_uris=("https://thief.example/",), version=1))
        with reading() as storage:
            assert storage.applications.is_origin("https://shop.example")
            assert not storage.applications.is_origin("https://thief.example")

    def test_applications_update_replaces_the_value_and_keeps_the_secrets(
        self, in_transaction: InTransaction, reading: Reading, application: Application
    ) -> None:
        secret = a_client_secret()
        with in_transaction() as storage:
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
        with in_transaction() as storage:
            storage.applications.update(changed)
        with reading() as storage:
            assert storage.applications.find(application.id) == changed
            assert storage.applications.secrets(application.id) == (secret,)

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_applications_update_of_another_version_is_stale(
        self, in_transaction: InTransaction, reading: Reading, application: Application, version: int
    ) -> None:
        with pytest.raises(Stale), in_transaction() as storage:
            storage.applications.update(replace(application, name="Lost", version=version))
        with reading() as storage:
            assert storage.applications.find(application.id) == application

    def test_applications_update_of_an_unknown_application(
        self, in_transaction: InTransaction, project: Project
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.update(an_application(project, version=2))

    def test_applications_remove_of_an_unknown_application(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.remove(an_id())

    def test_applications_remove_takes_secrets_codes_and_tokens_along(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        human_user: HumanUser,
    ) -> None:
        family = a_family(human_user, application)
        code, refresh = a_code(family), a_refresh_token(family)
        token, own_token = an_access_token(human_user, application, family), an_access_token(None, application)
        save(family, code, refresh, token, own_token)
        with in_transaction() as storage:
            storage.applications.add_secret(application.id, a_client_secret())
        with in_transaction() as storage:
            storage.applications.remove(application.id)
        with reading() as storage:
            assert storage.applications.find(application.id) is None
            assert storage.applications.find_client(application.id) is None
            assert storage.applications.secrets(application.id) == ()
            assert storage.tokens.find_family(family.id) is None
            assert storage.tokens.find_access(token.digest) is None
            assert storage.tokens.find_access(own_token.digest) is None
            assert storage.tokens.find_refresh(refresh.digest) is None
        with pytest.raises(Missing), in_transaction() as storage:
            storage.authorization_codes.redeem(code.digest, client_id=application.id, at=code.issued_at)

    def test_applications_remove_leaves_other_applications_alone(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        project: Project,
        human_user: HumanUser,
    ) -> None:
        other = an_application(project)
        family = a_family(human_user, other)
        token, secret = an_access_token(human_user, other, family), a_client_secret()
        save(other, family, token)
        with in_transaction() as storage:
            storage.applications.add_secret(other.id, secret)
        with in_transaction() as storage:
            storage.applications.remove(application.id)
        with reading() as storage:
            assert storage.applications.find(other.id) == other
            assert storage.applications.secrets(other.id) == (secret,)
            assert storage.tokens.find_family(family.id) == family
            assert storage.tokens.find_access(token.digest) == token

    def test_applications_page_shows_the_project_alone(
        self, save: Save, applications: Fetch[Application], application: Application, organization: Organization
    ) -> None:
        other = a_project(organization)
        save(other, an_application(other))
        check_order(applications, [application])

    def test_applications_page_is_ordered_by_name_then_id(
        self, save: Save, applications: Fetch[Application], project: Project
    ) -> None:
        names = ("alpha", "Same", "same", "SAME", "zeta")
        first, *twins, last = (an_application(project, name=name) for name in names)
        twins.sort(key=lambda each: each.id)
        save(last, *reversed(twins), first)
        check_order(applications, [first, *twins, last])

    def test_applications_page_while_rows_come(
        self, save: Save, applications: Fetch[Application], project: Project
    ) -> None:
        rows = [an_application(project, name=name) for name in ("b", "d", "f", "h")]
        save(*rows)
        more = [an_application(project, name=name) for name in ("a", "c", "e", "i")]
        check_insertion(applications, lambda: save(*more), rows)

    def test_applications_page_by_state(self, save: Save, applications: Fetch[Application], project: Project) -> None:
        active = [an_application(project), an_application(project)]
        inactive = [an_application(project, active=False)]
        save(*active, *inactive)
        check_active(applications, active=active, inactive=inactive)

    def test_applications_page_sorted_by_each_of_its_orders(
        self, save: Save, applications: Fetch[Application], project: Project, now: datetime
    ) -> None:
        for name, seconds, active in (("Beta-all", 2, True), ("alpha-all", 3, False), ("gamma-all", 2, True)):
            save(an_application(project, name=name, created_at=now + timedelta(seconds=seconds), active=active))
        check_sorts(applications, ORDERS, "ALL")
        check_totals(applications, rows=3, active=2)

    def test_applications_page_by_any_part_of_the_name(
        self, save: Save, applications: Fetch[Application], project: Project
    ) -> None:
        shop, street, percent = (an_application(project, name=name) for name in ("Shop", "Straße", "%"))
        save(shop, street, percent)
        check_query(applications, "SHO", [shop])
        check_query(applications, "strass", [street])
        check_query(applications, "%", [percent])
        check_query(applications, "hop", [shop])
        check_query(applications, "pp", [])
        check_query(applications, shop.id, [shop])

    def test_applications_secrets_are_oldest_first(
        self,
        save: Save,
        in_transaction: InTransaction,
        reading: Reading,
        application: Application,
        project: Project,
        now: datetime,
    ) -> None:
        other = an_application(project)
        save(other)
        ordered = [a_client_secret(created_at=now + timedelta(seconds=index)) for index in range(3)]
        with in_transaction() as storage:
            for secret in reversed(ordered):
                storage.applications.add_secret(application.id, secret)
            storage.applications.add_secret(other.id, a_client_secret())
        with reading() as storage:
            assert storage.applications.secrets(application.id) == tuple(ordered)
            assert storage.applications.secrets(an_id()) == ()

    def test_applications_secret_counts(
        self, save: Save, in_transaction: InTransaction, reading: Reading, application: Application, project: Project
    ) -> None:
        other, none = an_application(project), an_application(project)
        save(other, none)
        with in_transaction() as storage:
            for owner in (application, application, other):
                storage.applications.add_secret(owner.id, a_client_secret())
        with reading() as storage:
            counts = storage.applications.secret_counts([application.id, other.id, none.id, an_id()])
            assert counts == {application.id: 2, other.id: 1, none.id: 0}
            assert storage.applications.secret_counts(()) == {}

    def test_applications_a_secret_needs_its_application(self, in_transaction: InTransaction) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.add_secret(an_id(), a_client_secret())

    def test_applications_remove_secret(
        self, in_transaction: InTransaction, reading: Reading, application: Application
    ) -> None:
        kept, removed = a_client_secret(), a_client_secret()
        with in_transaction() as storage:
            storage.applications.add_secret(application.id, kept)
            storage.applications.add_secret(application.id, removed)
        with in_transaction() as storage:
            storage.applications.remove_secret(application.id, removed.id)
        with reading() as storage:
            assert storage.applications.secrets(application.id) == (kept,)

    def test_applications_remove_of_an_unknown_secret(
        self, in_transaction: InTransaction, application: Application
    ) -> None:
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.remove_secret(application.id, an_id())

    def test_applications_remove_of_the_secret_of_another_application(
        self, save: Save, in_transaction: InTransaction, reading: Reading, application: Application, project: Project
    ) -> None:
        other, secret = an_application(project), a_client_secret()
        save(other)
        with in_transaction() as storage:
            storage.applications.add_secret(other.id, secret)
        with pytest.raises(Missing), in_transaction() as storage:
            storage.applications.remove_secret(application.id, secret.id)
        with reading() as storage:
            assert storage.applications.secrets(other.id) == (secret,)

    def test_applications_find_many(
        self, save: Save, reading: Reading, application: Application, project: Project
    ) -> None:
        other = an_application(project)
        save(other)
        with reading() as storage:
            both = {each.id: each for each in (application, other)}
            assert storage.applications.find_many([other.id, application.id, an_id()]) == both
            assert storage.applications.find_many(()) == {}

    def test_applications_touch_secrets_moves_forward_alone(
        self, in_transaction: InTransaction, reading: Reading, application: Application, now: datetime
    ) -> None:
        second = timedelta(seconds=1)
        used, untouched = a_client_secret(created_at=now - second, last_used_at=now), a_client_secret()
        with in_transaction() as storage:
            storage.applications.add_secret(application.id, used)
            storage.applications.add_secret(application.id, untouched)
        for at, expected in ((now - second, now), (now + second, now + second), (now, now + second)):
            with in_transaction() as storage:
                storage.applications.touch_secrets({used.id: at, an_id(): at})
            with reading() as storage:
                touched = (replace(used, last_used_at=expected), untouched)
                assert storage.applications.secrets(application.id) == touched
                client = storage.applications.find_client(application.id)
                assert client is not None
                assert client.secrets == touched
