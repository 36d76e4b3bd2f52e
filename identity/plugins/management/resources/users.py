"""Users: people's accounts."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from identity.domain import users
from identity.domain.users import HumanUser, Profile
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.users import ChangeHumanUser, InviteHumanUser
from identity.services.users import UserState
from identity.storage.paging import Page
from identity.storage.stores.users import ORDERS, UserKind


@showing(users.Address)
class Address(Representation):
    """A postal address (OpenID Connect Core §5.1.1)."""


@showing(users.HumanUser, without={"profile", "registered"})
@showing(users.Profile)
class User(Representation):
    """A person's account with its profile (OpenID Connect Core §5.1); what is not known is empty."""

    moves: ClassVar[bool] = True

    id: str
    address: Address
    state: UserState


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


def _password_link(call: Call) -> PasswordLink:
    return PasswordLink(password_link=call.services.users.new_password_link(call.value.id, by=call.by))


def _one_time_password(call: Call) -> OneTimePassword:
    return OneTimePassword(one_time_password=call.services.users.one_time_password(call.value.id, by=call.by))


_USERS = Resource(
    kind="user",
    answers=User,
    path="/users/{user}",
    list_path="/organizations/{organization}/users",
    target=targets.user,
    owner=targets.organization,
    show=_shown,
)

OPERATIONS = (
    _USERS.lists(
        "Lists the people of an organization, by user name unless said otherwise.",
        _list,
        orders=ORDERS,
        description="`q` is any part of a user name, login name, given or family name, or email address.",
    ),
    _USERS.makes(
        "invite",
        "Creates a person's account; the answer carries a link or a one-time password, once.",
        InviteHumanUser,
        _invite,
        answers=InvitedUser,
    ),
    _USERS.shows("Shows a person's account."),
    _USERS.changes(
        "Changes a person's user name and profile.",
        ChangeHumanUser,
        description="An email address or phone number that changes is no longer verified.",
    ),
    _USERS.deactivates("Deactivates an account: all sessions and tokens end at once."),
    _USERS.reactivates("Reactivates an account."),
    _USERS.does(
        "password-link",
        "POST",
        "Makes a link by which the person chooses a password; the present one is valid until it is used.",
        _password_link,
        name="issue_password_link",
        answers=PasswordLink,
    ),
    _USERS.does(
        "one-time-password",
        "POST",
        "Replaces the password by one to be changed at the next sign-in, unless the policy says otherwise; sessions and"
        " tokens end at once.",
        _one_time_password,
        name="set_one_time_password",
        answers=OneTimePassword,
    ),
    _USERS.does(
        "unlock",
        "POST",
        "Forgets the wrong passwords that were tried at an account; nothing else changes.",
        lambda call: call.services.users.unlock(call.value.id, by=call.by),
        description="After a hundred in a row a password counts only in browsers that signed in to the account before.",
    ),
    _USERS.does(
        "keep",
        "POST",
        "Keeps an account whose person has asked for its deletion.",
        lambda call: call.services.deletions.withdraw_for(call.value.id, by=call.by),
        description="Until `deletion_at` the person can keep it, too, by signing in.",
    ),
    _USERS.removes("Deletes an account with its sessions, roles, grants and tokens."),
)
