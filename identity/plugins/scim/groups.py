"""Groups: the groups of the organization that the console shows, with the people in them.

A membership is added by the service of groups, which refuses it unless the caller may give every role of the group
(service description §14.4). SCIM removes the memberships that it added, and no others: those of managers and of group
mappings stay until they are removed where they were made. A PATCH that removes such a member is refused; a
replacement leaves them in the group.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from scim2_models import InvalidValueException, MutabilityException, Reference, TooManyException

from identity.domain.errors import Invalid, NotFound
from identity.domain.groups import Group, GroupMember
from identity.domain.names import MAX_NAME_LENGTH
from identity.domain.users import HumanUser
from identity.plugins.scim.collection import ResourceCollection, content_version, uniqueness_error
from identity.plugins.scim.kinds import EXTERNAL_ID_KIND, GROUP_KIND, MEMBER_KIND
from identity.plugins.scim.schemas import GroupResource, ScimGroupMember
from identity.services.commands.groups import AddGroup, AddGroupMember, ChangeGroup
from identity.storage.paging import PageRequest, iterate_rows

#: Most members in one response, of all groups together.
_MAX_MEMBERS = 20_000
_SELECTED_MEMBER = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]', re.IGNORECASE)


class GroupCollection(ResourceCollection):
    """Service users in a group are not visible as members, and stay."""

    resource_type = "Group"
    read_permission = "group.read"
    write_permission = delete_permission = "group.write"

    #: False if the response leaves out members, so that they are not read.
    includes_members = True

    def get(self, id: str) -> Any:
        [resource] = self.load([self._get_group(id)])
        return resource

    def create(self, resource: Any) -> Any:
        command = AddGroup.decode({"name": resource.display_name or ""})
        try:
            group = self.call.services.groups.add(self.organization_id, command, principal=self.call.principal)
        except Invalid as refusal:
            raise self._name_error(refusal, resource) from None
        self._store(group.id, None, resource)
        self._add_members(group.id, _member_ids(resource))
        return self.get(group.id)

    def save(self, id: str, before: Any, after: Any, *, is_replaced: bool) -> Any:
        group = self._get_group(id)
        if after.display_name != before.display_name:
            command = ChangeGroup.decode({"name": after.display_name or ""})
            try:
                self.call.services.groups.change(id, command, principal=self.call.principal)
            except Invalid as refusal:
                raise self._name_error(refusal, after) from None
        self._store(id, before, after)
        former, requested = _member_ids(before), _member_ids(after)
        removed = former.keys() - requested.keys()
        members = [member for member in self._list_memberships(group) if member.user_id in removed] if removed else []
        self._remove_members(members, is_replaced=is_replaced)
        self._add_members(id, {user_id: None for user_id in requested if user_id not in former})
        return self.get(id)

    def change_members(self, id: str, changes: Mapping[str, bool]) -> None:
        """Add and remove users without reading the other members. Raises DomainError, SCIMException."""
        group, services = self._get_group(id), self.call.services
        for user_id, is_added in changes.items():
            memberships = [member for item, member in services.groups.list_of_user(user_id) if item.id == group.id]
            live = [member for member in memberships if not member.has_ended(services.now)]
            if is_added and not live:
                self._add_members(id, {user_id: None})
            if not is_added:
                self._remove_members(live, is_replaced=False)

    def delete(self, id: str) -> None:
        self.call.services.groups.remove(self._get_group(id).id, principal=self.call.principal)
        record = self.call.records.consume(GROUP_KIND, id)
        if record is not None and record.value.get("externalId"):
            self.call.records.delete(EXTERNAL_ID_KIND, self.index_key(record.value["externalId"]))

    def iterate(self) -> Iterator[Group]:
        return iterate_rows(partial(self.call.services.storage.groups.page, self.organization_id))

    def load(self, entities: list[Group]) -> list[Any]:
        records = self.call.records.find_many(GROUP_KIND, [group.id for group in entities])
        resources, count = [], 0
        for group in entities:
            record = records.get(group.id)
            external_id = None if record is None else record.value.get("externalId")
            resource = GroupResource(id=group.id, external_id=external_id, display_name=group.name)
            version = None
            if self.includes_members:
                resource.members = self._list_members(group) or None
                count += len(resource.members or ())
                if count > _MAX_MEMBERS:
                    raise TooManyException(detail=f"There are more than {_MAX_MEMBERS} members. Exclude them.")
                version = content_version(resource)
            resource.meta = self.meta(group, version)
            resources.append(resource)
        return resources

    def find_indexed(self, attribute: str, value: str) -> list[Group] | None:
        services = self.call.services
        match attribute:
            case "id":
                return self._list_groups(value)
            case "externalid":
                return self._list_groups(self.find_index(EXTERNAL_ID_KIND, value))
            case "displayname" if len(value) > MAX_NAME_LENGTH:
                return []
            case "displayname":
                page = partial(services.storage.groups.page, self.organization_id)
                return list(iterate_rows(page, PageRequest(query=value)))
            case "members":
                groups = [group for group, _ in services.groups.list_of_user(value)]
                return [group for group in groups if group.organization_id == self.organization_id]
        return None

    # --- parts -------------------------------------------------------------------------------------------------------

    def _get_group(self, id: str) -> Group:
        group = self.call.services.groups.get(id)
        if group.organization_id != self.organization_id:
            raise NotFound("group", id)
        return group

    def _list_groups(self, id: str | None) -> list[Group]:
        try:
            return [] if id is None else [self._get_group(id)]
        except NotFound:
            return []

    def _list_memberships(self, group: Group) -> list[GroupMember]:
        return list(iterate_rows(partial(self.call.services.group_members.page, group.id)))

    def _list_members(self, group: Group) -> list[ScimGroupMember]:
        services = self.call.services
        ids = [member.user_id for member in self._list_memberships(group) if not member.has_ended(services.now)]
        people = services.storage.users.find_many(ids)
        return [
            ScimGroupMember(value=id, ref=Reference(self.location(id, "User")), type="User")
            for id in sorted(ids)
            if isinstance(people.get(id), HumanUser)
        ]

    def _add_members(self, group_id: str, user_ids: dict[str, None]) -> None:
        for user_id in user_ids:
            command = AddGroupMember(user_id=user_id)
            try:
                member = self.call.services.group_members.add(group_id, command, principal=self.call.principal)
            except Invalid:
                raise InvalidValueException(
                    detail=f"There is no user {user_id[:100]} in the organization, or they are a member whose "
                    "membership has ended."
                ) from None
            self.call.records.add(MEMBER_KIND, member.id, {}, user_id=user_id)

    def _remove_members(self, members: list[GroupMember], *, is_replaced: bool) -> None:
        added = self.call.records.find_many(MEMBER_KIND, [member.id for member in members])
        if len(added) < len(members) and not is_replaced:
            raise MutabilityException(
                attribute="members",
                detail="A manager or a group mapping added this member. Remove the member where they were added.",
            )
        for member in members:
            if member.id in added:
                self.call.services.group_members.remove(member.id, principal=self.call.principal)
                self.call.records.delete(MEMBER_KIND, member.id)

    def _store(self, id: str, before: Any, after: Any) -> None:
        external_ids = (None if before is None else before.external_id, after.external_id)
        if external_ids[0] == external_ids[1]:
            return
        self.store_value(GROUP_KIND, id, {"externalId": after.external_id})
        holder = self.move_index(EXTERNAL_ID_KIND, *external_ids, id)
        if holder is None:
            return
        if self._list_groups(str(holder.value["id"])):
            raise uniqueness_error("externalId", after.external_id)
        # The group of the record was removed in the console.
        self.call.records.replace(holder, {"id": id})

    def _name_error(self, refusal: Invalid, resource: Any) -> Exception:
        name = resource.display_name or ""
        is_taken = any(group.name.lower() == name.lower() for group in self.find_indexed("displayname", name) or ())
        return uniqueness_error("displayName", name) if is_taken else refusal


def _member_ids(resource: Any) -> dict[str, None]:
    """The members' user ids, each once and in order."""
    ids: dict[str, None] = {}
    for member in resource.members or ():
        if not member.value or (member.type or "User") != "User":
            raise InvalidValueException(detail="Members must be users, by the id of each in value.")
        ids[member.value] = None
    return ids


def read_member_changes(operations: list[dict[str, Any]]) -> dict[str, bool] | None:
    """The users whom a PATCH request adds (True) or removes; None if it does anything else."""
    changes: dict[str, bool] = {}
    for operation in operations:
        op, path, value = str(operation.get("op")).lower(), operation.get("path", ""), operation.get("value")
        selected = _SELECTED_MEMBER.fullmatch(path)
        if selected is not None and op == "remove":
            changes[selected[1]] = False
            continue
        if path.lower() != "members" or op not in ("add", "remove") or not isinstance(value, list) or not value:
            return None
        for item in value:
            id = item.get("value") if isinstance(item, dict) and item.get("type", "User") == "User" else None
            if not isinstance(id, str) or not id:
                return None
            changes[id] = op == "add"
    return changes
