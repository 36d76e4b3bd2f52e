"""Success messages for changes, derived from their audit events."""

from identity.domain.audit import AuditEvent
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import ManagerLevel
from identity.pages.event_labels import FLASH_MESSAGES
from identity.storage.backend import Storage


def event_message(event: AuditEvent, storage: Storage) -> str:
    """For a new manager it names the user, the roles and the resource."""
    if event.event == "manager.added":
        return _new_manager_message(event, storage) or FLASH_MESSAGES[event.event]
    return FLASH_MESSAGES[event.event]


def _new_manager_message(event: AuditEvent, storage: Storage) -> str | None:
    detail = event.detail
    resource, roles = detail.get("resource"), detail.get("roles")
    subject = storage.users.find_subject(str(detail.get("user_id", "")))
    if subject is None or not isinstance(resource, dict) or not isinstance(roles, list):
        return None
    name, role_names = subject.user.display_name, ", ".join(map(str, roles))
    resource_name = _resource_name(ManagerLevel(resource["level"]), str(resource["id"]), storage)
    if resource_name is None:
        return _("{name} is now {roles}.", name=name, roles=role_names)
    return _("{name} is now {roles} of {resource}.", name=name, roles=role_names, resource=resource_name)


def _resource_name(level: ManagerLevel, identifier: str, storage: Storage) -> str | None:
    if level is ManagerLevel.ORGANIZATION:
        organization = storage.organizations.find(identifier)
        return None if organization is None else organization.name
    if level is ManagerLevel.PROJECT_GRANT:
        grant = storage.project_grants.find(identifier)
        identifier = "" if grant is None else grant.project_id
    project = None if level is ManagerLevel.INSTANCE else storage.projects.find(identifier)
    return None if project is None else project.name
