"""Name and page of what managers manage."""

from collections.abc import Collection, Mapping

from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.resource_types import PROJECT_GRANT, project_grant_name


def load_resource_links(page: ConsolePage, keys: Collection[ResourceKey]) -> Mapping[ResourceKey, EntityLink]:
    """Name and page of each resource; deleted ones are missing."""
    storage = page.services.storage

    def ids_at(level: ManagerLevel) -> set[str]:
        return {key.id for key in keys if key.level is level}

    found = {
        key: EntityLink(page.translator.gettext("Instance"), f"{CONSOLE_PATH}/instance")
        for key in keys
        if key.level is ManagerLevel.INSTANCE
    }
    for organization in storage.organizations.find_many(ids_at(ManagerLevel.ORGANIZATION)).values():
        found[ResourceKey(ManagerLevel.ORGANIZATION, organization.id)] = EntityLink(
            organization.name, f"{CONSOLE_PATH}/organizations/{organization.id}"
        )
    grants = storage.project_grants.find_many(ids_at(ManagerLevel.PROJECT_GRANT))
    holders = storage.organizations.find_many({grant.organization_id for grant in grants.values()})
    projects = storage.projects.find_many(
        ids_at(ManagerLevel.PROJECT) | {grant.project_id for grant in grants.values()}
    )
    for key in keys:
        if key.level is ManagerLevel.PROJECT and key.id in projects:
            found[key] = EntityLink(projects[key.id].name, f"{CONSOLE_PATH}/projects/{key.id}")
        elif key.level is ManagerLevel.PROJECT_GRANT and key.id in grants:
            grant = grants[key.id]
            if grant.project_id in projects and grant.organization_id in holders:
                name = project_grant_name(projects[grant.project_id], holders[grant.organization_id])
                found[key] = EntityLink(page.translator.gettext_plain(name), PROJECT_GRANT.path_of(grant))
    return found
