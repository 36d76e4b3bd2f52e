"""Projects, their roles, their grants to other organizations, and the roles given to users."""

from datetime import datetime

from identity.domain.entity import entity, made, once, setting, stamp
from identity.domain.names import name_problem
from identity.domain.rules import text_problem
from identity.domain.search import search_text
from identity.domain.words import say


def role_key_problem(key: str) -> str | None:
    """A role's key: it stands in claims, addresses and lists."""
    if not key or len(key) > 100 or any(character.isspace() or not character.isprintable() for character in key):
        return say("Use 1 to 100 printable characters without spaces.")
    # Browsers take such a step out of an address.
    return say("Use another key: this one cannot stand in an address.") if key in (".", "..") else None


@entity
class Project:
    """What applications and roles belong to.

    ``assert_roles`` puts the user's project roles into userinfo and introspection unasked; ``check_roles``
    refuses users who hold no role in the project.
    """

    id: str = made()
    organization_id: str = made()
    name: str = setting(
        rule=name_problem,
        label=say("Name"),
        hint=say("Shown to people who sign in to its applications, and in lists."),
    )
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    assert_roles: bool = setting(
        default=False,
        label=say("Role assertion"),
        hint=say(
            "Applications always receive the roles of users in user info and introspection, even if they do not ask for"
            " them."
        ),
        words={
            True: say("On: applications always receive the roles of users."),
            False: say("Off: applications receive roles if they ask for them."),
        },
    )
    check_roles: bool = setting(
        default=False,
        label=say("Role check"),
        hint=say("Users without a role in the project cannot sign in to its applications."),
        words={
            True: say("On: users without a role in the project cannot sign in to its applications."),
            False: say("Off: users need no role to sign in."),
        },
    )
    active: bool = made(default=True)
    version: int = stamp(default=1)

    @property
    def search_text(self) -> str:
        """Where searches look for it."""
        return search_text(self.name)


@entity
class ProjectRole:
    """A role that applications of the project understand; ``key`` never changes."""

    project_id: str = made()
    key: str = once(
        rule=role_key_problem,
        label=say("Role key"),
        hint=say(
            "What applications receive, without spaces. It cannot be changed later. For example {example}",
            example="editor",
        ),
        missing=say("Enter a key."),
    )
    display_name: str = setting(
        rule=name_problem,
        label=say("Display name"),
        hint=say("Shown to those who give the role."),
        missing=say("Enter a display name."),
    )
    group: str = setting(
        default="",
        rule=text_problem,
        label=say("Group"),
        hint=say("Roles of one group belong together, for example those of one application."),
    )
    version: int = stamp(default=1)


@entity
class ProjectGrant:
    """A project granted to another organization, with the roles which that organization may give on.

    Nobody asks that organization. It is ``accepted`` once somebody who gives roles there has made the grant, or has
    given a role from it: until then the project's applications are strangers to its people.
    """

    id: str = made()
    project_id: str = made()
    organization_id: str = made()
    roles: frozenset[str] = setting(each=role_key_problem)
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    accepted: bool = made(default=False)
    active: bool = made(default=True)
    version: int = stamp(default=1)


@entity
class UserGrant:
    """Project roles given to a user; ``project_grant_id`` is set where they derive from a project grant."""

    id: str = made()
    user_id: str = made()
    organization_id: str = made()
    project_id: str = made()
    roles: frozenset[str] = setting(each=role_key_problem)
    created_at: datetime = stamp()
    changed_at: datetime = stamp()
    project_grant_id: str | None = made(default=None)
    active: bool = made(default=True)
    version: int = stamp(default=1)
