"""Users: people's accounts."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from identity.domain.attributes import AttributeValue
from identity.domain.organizations import Organization
from identity.domain.users import Address, HumanUser, Profile
from identity.plugins.management.access_revocation import (
    REVOCATION_DESCRIPTION,
    RevokedAccessRepresentation,
    represent_revocation,
)
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION, USER
from identity.plugins.management.operation import EmptyCommand, OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.services.users import UserState
from identity.storage.paging import ResultPage
from identity.storage.stores.users import USER_SORT_KEYS, UserKind


@representation_fields(Address)
class AddressRepresentation(Representation):
    """A postal address (OpenID Connect Core §5.1.1)."""


@representation_fields(HumanUser, without={"profile", "registered"})
@representation_fields(Profile)
class UserRepresentation(Representation):
    """A person's account with its profile (OpenID Connect Core §5.1); unknown members are empty. `attributes` are those
    that the organization defines, by key, as far as they have a value."""

    has_volatile_members: ClassVar[bool] = True

    id: str
    address: AddressRepresentation
    state: UserState
    attributes: dict[str, AttributeValue]


class InitialCredentialRepresentation(Representation):
    """The initial credential of a new account, shown only once: a link or a one-time password to hand over."""

    kind: Literal["link", "one_time_password"]
    secret: str


class InvitedUserRepresentation(UserRepresentation):
    """A new account and its initial credential."""

    initial: InitialCredentialRepresentation


class PasswordLinkRepresentation(Representation):
    """A single-use link for choosing a password; shown only once."""

    password_link: str


class OneTimePasswordRepresentation(Representation):
    """A password that must be changed at the first sign-in; shown only once."""

    one_time_password: str


def _user_members(call: OperationCall[Any], users: Sequence[HumanUser]) -> list[dict[str, object]]:
    """The members of User besides the attributes of each account."""
    states, attributes = call.services.users.user_states(users), call.services.attributes.user_values(users)
    return [
        _profile_members(user.profile) | {"state": states[user.id], "attributes": attributes[user.id]} for user in users
    ]


def _profile_members(profile: Profile) -> dict[str, object]:
    known = {field.name: getattr(profile, field.name) for field in fields(profile)}
    return known | {"address": AddressRepresentation.from_value(profile.address)}


def _represent(call: OperationCall[Any], user: HumanUser) -> UserRepresentation:
    [members] = _user_members(call, [user])
    return UserRepresentation.from_value(user, **members)


def _list_users(call: OperationCall[Organization]) -> ResultPage[UserRepresentation]:
    page = call.services.storage.users.page(call.entity.id, UserKind.HUMAN, call.page)
    people = [user for user in page if isinstance(user, HumanUser)]
    members = _user_members(call, people)
    return page.with_items(
        UserRepresentation.from_value(user, **more) for user, more in zip(people, members, strict=True)
    )


def _invite_user(call: OperationCall[Organization], command: InviteHumanUser) -> InvitedUserRepresentation:
    user, initial = call.services.users.invite(call.entity.id, command, principal=call.principal)
    [members] = _user_members(call, [user])
    return InvitedUserRepresentation.from_value(
        user, **members, initial=InitialCredentialRepresentation.from_value(initial)
    )


_USERS = EntityApiResource(
    "user",
    UserRepresentation,
    _represent,
    at=USER,
    change_command=ChangeHumanUser,
    service=lambda services: services.users,
)

OPERATIONS = (
    _USERS.list(
        ORGANIZATION / "users",
        "Lists the people of an organization, by user name by default.",
        _list_users,
        orders=USER_SORT_KEYS,
        description="`q` is any part of a user name, login name, given or family name, or email address.",
    ),
    _USERS.create(
        "invite_user",
        ORGANIZATION / "users",
        "Creates a person's account; the response contains a link or a one-time password, once.",
        InviteHumanUser,
        _invite_user,
        location="/users/{id}",
        representation=InvitedUserRepresentation,
    ),
    _USERS.show("Shows a person's account."),
    _USERS.update(
        "Changes a person's user name and profile.",
        description="A changed email address or phone number is no longer verified. `attributes` changes those that it "
        "contains; null empties one.",
    ),
    _USERS.deactivate("Deactivates an account: all sessions and tokens end at once."),
    _USERS.reactivate("Reactivates an account."),
    _USERS.action(
        "issue_password_link",
        USER / "password-link",
        "Creates a link for choosing a password; the current password is valid until the link is used.",
        EmptyCommand,
        lambda call, _: PasswordLinkRepresentation(
            password_link=call.services.users.issue_password_link(call.entity.id, principal=call.principal)
        ),
        representation=PasswordLinkRepresentation,
    ),
    _USERS.action(
        "set_one_time_password",
        USER / "one-time-password",
        "Replaces the password by one that must be changed at the next sign-in, unless the "
        "policy says otherwise; sessions and tokens end at once.",
        EmptyCommand,
        lambda call, _: OneTimePasswordRepresentation(
            one_time_password=call.services.users.set_one_time_password(call.entity.id, principal=call.principal)
        ),
        representation=OneTimePasswordRepresentation,
    ),
    _USERS.action(
        "unlock_user",
        USER / "unlock",
        "Resets an account's count of wrong passwords; nothing else changes.",
        EmptyCommand,
        lambda call, _: call.services.users.unlock(call.entity.id, principal=call.principal),
        description="After a hundred in a row, the password works only in browsers that have signed in to "
        "the account before.",
    ),
    _USERS.action(
        "keep_user",
        USER / "keep",
        "Cancels the deletion of an account that its owner asked for.",
        EmptyCommand,
        lambda call, _: call.services.account_deletions.cancel(call.entity.id, principal=call.principal),
        description="Until `deletion_at` the person can also keep it by signing in.",
    ),
    _USERS.action(
        "revoke_user_access",
        USER / "revoke-access",
        "Ends all sessions and tokens of a person at once.",
        EmptyCommand,
        lambda call, _: represent_revocation(
            call.services.access_revocations.revoke_user(call.entity.id, principal=call.principal)
        ),
        description=REVOCATION_DESCRIPTION,
        representation=RevokedAccessRepresentation,
    ),
    _USERS.remove("Deletes an account with its sessions, roles, grants and tokens."),
)
