"""LdapDirectory links entries to users and maps groups to roles."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import ClassVar

from identity.api.entities import (
    ClaimMapping,
    Conflict,
    DomainError,
    HumanUser,
    Invalid,
    Organization,
    Profile,
    Subject,
)
from identity.api.services import ChangeProfile, RecordNamespace, Services
from identity.api.sign_in import Directory, LoginName
from identity.plugins.ldap.client import LdapClient, LdapEntry
from identity.plugins.ldap.settings import LdapPluginSettings

_RECORD_KIND = "person"
#: Prefixes of the keys of linked entries.
_ID_KEY_PREFIX, _NAME_KEY_PREFIX = "i ", "n "


class LdapDirectory(Directory[LdapEntry]):
    """The users of one organization. A user is linked to the permanent id of an entry, never to its name."""

    name: ClassVar[str] = "ldap"

    def __init__(self, settings: LdapPluginSettings, name_space: RecordNamespace, search: LdapClient) -> None:
        self._settings = settings
        self._name_space = name_space
        self._search = search

    def serves_organization(self, organization: Organization) -> bool:
        return organization.primary_domain == self._settings.organization

    def linked_entry_id(self, subject: Subject, services: Services) -> str | None:
        """The entry's id; for links of older releases, its name at that time."""
        linked = services.record_service(self._name_space).list_by_owner(_RECORD_KIND, user_id=subject.user.id)
        if not linked:
            return None
        entry_id, login = linked[0].value.get("id", ""), linked[0].value["login"]
        return f"{_ID_KEY_PREFIX}{entry_id}" if entry_id else f"{_NAME_KEY_PREFIX}{login}"

    def linked_user_id(self, found: LdapEntry, services: Services) -> str | None:
        record = services.record_service(self._name_space).find(_RECORD_KIND, found.id)
        return None if record is None else record.user_id

    def entry_key(self, found: LdapEntry) -> str:
        """The permanent key of the entry."""
        return found.id

    def find_entry(self, login_name: LoginName) -> LdapEntry | None:
        """The entry with this name; the filter compares as the directory does. Raises DirectoryUnavailable."""
        return self._search.find_entry(login_name.user_name)

    def find_entry_by_id(self, link: str) -> LdapEntry | None:
        """The entry that ``linked_entry_id`` returned. Raises DirectoryUnavailable."""
        prefix, rest = link[: len(_ID_KEY_PREFIX)], link[len(_ID_KEY_PREFIX) :]
        return self._search.find_entry_by_id(rest) if prefix == _ID_KEY_PREFIX else self._search.find_entry(rest)

    def verify_password(self, found: LdapEntry | None, password: str) -> bool:
        """Verifies the password by a bind. Raises DirectoryUnavailable."""
        return self._search.verify_password(found, password)

    def read_values(self, found: LdapEntry, names: Collection[str]) -> Mapping[str, list[str]]:
        """Asks for these attributes and no others. Raises DirectoryUnavailable."""
        return self._search.read_values(found, names)

    def normalize_value(self, name: str, value: str) -> str:
        """Names of groups are compared as distinguished names, other values as they are."""
        return _normalize_dn(value) if name.lower() == self._settings.groups_attribute.lower() else value

    def check_servers(self) -> Iterable[tuple[str, str]]:
        """Raises DirectoryUnavailable if too many requests run."""
        return self._search.check_servers()

    def simulate_query(self, login_name: LoginName) -> None:
        """A search and a failing bind; at most a second if the directory is slow."""
        self._search.simulate_query(login_name.user_name)

    def provision_account(
        self, found: LdapEntry, subject: Subject | None, services: Services, *, hashed: str
    ) -> Subject | None:
        """The linked user, or a new one if the name is free. An existing user of that name is never linked."""
        organization = services.storage.organizations.find_by_domain(self._settings.organization)
        if organization is None or not organization.active:
            return None
        record = services.record_service(self._name_space).find(_RECORD_KIND, found.id)
        if record is not None:
            known = services.storage.users.find_subject(record.user_id or "")
            if known is None or not known.is_active or subject is None or subject.user.id != known.user.id:
                return None
            if "id" not in record.value:
                # Concurrent sign-ins write the same.
                with suppress(Conflict):
                    services.record_service(self._name_space).replace(record, {**record.value, "id": found.id})
            person = self._update_profile(known, found, services)
        elif subject is None and self._settings.create_accounts:
            account = self._create_account(organization, found, services, hashed)
            if account is None:
                return None
            person = account
        else:
            return None
        self._sync_roles(person, found, services)
        return person

    def _create_account(
        self, organization: Organization, ldap_entry: LdapEntry, services: Services, hashed: str
    ) -> Subject | None:
        """A new account with the entered name: with another one its user could not sign in again."""
        if not services.registration.is_user_name_free(organization, ldap_entry.login):
            return None
        profile = self._read_profile(ldap_entry).apply_to(Profile())
        subject = services.registration.provision_account(
            organization, ldap_entry.login, profile, hashed=hashed, exactly=True
        )
        value = {"login": ldap_entry.login, "id": ldap_entry.id}
        holder = services.record_service(self._name_space).add(
            _RECORD_KIND, ldap_entry.id, value, user_id=subject.user.id
        )
        if holder is not None:
            raise Conflict("Somebody signs in with this entry at the same moment.")
        return subject

    def _update_profile(self, known: Subject, ldap_entry: LdapEntry, services: Services) -> Subject:
        command, user = self._read_profile(ldap_entry), known.user
        if not isinstance(user, HumanUser) or command.apply_to(user.profile) == user.profile:
            return known
        with services.audit.acting_as(user.id), suppress(Conflict, Invalid):
            return Subject(services.users.change_profile(user.id, command), known.organization)
        return known

    def _read_profile(self, ldap_entry: LdapEntry) -> ChangeProfile:
        """The directory's profile without invalid values."""
        detail: dict[str, object] = {}
        for line in self._settings.attributes:
            name, _, attribute = line.partition("=")
            value = ldap_entry.attributes.get(attribute.lower(), "").strip()
            if name in ClaimMapping.DEFAULT and name != "user_name" and value:
                with suppress(Invalid):
                    ChangeProfile.decode({name: value})
                    detail[name] = value
        return ChangeProfile.decode(detail)

    def _sync_roles(self, person: Subject, ldap_entry: LdapEntry, services: Services) -> None:
        """Sync the roles in the table with the groups; other roles stay."""
        groups = {_normalize_dn(group) for group in ldap_entry.groups}
        table = [
            (role, _normalize_dn(group) in groups)
            for role, _, group in (item.partition("=") for item in self._settings.roles)
        ]
        managed = {role: has for role, has in _merge_mapping(table).items() if "/" not in role}
        if managed:
            with suppress(DomainError):
                services.managers.sync_roles(person, managed)
        by_project: dict[str, dict[str, bool]] = {}
        for role, has in _merge_mapping(table).items():
            project_id, sign, key = role.partition("/")
            if sign:
                by_project.setdefault(project_id, {})[key] = has
        for project_id, keys in by_project.items():
            # Skip a project or role that is deleted or belongs to another organization.
            with suppress(DomainError):
                services.user_grants.sync_roles(person.user.id, project_id, keys)


def _merge_mapping(table: Iterable[tuple[str, bool]]) -> dict[str, bool]:
    """A role is granted if any of its groups matches."""
    found: dict[str, bool] = {}
    for role, has in table:
        found[role] = found.get(role, False) or has
    return found


def _normalize_dn(dn: str) -> str:
    """A distinguished name for comparison: case and spaces around its parts are ignored."""
    from ldap3.core.exceptions import LDAPInvalidDnError
    from ldap3.utils.dn import parse_dn

    try:
        parts = parse_dn(dn.replace("\\20", " "), strip=True)
    except LDAPInvalidDnError:
        return dn.casefold()
    return ",".join(f"{name.strip()}={value.strip()}" for name, value, _ in parts).casefold()
