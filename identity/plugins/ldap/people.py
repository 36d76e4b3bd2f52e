"""People: who of the directory is who of here, and what groups are worth."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import ClassVar

from identity.domain.errors import Conflict, DomainError, Invalid
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.records import NameSpace
from identity.domain.upstream_providers import USUAL_CLAIMS
from identity.domain.users import HumanUser, Profile, Subject
from identity.plugins.ldap.search import Entry, Search
from identity.plugins.ldap.settings import Settings
from identity.provider.directory import Directory
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands import decode
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.commands.users import ChangeProfile

_KIND = "person"
#: By what a linked entry is found.
_BY_ID, _BY_NAME = "i ", "n "


class People(Directory[Entry]):
    """The people of one organization. Somebody is the directory's by what names their entry for ever, never by name."""

    name: ClassVar[str] = "ldap"

    def __init__(self, settings: Settings, name_space: NameSpace, search: Search) -> None:
        self._settings = settings
        self._name_space = name_space
        self._search = search

    def knows(self, organization: Organization) -> bool:
        """True for the one of the settings."""
        return organization.primary_domain == self._settings.organization

    def link_of(self, subject: Subject, services: Services) -> str | None:
        """The entry's id; of accounts that were linked by older releases the name that it had then."""
        linked = services.records(self._name_space).of_owner(_KIND, user_id=subject.user.id)
        if not linked:
            return None
        entry_id, login = linked[0].value.get("id", ""), linked[0].value["login"]
        return f"{_BY_ID}{entry_id}" if entry_id else f"{_BY_NAME}{login}"

    def owner_of(self, found: Entry, services: Services) -> str | None:
        """Whose account is linked to the entry."""
        record = services.records(self._name_space).find(_KIND, found.id)
        return None if record is None else record.user_id

    def key_of(self, found: Entry) -> str:
        """What names the entry for ever."""
        return found.id

    def find(self, login_name: LoginName) -> Entry | None:
        """The entry of this name, which the filter compares as the directory does. Raises Absent."""
        return self._search.find(login_name.user_name)

    def find_linked(self, link: str) -> Entry | None:
        """The entry that ``link_of`` named. Raises Absent."""
        way, rest = link[: len(_BY_ID)], link[len(_BY_ID) :]
        return self._search.find_by_id(rest) if way == _BY_ID else self._search.find(rest)

    def verify(self, found: Entry | None, password: str) -> bool:
        """Whether the password is the entry's, by a bind as it. Raises Absent."""
        return self._search.verify(found, password)

    def take_as_long(self, login_name: LoginName) -> None:
        """A search, and a bind that fails; a second at most where the directory is slow."""
        self._search.take_as_long(login_name.user_name)

    def admit(self, found: Entry, subject: Subject | None, services: Services, *, hashed: str) -> Subject | None:
        """Whoever the entry is linked to; a new person, if nobody has the name. Of whom has it, it says nothing."""
        organization = services.storage.organizations.find_by_domain(self._settings.organization)
        if organization is None or not organization.active:
            return None
        record = services.records(self._name_space).find(_KIND, found.id)
        if record is not None:
            known = services.storage.users.find_subject(record.user_id or "")
            if known is None or not known.active or subject is None or subject.user.id != known.user.id:
                return None
            if "id" not in record.value:
                # Two that sign in at the same moment say the same.
                with suppress(Conflict):
                    services.records(self._name_space).replace(record, {**record.value, "id": found.id})
            person = self._refreshed(known, found, services)
        elif subject is None and self._settings.create_accounts:
            made = self._made(organization, found, services, hashed)
            if made is None:
                return None
            person = made
        else:
            return None
        self._give_roles(person, found, services)
        return person

    def _made(self, organization: Organization, found: Entry, services: Services, hashed: str) -> Subject | None:
        """A new account of the very name that was typed: by another one its person would never get in again."""
        if not services.registration.is_free(organization, found.login):
            return None
        profile = self._told(found).apply_to(Profile())
        made = services.registration.admit(organization, found.login, profile, hashed=hashed, exactly=True)
        value = {"login": found.login, "id": found.id}
        holder = services.records(self._name_space).add(_KIND, found.id, value, user_id=made.user.id)
        if holder is not None:
            raise Conflict("Somebody signs in with this entry at the same moment.")
        return made

    def _refreshed(self, known: Subject, found: Entry, services: Services) -> Subject:
        command, user = self._told(found), known.user
        if not isinstance(user, HumanUser) or command.apply_to(user.profile) == user.profile:
            return known
        with services.audit.acting(user.id), suppress(Conflict, Invalid):
            return Subject(services.users.change_profile(user.id, command), known.organization)
        return known

    def _told(self, found: Entry) -> ChangeProfile:
        """The profile as the directory has it; what breaks a rule is left out."""
        told: dict[str, object] = {}
        for line in self._settings.attributes:
            name, _, attribute = line.partition("=")
            value = found.attributes.get(attribute.lower(), "").strip()
            if name in USUAL_CLAIMS and name != "user_name" and value:
                with suppress(Invalid):
                    decode(ChangeProfile, {name: value})
                    told[name] = value
        return decode(ChangeProfile, told)

    def _give_roles(self, person: Subject, found: Entry, services: Services) -> None:
        """Roles of the table, as the groups have it; all others are left alone."""
        groups = {_compared(group) for group in found.groups}
        table = [(role, _compared(group) in groups) for role, _, group in (one.partition("=") for one in self._table)]
        managed = {role: has for role, has in _any(table).items() if "/" not in role}
        if managed:
            self._give_manager_roles(person, managed, services)
        by_project: dict[str, dict[str, bool]] = {}
        for role, has in _any(table).items():
            project_id, sign, key = role.partition("/")
            if sign:
                by_project.setdefault(project_id, {})[key] = has
        for project_id, keys in by_project.items():
            # A project or role that is gone, or is another organization's, is nobody's.
            with suppress(DomainError):
                self._give_project_roles(person, project_id, keys, services)

    @property
    def _table(self) -> tuple[str, ...]:
        return self._settings.roles

    def _give_manager_roles(self, person: Subject, table: Mapping[str, bool], services: Services) -> None:
        resource = organization_resource(person.organization.id)
        held = [one for one in services.storage.managers.of_user(person.user.id) if one.resource == resource.key]
        before = held[0].roles if held else frozenset[str]()
        after = _after(before, table)
        if after == before:
            return
        with suppress(DomainError):
            if not held:
                command = AddManager(user_id=person.user.id, roles=after)
                services.managers.add(resource, command, by=THE_OPERATOR)
            elif after:
                services.managers.change(held[0].id, ChangeManager(roles=after), by=THE_OPERATOR)
            else:
                services.managers.remove(held[0].id, by=THE_OPERATOR)

    def _give_project_roles(
        self, person: Subject, project_id: str, table: Mapping[str, bool], services: Services
    ) -> None:
        grants = services.storage.user_grants.page("user_id", person.user.id)
        held = [one for one in grants if one.project_id == project_id and one.project_grant_id is None]
        before = held[0].roles if held else frozenset[str]()
        after = _after(before, table)
        if after == before:
            return
        if not held:
            command = AddUserGrant(user_id=person.user.id, project_id=project_id, roles=after)
            services.user_grants.add(command, by=THE_OPERATOR)
        elif after:
            services.user_grants.change(held[0].id, ChangeUserGrant(roles=after), by=THE_OPERATOR)
        else:
            services.user_grants.remove(held[0].id, by=THE_OPERATOR)


def _any(table: Iterable[tuple[str, bool]]) -> dict[str, bool]:
    """One of several groups is enough."""
    found: dict[str, bool] = {}
    for role, has in table:
        found[role] = found.get(role, False) or has
    return found


def _after(before: frozenset[str], table: Mapping[str, bool]) -> frozenset[str]:
    return (before - table.keys()) | {role for role, has in table.items() if has}


def _compared(dn: str) -> str:
    """A distinguished name as it is compared: case and spaces around its parts mean nothing."""
    from ldap3.core.exceptions import LDAPInvalidDnError
    from ldap3.utils.dn import parse_dn

    try:
        parts = parse_dn(dn.replace("\\20", " "), strip=True)
    except LDAPInvalidDnError:
        return dn.casefold()
    return ",".join(f"{name.strip()}={value.strip()}" for name, value, _ in parts).casefold()
