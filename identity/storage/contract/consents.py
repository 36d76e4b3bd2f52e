"""What is demanded of the consent store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from identity.domain.applications import Application
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import HumanUser
from identity.storage.contract.base import ContractBase, InTransaction, Reading, Save
from identity.storage.contract.factories import a_consent, a_human_user, an_application, an_id
from identity.storage.errors import Missing


class ConsentContract(ContractBase):
    """A person has one consent at most for each application; it goes with either."""

    def test_consents_find_returns_what_was_set(
        self, save: Save, reading: Reading, human_user: HumanUser, application: Application
    ) -> None:
        consent = a_consent(human_user, application, scope=("openid", "urn:service:iam:org:project:id:1:aud"))
        save(consent)
        with reading() as storage:
            assert storage.consents.find(human_user.id, application.id) == consent
            assert storage.consents.find(application.id, human_user.id) is None

    def test_consents_find_before_any_was_given(
        self, reading: Reading, human_user: HumanUser, application: Application
    ) -> None:
        with reading() as storage:
            assert storage.consents.find(human_user.id, application.id) is None
            assert storage.consents.of_user(human_user.id) == ()

    def test_consents_set_replaces_the_one_before(
        self, save: Save, reading: Reading, human_user: HumanUser, application: Application
    ) -> None:
        first = a_consent(human_user, application)
        second = replace(first, scope=("openid",), given_at=first.given_at + timedelta(seconds=1))
        save(first)
        save(second)
        with reading() as storage:
            assert storage.consents.of_user(human_user.id) == (second,)

    def test_consents_of_a_user_last_given_first(
        self, save: Save, reading: Reading, organization: Organization, project: Project, human_user: HumanUser
    ) -> None:
        early, late, other = an_application(project), an_application(project), a_human_user(organization)
        first = a_consent(human_user, early)
        second = a_consent(human_user, late, given_at=first.given_at + timedelta(seconds=1))
        save(early, late, other, second, first, a_consent(other, early))
        with reading() as storage:
            assert storage.consents.of_user(human_user.id) == (second, first)

    def test_consents_a_removed_one_is_gone(
        self,
        save: Save,
        in_transaction: InTransaction,
        organization: Organization,
        human_user: HumanUser,
        application: Application,
    ) -> None:
        other = a_human_user(organization)
        kept = a_consent(other, application)
        save(other, kept, a_consent(human_user, application))
        with in_transaction() as storage:
            storage.consents.remove(human_user.id, application.id)
        with in_transaction() as storage:
            assert storage.consents.find(human_user.id, application.id) is None
            assert storage.consents.find(other.id, application.id) == kept
            with pytest.raises(Missing):
                storage.consents.remove(human_user.id, application.id)

    def test_consents_need_their_user_and_their_application(
        self, in_transaction: InTransaction, human_user: HumanUser, application: Application
    ) -> None:
        for lost in (
            a_consent(human_user, application, user_id=an_id()),
            a_consent(human_user, application, application_id=an_id()),
        ):
            with pytest.raises(Missing), in_transaction() as storage:
                storage.consents.set(lost)

    @pytest.mark.parametrize("gone", ["user", "application", "organization", "project"])
    def test_consents_go_with_their_user_and_their_application(
        self,
        save: Save,
        in_transaction: InTransaction,
        organization: Organization,
        project: Project,
        human_user: HumanUser,
        application: Application,
        gone: str,
    ) -> None:
        save(a_consent(human_user, application))
        with in_transaction() as storage:
            match gone:
                case "user":
                    storage.users.remove(human_user.id)
                case "application":
                    storage.applications.remove(application.id)
                case "project":
                    storage.projects.remove(project.id)
                case _:
                    storage.organizations.remove(organization.id)
        with in_transaction() as storage:
            assert storage.consents.find(human_user.id, application.id) is None
