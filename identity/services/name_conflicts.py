"""Refuses names and addresses that would change which user of the organization a typed name finds.

A login name takes precedence over an email address. So a user cannot get a login name that is another user's
verified address, nor an address that is another user's login name.
"""

from identity.domain.email_addresses import email_key
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.users import HumanUser, User
from identity.storage.backend import Storage

_NAME = {"user_name": gettext_lazy("Choose another user name; this one cannot be used.")}
_EMAIL = {"email": gettext_lazy("Use another email address; this one cannot be used here.")}
_DOMAIN = {
    "primary_domain": gettext_lazy("With this domain, one person's email address would be another person's login name.")
}


def refuse_conflicting_login_name(storage: Storage, user: User) -> None:
    """Raise Invalid if the user's login name is the verified address of another user of the organization."""
    if is_email_of_other_user(storage, user.organization_id, user.user_name, except_user_id=user.id):
        raise Invalid(_NAME)


def refuse_conflicting_email(storage: Storage, user: User) -> None:
    """Raise Invalid if the user's address is the login name of another user of the organization."""
    if isinstance(user, HumanUser) and is_login_name_of_other_user(storage, user, user.profile.email):
        raise Invalid(_EMAIL)


def refuse_conflicting_domain(storage: Storage, organization_id: str, domain: str) -> None:
    """Raise Invalid if a new primary domain would turn a verified address into another user's login name."""
    if storage.users.has_email_used_as_login_name(organization_id, domain):
        raise Invalid(_DOMAIN)


def is_email_of_other_user(storage: Storage, organization_id: str, user_name: str, *, except_user_id: str = "") -> bool:
    """True if another user of the organization has verified the address that is the login name of this user name."""
    organization = storage.organizations.find(organization_id)
    if organization is None:
        return False
    login_name = f"{user_name}@{organization.primary_domain}"
    key = email_key(login_name)
    subjects = storage.users.find_by_email(organization_id, login_name)
    if key is not None:
        subjects += storage.users.find_by_verified_email(key, organization_id=organization_id)
    people = [subject.user for subject in subjects if subject.user.id != except_user_id]
    return any(isinstance(item, HumanUser) and item.profile.email_verified for item in people)


def is_login_name_of_other_user(storage: Storage, user: HumanUser, address: str) -> bool:
    """True if the address is the login name of another user of the same organization."""
    local_part, _, domain = (email_key(address) or "").rpartition("@")
    organization = storage.organizations.find(user.organization_id) if local_part else None
    if organization is None or domain != organization.primary_domain:
        return False
    found = storage.users.find_by_name(organization.id, local_part)
    return found is not None and found.id != user.id
