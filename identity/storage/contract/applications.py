"""Contract of the application store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.applications import RESPONSE_ALGORITHM_FIELDS, ApplicationClient
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness, require_found
from identity.storage.errors import RowNotFound, StaleRow


class ApplicationContract(ContractBase):
    """An application is found with everything needed to authorize it; its secrets, codes and tokens are deleted with
    it."""

    def test_applications_find_of_an_unknown_id(self, on: StorageHarness) -> None:
        application = on.application
        assert on.read.applications.find(make_id()) is None
        assert on.read.applications.find_client(make_id()) is None
        assert on.read.applications.find(application.id.upper()) is None, "client ids are compared to the letter"

    def test_applications_find_client_returns_everything_above(self, on: StorageHarness) -> None:
        application = on.application
        assert on.read.applications.find_client(application.id) == ApplicationClient(
            application, (), on.project, on.organization
        )
        older, newer = make.client_secret(created_at=NOW - timedelta(days=1)), make.client_secret(created_at=NOW)
        with on.transaction() as storage:
            storage.applications.add_secret(application.id, newer)
            storage.applications.add_secret(application.id, older)
        client = on.read.applications.find_client(application.id)
        assert client == ApplicationClient(application, (older, newer), on.project, on.organization)

    def test_applications_find_client_shows_what_is_deactivated(self, on: StorageHarness) -> None:
        application = replace(on.application, active=False, version=2)
        project = replace(on.project, active=False, version=2)
        organization = replace(on.organization, active=False, version=2)
        with on.transaction() as storage:
            storage.applications.update(application)
            storage.projects.update(project)
            storage.organizations.update(organization)
        client = on.read.applications.find_client(application.id)
        assert client == ApplicationClient(application, (), project, organization)

    def test_applications_with_other_algorithms(self, on: StorageHarness) -> None:
        es256, eddsa = SignatureAlgorithm.ES256, SignatureAlgorithm.EDDSA
        listed = make.application(on.project, id_token_signed_response_alg=es256)
        chosen = [
            make.application(on.project, id=make_id(), **{name: eddsa, "name": name})
            for name in RESPONSE_ALGORITHM_FIELDS
        ]
        inactive = make.application(on.project, id_token_signed_response_alg=eddsa, active=False)
        on.store(listed, *chosen, inactive)
        expected = tuple(sorted(chosen, key=lambda application: application.id))
        find = on.read.applications.list_with_other_algorithms
        assert find(["ES256", "RS256"], 10) == expected
        assert find(["ES256", "RS256"], 1) == expected[:1]
        assert find(["ES256", "EdDSA"], 10) == ()

    def test_applications_origins_are_those_of_redirect_uris(self, on: StorageHarness) -> None:
        uris = (
            "https://Shop.Example/callback?x=1",
            "https://shop.example:443/other",
            "http://localhost:8080/callback",
            "http://[::1]/callback",
            "com.example.app:/callback",
        )
        bye = ("https://bye.example/",)
        on.store(make.application(on.project, redirect_uris=uris, post_logout_redirect_uris=bye))
        for origin in ("https://shop.example", "http://localhost:8080", "http://[::1]"):
            assert on.read.applications.is_registered_origin(origin), origin
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
            assert not on.read.applications.is_registered_origin(stranger), stranger

    def test_applications_origins_follow_the_redirect_uris(self, on: StorageHarness) -> None:
        moving, application = (
            make.application(on.project, redirect_uris=uris)
            for uris in (("https://old.example/a", "https://both.example/a"), ("https://both.example/b",))
        )
        on.store(moving, application)
        on.write.applications.update(replace(moving, redirect_uris=("https://new.example/a",), version=2))
        assert on.read.applications.is_registered_origin("https://new.example")
        assert on.read.applications.is_registered_origin("https://both.example"), "another application has it"
        assert not on.read.applications.is_registered_origin("https://old.example")
        on.write.applications.delete(application.id)
        assert not on.read.applications.is_registered_origin("https://both.example")

    def test_applications_a_deactivated_application_has_no_origin(self, on: StorageHarness) -> None:
        closed = replace(on.application, active=False, version=2)
        assert on.read.applications.is_registered_origin("https://shop.example")
        on.write.applications.update(closed)
        assert not on.read.applications.is_registered_origin("https://shop.example")
        on.write.applications.update(replace(closed, active=True, version=3))
        assert on.read.applications.is_registered_origin("https://shop.example")

    def test_applications_a_stale_update_moves_no_origin(self, on: StorageHarness) -> None:
        application = on.application
        with on.transaction() as storage, pytest.raises(StaleRow):
            storage.applications.update(replace(application, redirect_uris=("https://thief.example/",), version=1))
        assert on.read.applications.is_registered_origin("https://shop.example")
        assert not on.read.applications.is_registered_origin("https://thief.example")

    def test_applications_secrets_are_oldest_first(self, on: StorageHarness) -> None:
        application = on.application
        other = on.store_value(make.application(on.project))
        ordered = [make.client_secret(created_at=NOW + timedelta(seconds=index)) for index in range(3)]
        with on.transaction() as storage:
            for secret in reversed(ordered):
                storage.applications.add_secret(application.id, secret)
            storage.applications.add_secret(other.id, make.client_secret())
        assert on.read.applications.list_secrets(application.id) == tuple(ordered)
        assert on.read.applications.list_secrets(make_id()) == ()

    def test_applications_secret_counts(self, on: StorageHarness) -> None:
        application = on.application
        other, none = make.application(on.project), make.application(on.project)
        on.store(other, none)
        with on.transaction() as storage:
            for owner in (application, application, other):
                storage.applications.add_secret(owner.id, make.client_secret())
        counts = on.read.applications.count_secrets([application.id, other.id, none.id, make_id()])
        assert counts == {application.id: 2, other.id: 1, none.id: 0}
        assert on.read.applications.count_secrets(()) == {}

    def test_applications_secrets_are_added_and_removed_by_their_application_alone(self, on: StorageHarness) -> None:
        application, other = on.application, on.store_value(make.application(on.project))
        client_secret, removed, foreign = (make.client_secret() for _ in range(3))
        with on.transaction() as storage:
            for owner, secret in ((application, client_secret), (application, removed), (other, foreign)):
                storage.applications.add_secret(owner.id, secret)
            storage.applications.remove_secret(application.id, removed.id)
            for secret in (removed, foreign, make.client_secret()):
                with pytest.raises(RowNotFound):
                    storage.applications.remove_secret(application.id, secret.id)
            with pytest.raises(RowNotFound):
                storage.applications.add_secret(make_id(), make.client_secret())
            storage.applications.update(replace(application, name="Store", version=2))
        assert on.read.applications.list_secrets(application.id) == (client_secret,)
        assert on.read.applications.list_secrets(other.id) == (foreign,)

    def test_applications_tokens_of_their_own_go_with_the_secret_that_brought_them(self, on: StorageHarness) -> None:
        application, client_secret, removed = on.application, on.store_client_secret(), on.store_client_secret()
        access_token, token, unknown = (
            make.access_token(None, application, client_secret_id=secret)
            for secret in (removed.id, client_secret.id, None)
        )
        of_a_person = make.access_token(on.human_user, application, on.family)
        on.store(access_token, token, unknown, of_a_person)
        on.write.applications.remove_secret(application.id, removed.id)
        assert on.unchanged(access_token, token, unknown, of_a_person) == [token, unknown, of_a_person]
        with pytest.raises(RowNotFound):
            on.write.tokens.add_access_token(make.access_token(None, application, client_secret_id=removed.id))

    def test_applications_touch_secrets_moves_forward_alone(self, on: StorageHarness) -> None:
        application = on.application
        used, untouched = make.client_secret(created_at=NOW - SECOND, last_used_at=NOW), make.client_secret()
        with on.transaction() as storage:
            storage.applications.add_secret(application.id, used)
            storage.applications.add_secret(application.id, untouched)
        for at, expected in ((NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND), (NOW, NOW + SECOND)):
            on.write.applications.update_secrets_last_used({used.id: at, make_id(): at})
            touched = (replace(used, last_used_at=expected), untouched)
            assert on.read.applications.list_secrets(application.id) == touched
            client = require_found(on.read.applications.find_client(application.id))
            assert client.secrets == touched
