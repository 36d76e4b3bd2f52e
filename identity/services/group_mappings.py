"""Group mappings: who saves them, and what they do at each sign-in.

A mapping adds members without a manager, so it acts with the rights that its last editor has at that moment, never as
the operator. Saving one takes the rights to change the identity provider, which decides what the claims are, and to
give every role of the group. At a sign-in the editor must still have all of these rights for a member to be added.
Removing takes none of them: a person leaves a group as soon as no mapping of the provider matches, and those who are
members by hand stay. Removing a mapping removes the members that it added.

Mappings belong to the organization of the provider, and so do their groups. If the provider serves other organizations,
too, their people are not affected.

A directory of the ini file stands in the place of a provider: its claims are the attributes of an entry. To control it
takes instance.write, see ``services/directories.py``. Mappings name it, so those of a directory that no longer serves
the organization do nothing, and act again if it comes back.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from identity.domain.errors import Invalid, NotFound
from identity.domain.group_mappings import MAX_GROUP_MAPPINGS, GroupMapping
from identity.domain.messages import gettext_lazy
from identity.domain.users import Subject
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroupMapping, ChangeGroupMapping
from identity.services.groups import GroupMemberService, GroupService
from identity.services.provider_mappings import MappingSource, ProviderMappingService, Refusal, source_fields


@dataclass(eq=False, repr=False)
class GroupMappingService(ProviderMappingService[GroupMapping]):
    """Values in the claims of identity providers that make people members of groups."""

    kind = "group_mapping"
    store = "group_mappings"

    _groups: GroupService
    _group_members: GroupMemberService

    def list_of_group(self, group_id: str) -> tuple[GroupMapping, ...]:
        """The mappings that fill the group, oldest first."""
        return self._storage.group_mappings.list_of_group(group_id)

    def add(self, source: MappingSource, command: AddGroupMapping, *, principal: Principal) -> GroupMapping:
        """Raises NotFound; Invalid for a group of another organization, a mapping that exists, or too many; Denied
        without the rights over provider and group."""
        group = self._storage.groups.find(command.group_id)
        if group is None or group.organization_id != source.organization_id:
            raise Invalid({"group_id": gettext_lazy("There is no such group in this organization.")})
        mapping = self._new_entity(
            GroupMapping,
            command,
            **source_fields(source),
            editor_id=principal.id,
        )
        self._require_saving(mapping, principal)
        existing = self.list_of_source(source)
        if len(existing) >= MAX_GROUP_MAPPINGS:
            raise Invalid(
                {"claim": gettext_lazy("There can be at most {n} group mappings here.", n=MAX_GROUP_MAPPINGS)}
            )
        _refuse_duplicate(mapping, existing)
        self._add("group_mapping.added", mapping, mapping.organization_id, parent=("group", group.id))
        return mapping

    def change(
        self,
        mapping_id: str,
        command: ChangeGroupMapping,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> GroupMapping:
        """Change claim or value, or only make the principal the editor. Members stay until they sign in. Raises
        NotFound, Invalid, Denied, Conflict."""
        before = self.get(mapping_id)
        self._require_saving(before, principal)
        after = self._next_version(before, command, expected_version=expected_version, editor_id=principal.id)
        _refuse_duplicate(after, self.list_of_source(self.get_source(before)))
        return self._update("group_mapping.changed", before, after)

    def count_members(self, *mappings: GroupMapping) -> Mapping[str, int]:
        """The number of members that each of these mappings added; those without are left out."""
        return self._storage.group_mappings.count_members([mapping.id for mapping in mappings])

    def apply(
        self,
        subject: Subject,
        source: MappingSource,
        claims: Mapping[str, Any],
        normalize: Callable[[str, str], str] = lambda claim, value: value,
    ) -> None:
        """Bring the memberships of a person who signs in with the source in line with these claims, which must all
        come from it. Values are compared as ``normalize`` returns them for the name of a claim."""
        mappings = self.list_of_source(source)
        if not mappings or subject.organization.id != source.organization_id:
            return
        matching = [mapping for mapping in mappings if mapping.matches(claims, normalize)]
        matching_ids, mapping_ids = {mapping.id for mapping in matching}, {mapping.id for mapping in mappings}
        groups = self._storage.groups.find_many({mapping.group_id for mapping in matching})
        group_ids: set[str] = set()
        refused: list[Refusal[GroupMapping]] = []
        with self._audit.acting_as(subject.user.id):
            for _, member in self._groups.list_of_user(subject.user.id):
                if member.mapping_id in mapping_ids - matching_ids:
                    # Another sign-in may have removed it.
                    with suppress(NotFound):
                        self._group_members.remove_mapped(member)
                else:
                    group_ids.add(member.group_id)
            for mapping in matching:
                if mapping.group_id in group_ids or mapping.group_id not in groups:
                    continue
                reason = self.refusal_reason(mapping)
                if reason is not None:
                    refused.append(Refusal(mapping, reason))
                    continue
                with suppress(NotFound):
                    self._group_members.add_mapped(mapping, groups[mapping.group_id], subject.user.id)
                group_ids.add(mapping.group_id)
            # Another mapping may have added the person.
            self._record_refusals(subject, source, [item for item in refused if item.mapping.group_id not in group_ids])

    def _require_target(self, mapping: GroupMapping, principal: Principal) -> None:
        """Raise Denied unless the principal may give every role of the group for ever."""
        self._groups.require_giving(self._groups.get(mapping.group_id), principal, None)


def _refuse_duplicate(mapping: GroupMapping, existing: tuple[GroupMapping, ...]) -> None:
    same = (mapping.claim, mapping.value, mapping.group_id)
    if any((item.claim, item.value, item.group_id) == same and item.id != mapping.id for item in existing):
        raise Invalid({"value": gettext_lazy("This mapping exists already.")})
