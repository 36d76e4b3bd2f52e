"""What is demanded of the consent store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.storage.contract.base import ContractBase, On
from identity.storage.contract.factories import a_consent, a_human_user, an_application, an_id
from identity.storage.errors import Missing


class ConsentContract(ContractBase):
    """A person has one consent at most for each application; it goes with either."""

    def test_consents_find_returns_what_was_set(self, on: On) -> None:
        consent = a_consent(on.human_user, on.application, scope=("openid", "urn:service:iam:org:project:id:1:aud"))
        on.save(consent)
        with on.reading() as storage:
            assert storage.consents.find(on.human_user.id, on.application.id) == consent
            assert storage.consents.find(on.application.id, on.human_user.id) is None

    def test_consents_find_before_any_was_given(self, on: On) -> None:
        human_user, application = on.human_user, on.application
        with on.reading() as storage:
            assert storage.consents.find(human_user.id, application.id) is None
            assert storage.consents.of_user(human_user.id) == ()

    def test_consents_set_replaces_the_one_before(self, on: On) -> None:
        first = a_consent(on.human_user, on.application)
        second = replace(first, scope=("openid",), given_at=first.given_at + timedelta(seconds=1))
        on.save(first)
        on.save(second)
        with on.reading() as storage:
            assert storage.consents.of_user(on.human_user.id) == (second,)

    def test_consents_of_a_user_last_given_first(self, on: On) -> None:
        early, late, other = an_application(on.project), an_application(on.project), a_human_user(on.organization)
        first = a_consent(on.human_user, early)
        second = a_consent(on.human_user, late, given_at=first.given_at + timedelta(seconds=1))
        on.save(early, late, other, second, first, a_consent(other, early))
        with on.reading() as storage:
            assert storage.consents.of_user(on.human_user.id) == (second, first)

    def test_consents_a_removed_one_is_gone(self, on: On) -> None:
        human_user, application = on.human_user, on.application
        other = a_human_user(on.organization)
        kept = a_consent(other, application)
        on.save(other, kept, a_consent(human_user, application))
        with on.writing() as storage:
            storage.consents.remove(human_user.id, application.id)
        with on.writing() as storage:
            assert storage.consents.find(human_user.id, application.id) is None
            assert storage.consents.find(other.id, application.id) == kept
            with pytest.raises(Missing):
                storage.consents.remove(human_user.id, application.id)

    def test_consents_need_their_user_and_their_application(self, on: On) -> None:
        for lost in (
            a_consent(on.human_user, on.application, user_id=an_id()),
            a_consent(on.human_user, on.application, application_id=an_id()),
        ):
            with pytest.raises(Missing), on.writing() as storage:
                storage.consents.set(lost)

    @pytest.mark.parametrize("gone", ["user", "application", "organization", "project"])
    def test_consents_go_with_their_user_and_their_application(self, on: On, gone: str) -> None:
        organization, project = on.organization, on.project
        on.save(a_consent(on.human_user, on.application))
        with on.writing() as storage:
            match gone:
                case "user":
                    storage.users.remove(on.human_user.id)
                case "application":
                    storage.applications.remove(on.application.id)
                case "project":
                    storage.projects.remove(project.id)
                case _:
                    storage.organizations.remove(organization.id)
        with on.writing() as storage:
            assert storage.consents.find(on.human_user.id, on.application.id) is None
