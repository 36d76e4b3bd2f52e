"""Users: people's accounts."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from identity.domain.users import HumanUser, Profile
from identity.http import targets
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, sorted_by
from identity.plugins.management.representation import Moment, Representation, Versioned
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.services.users import UserState
from identity.storage.paging import Page
from identity.storage.stores.users import ORDERS, UserKind


class Address(Representation):
    """A postal address (OpenID Connect Core §5.1.1)."""

    formatted: str
    street_address: str
    locality: str
    region: str
    postal_code: str
    country: str


class User(Versioned):
    """A person's account with its profile (OpenID Connect Core §5.1); what is not known is empty."""

    moves: ClassVar[bool] = True

    organization_id: str
    user_name: str
    given_name: str
    family_name: str
    middle_name: str
    nickname: str
    display_name: str
    profile: str
    picture: str
    website: str
    gender: str
    birthdate: str
    zoneinfo: str
    locale: str
    email: str
    email_verified: bool
    phone: str
    phone_verified: bool
    address: Address
    state: UserState
    last_sign_in_at: Moment | None


class Initial(Representation):
    """What a new account is first entered by, shown this once: a link to send on, or a one-time password to tell."""

    kind: Literal["link", "one_time_password"]
    secret: str


class InvitedUser(User):
    """A new account, and what its person first enters it by."""

    initial: Initial


class PasswordLink(Representation):
    """A link, good once, by which the person chooses a password; shown this once."""

    password_link: str


class OneTimePassword(Representation):
    """A password that has to be changed at the first sign-in; shown this once."""

    one_time_password: str


def _members(call: Call, users: Sequence[HumanUser]) -> list[dict[str, Any]]:
    """What User shows of each account beside its own attributes."""
    states = call.services.users.states(users)
    return [_profile(user.profile) | {"state": states[user.id]} for user in users]


def _profile(profile: Profile) -> dict[str, Any]:
    known = {one.name: getattr(profile, one.name) for one in fields(profile)}
    return known | {"address": Address.of(profile.address)}


def _shown(call: Call, user: HumanUser) -> User:
    [members] = _members(call, [user])
    return User.of(user, **members)


def _list(call: Call) -> Page[User]:
    page = call.services.storage.users.page(call.value.id, UserKind.HUMAN, call.page)
    people = [user for user in page if isinstance(user, HumanUser)]
    members = _members(call, people)
    return page.showing(User.of(user, **more) for user, more in zip(people, members, strict=True))


def _invite(call: Call) -> InvitedUser:
    user, initial = call.services.users.invite(call.value.id, call.command, by=call.by)
    [members] = _members(call, [user])
    return InvitedUser.of(user, **members, initial=Initial.of(initial))


def _show(call: Call) -> User:
    return _shown(call, call.value)


def _change(call: Call) -> User:
    changed = call.services.users.change(
        call.value.id, call.command, by=call.by, expected_version=call.expected_version
    )
    return _shown(call, changed)


def _deactivate(call: Call) -> User:
    return _shown(call, call.services.users.deactivate(call.value.id, by=call.by))


def _reactivate(call: Call) -> User:
    return _shown(call, call.services.users.reactivate(call.value.id, by=call.by))


def _unlock(call: Call) -> User:
    return _shown(call, call.services.users.unlock(call.value.id, by=call.by))


def _delete(call: Call) -> None:
    call.services.users.remove(call.value.id, by=call.by)


def _password_link(call: Call) -> PasswordLink:
    return PasswordLink(password_link=call.services.users.new_password_link(call.value.id, by=call.by))


def _one_time_password(call: Call) -> OneTimePassword:
    return OneTimePassword(one_time_password=call.services.users.one_time_password(call.value.id, by=call.by))


_LIST = "/organizations/{organization}/users"
_PATH = "/users/{user}"
_WRITE: dict[str, Any] = {"permission": "user.write", "target": targets.user}

OPERATIONS = (
    Operation(
        name="list_users",
        method="GET",
        path=_LIST,
        summary="Lists the people of an organization, by user name unless said otherwise.",
        description="`q` is any part of a user name, login name, given or family name, or email address.",
        permission="user.read",
        target=targets.organization,
        handle=_list,
        answers=User,
        many=True,
        parameters=(*PAGED, SEARCH, STATES, sorted_by(ORDERS)),
    ),
    Operation(
        name="invite_user",
        method="POST",
        path=_LIST,
        summary="Creates a person's account; the answer carries a link or a one-time password, once.",
        permission="user.write",
        target=targets.organization,
        handle=_invite,
        command=InviteHumanUser,
        answers=InvitedUser,
        location="/users/{id}",
    ),
    Operation(
        name="show_user",
        method="GET",
        path=_PATH,
        summary="Shows a person's account.",
        permission="user.read",
        target=targets.user,
        handle=_show,
        answers=User,
    ),
    Operation(
        name="change_user",
        method="PATCH",
        path=_PATH,
        summary="Changes a person's user name and profile.",
        description="An email address or phone number that changes is no longer verified.",
        handle=_change,
        command=ChangeHumanUser,
        answers=User,
        **_WRITE,
    ),
    Operation(
        name="deactivate_user",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates an account: all sessions and tokens end at once.",
        handle=_deactivate,
        answers=User,
        **_WRITE,
    ),
    Operation(
        name="reactivate_user",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates an account.",
        handle=_reactivate,
        answers=User,
        **_WRITE,
    ),
    Operation(
        name="issue_password_link",
        method="POST",
        path=f"{_PATH}/password-link",
        summary="Makes a link by which the person chooses a password; the present one is valid until it is used.",
        handle=_password_link,
        answers=PasswordLink,
        **_WRITE,
    ),
    Operation(
        name="set_one_time_password",
        method="POST",
        path=f"{_PATH}/one-time-password",
        summary="Replaces the password by one to be changed at the next sign-in; sessions and tokens end at once.",
        handle=_one_time_password,
        answers=OneTimePassword,
        **_WRITE,
    ),
    Operation(
        name="unlock_user",
        method="POST",
        path=f"{_PATH}/unlock",
        summary="Forgets the wrong passwords that were tried at an account; nothing else changes.",
        description="After a hundred in a row a password counts only in browsers that signed in to the account before.",
        handle=_unlock,
        answers=User,
        **_WRITE,
    ),
    Operation(
        name="delete_user",
        method="DELETE",
        path=_PATH,
        summary="Deletes an account with its sessions, roles, grants and tokens.",
        permission="user.delete",
        target=targets.user,
        handle=_delete,
    ),
)
