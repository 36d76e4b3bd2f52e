"""Who may read the log of sent mails, whatever a route requires."""

from dataclasses import replace

import pytest

from identity.domain.errors import Denied
from identity.domain.permissions import Resource
from identity.domain.sent_mails import MailOutcome
from identity.domain.users import HumanUser
from identity.plugins.manager_roles import ROLES
from identity.services.access_control import AccessControl, Principal
from identity.services.container import Services
from identity.storage.contract import factories as make
from tests.services.factories import holding, make_human_user, make_organization, subject_of

ADDRESS = "ada@acme.example"


@pytest.fixture
def ada(services: Services) -> HumanUser:
    """A person to whom a mail was sent; another mail has no user."""
    person = make_human_user(services, make_organization(services))
    message = make.outbox_message(purpose="invitation", user_id=person.id, organization_id=person.organization_id)
    for queued in (message, replace(message, user_id=None)):
        services.sent_mails.record(queued, ADDRESS, MailOutcome.SENT)
    return person


def test_log_needs_permissions(services: Services, ada: HumanUser) -> None:
    other = make_human_user(services, make_organization(services, "Other"), "bob")
    for principal in (Principal(subject_of(services, ada)), holding(services, other, "ORG_OWNER")):
        with pytest.raises(Denied):
            services.sent_mails.page_of_user(ada.id, principal=principal)
        with pytest.raises(Denied):
            services.sent_mails.page(principal=principal)


def test_addresses_are_hidden_without_user_read(services: Services, ada: HumanUser) -> None:
    """With ``instance.read``, where a plugin denies ``user.read``."""
    home = Resource.of_organization(ada.organization_id)

    def recipients(*denied: Resource) -> list[tuple[bool, str]]:
        def deny(_principal: Principal, permission: str, resource: Resource, _lookup: object) -> str | None:
            return "denied" if permission == "user.read" and resource in denied else None

        roles = {role.name: role for role in ROLES}
        access = AccessControl(services.storage, roles, deny, services.lookup, services.find_instance, services.now)
        log = replace(services.sent_mails, _access=access)
        return sorted((mail.user_id is None, mail.recipient) for mail in log.page(principal=viewer))

    manager = make_human_user(services, make_organization(services, "Other"), "bob")
    viewer = replace(
        Principal(subject_of(services, manager)),
        manager_entries=(make.manager(manager, roles=frozenset({"IAM_OWNER_VIEWER"})),),
    )
    assert recipients() == [(False, ADDRESS), (True, ADDRESS)]
    assert recipients(home) == [(False, ""), (True, ADDRESS)]
    assert recipients(Resource.INSTANCE) == [(False, ADDRESS), (True, "")]
