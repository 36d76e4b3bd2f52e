"""Users: people's accounts."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from identity.domain import users
from identity.domain.users import HumanUser, Profile
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.services.users import UserState
from identity.storage.paging import ResultPage
from identity.storage.stores.users import USER_SORT_KEYS, UserKind


@representation_fields(users.Address)
class AddressRepresentation(Representation):
    """A postal address (OpenID Connect Core §5.1.1)."""


@representation_fields(users.HumanUser, without={"profile", "registered"})
@representation_fields(users.Profile)
class UserRepresentation(Representation):
    """A person's account with its profile (OpenID Connect Core §5.1); what is not known is empty."""

    has_volatile_members: ClassVar[bool] = True

    id: str
    address: AddressRepresentation
    state: UserState


class InitialCredentialRepresentation(Representation):
    """The initial credential of a new account, shown this once: a link to send on, or a one-time password to pass
    on.
    """

    kind: Literal["link", "one_time_password"]
    secret: str


class InvitedUserRepresentation(UserRepresentation):
    """A new account and its initial credential."""

    initial: InitialCredentialRepresentation


class PasswordLinkRepresentation(Representation):
    """A link, good once, by which the person chooses a password; shown this once."""

    password_link: str


class OneTimePasswordRepresentation(Representation):
    """A password that has to be changed at the first sign-in; shown this once."""

    one_time_password: str


def _user_members(call: OperationCall, users: Sequence[HumanUser]) -> list[dict[str, Any]]:
    """The members of User besides the attributes of each account."""
    states = call.services.users.user_states(users)
    return [_profile_members(user.profile) | {"state": states[user.id]} for user in users]


def _profile_members(profile: Profile) -> dict[str, Any]:
    known = {field.name: getattr(profile, field.name) for field in fields(profile)}
    return known | {"address": AddressRepresentation.from_value(profile.address)}


def _represent(call: OperationCall, user: HumanUser) -> UserRepresentation:
    [members] = _user_members(call, [user])
    return UserRepresentation.from_value(user, **members)


def _list_users(call: OperationCall) -> ResultPage[UserRepresentation]:
    page = call.services.storage.users.page(call.entity.id, UserKind.HUMAN, call.page)
    people = [user for user in page if isinstance(user, HumanUser)]
    members = _user_members(call, people)
    return page.with_items(
        UserRepresentation.from_value(user, **more) for user, more in zip(people, members, strict=True)
    )


def _invite_user(call: OperationCall) -> InvitedUserRepresentation:
    user, initial = call.services.users.invite(call.entity.id, call.command, principal=call.principal)
    [members] = _user_members(call, [user])
    return InvitedUserRepresentation.from_value(
        user, **members, initial=InitialCredentialRepresentation.from_value(initial)
    )


def _create_password_link(call: OperationCall) -> PasswordLinkRepresentation:
    return PasswordLinkRepresentation(
        password_link=call.services.users.issue_password_link(call.entity.id, principal=call.principal)
    )


def _set_one_time_password(call: OperationCall) -> OneTimePasswordRepresentation:
    return OneTimePasswordRepresentation(
        one_time_password=call.services.users.set_one_time_password(call.entity.id, principal=call.principal)
    )


_USERS = ApiResource(
    kind="user",
    representation=UserRepresentation,
    path="/users/{user}",
    list_path="/organizations/{organization}/users",
    context_factory=route_contexts.user_context,
    parent_context_factory=route_contexts.organization_context,
    represent=_represent,
)

OPERATIONS = (
    _USERS.list_operation(
        "Lists the people of an organization, by user name unless said otherwise.",
        _list_users,
        orders=USER_SORT_KEYS,
        description="`q` is any part of a user name, login name, given or family name, or email address.",
    ),
    _USERS.create_operation(
        "invite",
        "Creates a person's account; the answer carries a link or a one-time password, once.",
        InviteHumanUser,
        _invite_user,
        representation=InvitedUserRepresentation,
    ),
    _USERS.get_operation("Shows a person's account."),
    _USERS.update_operation(
        "Changes a person's user name and profile.",
        ChangeHumanUser,
        description="An email address or phone number that changes is no longer verified.",
    ),
    _USERS.deactivate_operation("Deactivates an account: all sessions and tokens end at once."),
    _USERS.reactivate_operation("Reactivates an account."),
    _USERS.action_operation(
        "password-link",
        "POST",
        "Makes a link by which the person chooses a password; the present one is valid until it is used.",
        _create_password_link,
        name="issue_password_link",
        representation=PasswordLinkRepresentation,
    ),
    _USERS.action_operation(
        "one-time-password",
        "POST",
        "Replaces the password by one to be changed at the next sign-in, unless the policy says otherwise; sessions and"
        " tokens end at once.",
        _set_one_time_password,
        name="set_one_time_password",
        representation=OneTimePasswordRepresentation,
    ),
    _USERS.action_operation(
        "unlock",
        "POST",
        "Forgets the wrong passwords that were tried at an account; nothing else changes.",
        lambda call: call.services.users.unlock(call.entity.id, principal=call.principal),
        description="After a hundred in a row a password counts only in browsers that signed in to the account before.",
    ),
    _USERS.action_operation(
        "keep",
        "POST",
        "Keeps an account whose person has asked for its deletion.",
        lambda call: call.services.account_deletions.cancel(call.entity.id, principal=call.principal),
        description="Until `deletion_at` the person can keep it, too, by signing in.",
    ),
    _USERS.delete_operation("Deletes an account with its sessions, roles, grants and tokens."),
)
