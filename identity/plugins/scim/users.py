"""Users: people of the organization.

What the account has a field for is stored there, by the service of users, with its rules. The resource as sent is
a record of the plugin beside it: userName as written, externalId, and attributes without a field. A value that the
account's field cannot have, such as a time zone that does not exist, stays in the record alone. An account that SCIM
has never written has its login name as userName.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from scim2_models import Address, Context, GroupMembership, InvalidValueException, Name, PhoneNumber, Reference

from identity.domain.errors import Invalid, NotFound
from identity.domain.names import MAX_NAME_LENGTH, display_name_error, name_key, user_name_error
from identity.domain.users import Address as PostalAddress
from identity.domain.users import EmailVerifier, HumanUser
from identity.domain.validators import (
    locale_problem,
    multiline_text_error,
    phone_problem,
    text_problem,
    time_zone_error,
    url_error,
)
from identity.plugins.scim.collection import ResourceCollection, uniqueness_error
from identity.plugins.scim.kinds import EXTERNAL_ID_KIND, USER_KIND, USER_NAME_KIND
from identity.plugins.scim.schemas import POLICY, ScimEmail, UserResource
from identity.services.commands.users import ProvisionUser
from identity.storage.paging import PageRequest, iterate_rows
from identity.storage.stores.users import MAX_USERS_PER_EMAIL, UserKind

_Problem = Callable[[str], str | None]
#: Simple attributes: model field, field of the account's profile, and its rule.
_ATTRIBUTES: tuple[tuple[str, str, _Problem], ...] = (
    ("display_name", "display_name", text_problem),
    ("nick_name", "nickname", text_problem),
    ("profile_url", "profile", url_error),
    ("timezone", "zoneinfo", time_zone_error),
    ("locale", "locale", locale_problem),
)
_NAMES: tuple[tuple[str, str, _Problem], ...] = (
    ("given_name", "given_name", display_name_error),
    ("family_name", "family_name", display_name_error),
    ("middle_name", "middle_name", text_problem),
)
#: Parts of a postal address, which have the same names in both.
_ADDRESS: tuple[tuple[str, _Problem], ...] = (
    ("formatted", multiline_text_error),
    ("street_address", multiline_text_error),
    ("locality", text_problem),
    ("region", text_problem),
    ("postal_code", text_problem),
    ("country", text_problem),
)
_FORBIDDEN = re.compile(r"[\s@/\\]+")
_NUMBERS = 50


class UserCollection(ResourceCollection):
    """People; service users are no SCIM resources."""

    resource_type = "User"
    read_permission = "user.read"
    write_permission = "user.write"
    delete_permission = "user.delete"

    def get(self, id: str) -> Any:
        [resource] = self.load([self._get_user(id)])
        memberships = self.call.services.groups.list_of_user(id)
        resource.groups = [
            GroupMembership(
                value=group.id, ref=Reference(self.location(group.id, "Group")), display=group.name, type="direct"
            )
            for group, member in memberships
            if group.active and not member.has_ended(self.call.services.now)
        ] or None
        return resource

    def create(self, resource: Any) -> Any:
        users = self.call.services.users
        user_name, values = _required_name(resource), _profile_values(resource)
        self._refuse_taken_name(user_name, None)
        user = self._with_free_name(
            user_name,
            lambda name: users.create(
                self.organization_id,
                ProvisionUser.decode({**values, "user_name": name}),
                is_complete=False,
                verified_by=self._verifier,
            ),
        )
        self._store(user.id, None, resource)
        if resource.active is False:
            users.deactivate(user.id, principal=self.call.principal)
        return self.get(user.id)

    def save(self, id: str, before: Any, after: Any, *, is_replaced: bool) -> Any:
        users, principal = self.call.services.users, self.call.principal
        user = self._get_user(id)
        user_name, values = _required_name(after), _profile_values(after)
        change = partial(self._change, user, values)
        if name_key(user_name) == name_key(before.user_name):
            change(None)
        else:
            self._refuse_taken_name(user_name, id)
            self._with_free_name(user_name, change, except_user_id=id)
        self._store(id, before, after)
        if after.active is not None and after.active != user.active:
            (users.reactivate if after.active else users.deactivate)(id, principal=principal)
        return self.get(id)

    def delete(self, id: str) -> None:
        self.call.services.users.remove(self._get_user(id).id, principal=self.call.principal)

    def iterate(self) -> Iterator[HumanUser]:
        page = partial(self.call.services.storage.users.page, self.organization_id, UserKind.HUMAN)
        return (user for user in iterate_rows(page, PageRequest()) if isinstance(user, HumanUser))

    def load(self, entities: list[HumanUser]) -> list[Any]:
        records = self.call.records.find_many(USER_KIND, [user.id for user in entities])
        resources = []
        for user in entities:
            record = records.get(user.id)
            resource = _read_resource({} if record is None else record.value)
            resource.user_name = resource.user_name or self._login_name(user)
            _read_profile(resource, user)
            resource.id, resource.active = user.id, user.active
            resource.meta = self.meta(user, f'W/"{user.version}.{0 if record is None else record.version}"')
            resources.append(resource)
        return resources

    def find_indexed(self, attribute: str, value: str) -> list[HumanUser] | None:
        match attribute:
            case "id":
                return self._list_users(value)
            case "externalid":
                return self._list_users(self.find_index(EXTERNAL_ID_KIND, value))
            case "username":
                return self._list_users(self.find_index(USER_NAME_KIND, name_key(value))) or self._find_by_login(value)
            case "emails":
                subjects = self.call.services.storage.users.find_by_email(self.organization_id, value)
                people = [subject.user for subject in subjects if isinstance(subject.user, HumanUser)]
                return people if len(people) < MAX_USERS_PER_EMAIL else None
        return None

    # --- parts -------------------------------------------------------------------------------------------------------

    @property
    def _verifier(self) -> EmailVerifier | None:
        return EmailVerifier.MANAGER if self.call.verifies_emails else None

    def _get_user(self, id: str) -> HumanUser:
        user = self.call.services.users.get(id)
        if user.organization_id != self.organization_id:
            raise NotFound("user", id)
        return user

    def _list_users(self, id: str | None) -> list[HumanUser]:
        try:
            return [] if id is None else [self._get_user(id)]
        except NotFound:
            return []

    def _login_name(self, user: HumanUser) -> str:
        return f"{user.user_name}@{self.call.organization.primary_domain}"

    def _find_by_login(self, user_name: str) -> list[HumanUser]:
        """The account with this login name, unless SCIM gave it another userName."""
        local_part, at, domain = user_name.rpartition("@")
        if not at or name_key(domain) != self.call.organization.primary_domain:
            return []
        user = self.call.services.storage.users.find_by_name(self.organization_id, local_part)
        if not isinstance(user, HumanUser) or self.call.records.find(USER_KIND, user.id) is not None:
            return []
        return [user]

    def _refuse_taken_name(self, user_name: str, id: str | None) -> None:
        """Raise UniquenessException if another user has this userName. Racing requests are decided by ``_store``."""
        if any(user.id != id for user in self.find_indexed("username", user_name) or ()):
            raise uniqueness_error("userName", user_name)

    def _with_free_name(
        self, user_name: str, store: Callable[[str], HumanUser], *, except_user_id: str | None = None
    ) -> HumanUser:
        """Store the user with the first user name, derived from the SCIM userName, that is free."""
        for number in range(1, _NUMBERS):
            name = derive_user_name(user_name, number)
            found = self.call.services.storage.users.find_by_name(self.organization_id, name)
            if found is not None and found.id != except_user_id:
                continue
            try:
                return store(name)
            except Invalid as refusal:
                # Another user has just got it, or it would be another person's address.
                if refusal.fields.keys() != {"user_name"}:
                    raise
        raise uniqueness_error("userName", user_name)

    def _change(self, user: HumanUser, values: Mapping[str, object], user_name: str | None) -> HumanUser:
        command = ProvisionUser.decode(values if user_name is None else {**values, "user_name": user_name})
        return self.call.services.users.change(
            user.id,
            command,
            principal=self.call.principal,
            expected_version=user.version,
            # A person who has removed the verification would get it back.
            verified_by=self._verifier if command.email != user.profile.email else None,
        )

    def _store(self, id: str, before: Any, after: Any) -> None:
        """Store what was sent, and what finds it. Raises UniquenessException: one of racing requests succeeds."""
        stored = after.model_dump(scim_ctx=Context.RESOURCE_CREATION_REQUEST)
        stored.pop("active", None)
        self.store_value(USER_KIND, id, stored, user_id=id)
        names = (None if before is None else name_key(before.user_name), name_key(after.user_name))
        if self.move_index(USER_NAME_KIND, *names, id, user_id=id):
            raise uniqueness_error("userName", after.user_name)
        external_ids = (None if before is None else before.external_id, after.external_id)
        if self.move_index(EXTERNAL_ID_KIND, *external_ids, id, user_id=id):
            raise uniqueness_error("externalId", after.external_id)


def derive_user_name(user_name: str, number: int = 1) -> str:
    """A user name for a SCIM userName: of an address the part before the @, without characters that user names cannot
    have. From 2, a number is appended."""
    local_part, at, _ = user_name.rpartition("@")
    text = "".join(character for character in (local_part if at else user_name) if character.isprintable())
    for length in (MAX_NAME_LENGTH - 8, 40, 8):
        name = _FORBIDDEN.sub(".", name_key(text))[:length].strip(".") or "user"
        name = name if number == 1 else f"{name}{number}"
        if user_name_error(name) is None:
            return name
    return f"user{number}"


def _required_name(resource: Any) -> str:
    name: str = resource.user_name or ""
    if not name.strip() or len(name) > MAX_NAME_LENGTH * 2 or not name.isprintable():
        raise InvalidValueException(detail="userName must have 1 to 400 printable characters.")
    return name


def _read_resource(stored: Mapping[str, Any]) -> Any:
    with POLICY:
        return UserResource.model_validate(dict(stored))


def primary(entries: list[Any] | None) -> Any:
    """The entry that the account has: the primary one, else the first for work, else the first."""
    if not entries:
        return None
    for_work = next((entry for entry in entries if entry.type == "work"), entries[0])
    return next((entry for entry in entries if entry.primary), for_work)


def _fit(value: str | None, problem: _Problem) -> str:
    """The value, if the account's field can have it."""
    text = (value or "").strip()
    return "" if not text or problem(text) else text


