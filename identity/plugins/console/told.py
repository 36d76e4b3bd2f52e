"""What the console says after a change, by its audit event; of several events the first one here."""

from identity.domain.audit import AuditEvent
from identity.domain.permissions import Level
from identity.domain.words import say
from identity.storage.backend import Storage

TOLD = {
    # It goes before the many events of what was in the document.
    "organization.imported": say(
        "Organization imported. Hand its people links for new passwords, and its applications new secrets."
    ),
    "service_user.created": say("Service user created. Add a key so that a program can sign in."),
    "service_user.changed": say("The changes are saved."),
    "service_user.deactivated": say("Service user deactivated. Its tokens no longer work."),
    "service_user.reactivated": say("Service user reactivated."),
    "service_user.removed": say("Service user deleted."),
    "user.changed": say("The changes are saved."),
    "user.deactivated": say("User deactivated. All sessions and tokens have ended."),
    "user.reactivated": say("User reactivated."),
    "user.removed": say("User deleted."),
    "user.unlocked": say("User unlocked. The password counts in every browser again."),
    "session.ended": say("Signed out."),
    "consent.withdrawn": say("The application is disconnected."),
    "application.disconnected": say("The application is disconnected."),
    "service_user_key.added": say("Key added."),
    "service_user_key.removed": say("Key removed. Its tokens no longer work."),
    "service_user_secret.removed": say("Client secret ended. Its tokens no longer work."),
    "personal_access_token.removed": say("Personal access token removed. It no longer works."),
    "project.created": say("Project created. Register its first application."),
    "project.changed": say("The changes are saved."),
    "project.deactivated": say("Project deactivated. Its applications no longer work."),
    "project.reactivated": say("Project reactivated."),
    "project.removed": say("Project deleted."),
    "project_role.added": say("Role added."),
    "project_role.changed": say("The changes are saved."),
    "project_role.removed": say("Role deleted."),
    "application.created": say("Application registered."),
    "application.changed": say("The changes are saved."),
    "application.deactivated": say("Application deactivated. It gets no tokens any more."),
    "application.reactivated": say("Application reactivated."),
    "application.removed": say("Application deleted."),
    "client_secret.removed": say("Client secret ended."),
    "organization.created": say("Organization created. Add a manager who looks after it."),
    "organization.changed": say("The changes are saved."),
    "organization.deactivated": say("Organization deactivated. Nobody of it signs in."),
    "organization.reactivated": say("Organization reactivated."),
    "organization.removed": say("Organization deleted."),
    "domain.asked": say("Domain added. It counts once it is proven."),
    "domain.verified": say("The domain is proven. You can make it the primary one."),
    "domain.asserted": say("The domain is asserted."),
    "domain.removed": say("Domain removed."),
    "project_grant.added": say("Project granted. Managers of the organization can now give the roles to their users."),
    "project_grant.changed": say("The granted roles are changed."),
    "project_grant.deactivated": say("Project grant deactivated. Its users have no access."),
    "project_grant.reactivated": say("Project grant reactivated."),
    "project_grant.removed": say("Project grant withdrawn."),
    "user_grant.added": say("The roles are given."),
    "user_grant.changed": say("The roles are changed."),
    "user_grant.removed": say("The roles are taken."),
    "signing_key.added": say("The next signing key is made."),
    "manager.added": say("The manager role is given."),
    "manager.changed": say("The manager roles are changed."),
    "manager.removed": say("The manager roles are taken."),
}


def told_sentence(event: AuditEvent, storage: Storage) -> str:
    """The sentence for an event; a new manager's names who it is, what, and where."""
    if event.event == "manager.added":
        return _new_manager(event, storage) or TOLD[event.event]
    return TOLD[event.event]


def _new_manager(event: AuditEvent, storage: Storage) -> str | None:
    detail = event.detail
    resource, roles = detail.get("resource"), detail.get("roles")
    subject = storage.users.find_subject(str(detail.get("user_id", "")))
    if subject is None or not isinstance(resource, dict) or not isinstance(roles, list):
        return None
    name, held = subject.user.display_name, ", ".join(map(str, roles))
    place = _place(Level(resource["level"]), str(resource["id"]), storage)
    if place is None:
        return say("{name} is now {roles}.", name=name, roles=held)
    return say("{name} is now {roles} of {resource}.", name=name, roles=held, resource=place)


def _place(level: Level, identifier: str, storage: Storage) -> str | None:
    if level is Level.ORGANIZATION:
        organization = storage.organizations.find(identifier)
        return None if organization is None else organization.name
    if level is Level.PROJECT_GRANT:
        grant = storage.project_grants.find(identifier)
        identifier = "" if grant is None else grant.project_id
    project = None if level is Level.INSTANCE else storage.projects.find(identifier)
    return None if project is None else project.name