def _profile_values(resource: Any) -> dict[str, object]:
    """The values of the account's fields. The address is not replaced by an empty one if it is invalid."""
    name, email = resource.name or Name(), primary(resource.emails)
    phone, address = primary(resource.phone_numbers), primary(resource.addresses) or Address()
    values: dict[str, object] = {field: _fit(getattr(resource, item), rule) for item, field, rule in _ATTRIBUTES}
    values |= {field: _fit(getattr(name, item), rule) for item, field, rule in _NAMES}
    values["locale"] = values["locale"] or _fit(resource.preferred_language, locale_problem)
    values["email"] = "" if email is None or email.value is None else email.value
    values["phone"] = "" if phone is None else _fit(phone.value, phone_problem)
    values["address"] = {part: _fit(getattr(address, part), rule) for part, rule in _ADDRESS}
    return values


def _merge(stored: str | None, value: str, problem: _Problem) -> str | None:
    """What the account has; what SCIM stored only if the account's field cannot have it."""
    return value or (stored if stored and not _fit(stored, problem) else None)


def _read_profile(resource: Any, user: HumanUser) -> None:
    """Set what the account has, which the person or a manager may have changed."""
    profile, name = user.profile, resource.name or Name()
    is_language = bool(resource.preferred_language) and not resource.locale
    for item, field, rule in _ATTRIBUTES:
        setattr(resource, item, _merge(getattr(resource, item), getattr(profile, field), rule))
    for item, field, rule in _NAMES:
        setattr(name, item, _merge(getattr(name, item), getattr(profile, field), rule))
    if is_language:
        # The account's locale came from it.
        language = _merge(resource.preferred_language, profile.locale, locale_problem)
        resource.locale, resource.preferred_language = None, language
    resource.name = name if any(getattr(name, item) for item in type(name).model_fields) else None
    resource.emails = _with_primary(resource.emails, profile.email, ScimEmail)
    phone = primary(resource.phone_numbers)
    number = profile.phone or (phone.value if phone is not None and not _fit(phone.value, phone_problem) else "")
    resource.phone_numbers = _with_primary(resource.phone_numbers, number or "", PhoneNumber)
    _read_address(resource, profile.address)


def _with_primary(entries: list[Any] | None, value: str, model: type[Any]) -> list[Any] | None:
    """The entries, with this value in the primary one; without that one for an empty value."""
    entry = primary(entries)
    if entry is None:
        return [model(value=value, type="work", primary=True)] if value else None
    if not value:
        return [item for item in entries or () if item is not entry] or None
    entry.value = value
    return entries


def _read_address(resource: Any, address: PostalAddress) -> None:
    entry = primary(resource.addresses)
    if entry is None:
        if address == PostalAddress():
            return
        entry = Address(type=Address.Type.work, primary=True)
        resource.addresses = [entry]
    for part, rule in _ADDRESS:
        setattr(entry, part, _merge(getattr(entry, part), getattr(address, part), rule))
    if not any(getattr(entry, part) for part, _ in _ADDRESS):
        resource.addresses = [item for item in resource.addresses if item is not entry] or None
