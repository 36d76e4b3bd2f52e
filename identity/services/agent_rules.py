"""What agents may do. Everything is judged at each use, from the rights that their owners have then."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from identity.domain.errors import Denied
from identity.domain.expirations import earliest
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import SIGN_IN_PERMISSIONS
from identity.domain.projects import UserGrant
from identity.domain.users import Agent, HumanUser, Subject, User
from identity.services.base import Service
from identity.storage.backend import Storage

#: Permissions that no agent has. With them it could create credentials, or decide how people and programs sign in, and
#: so go on as another account after it is stopped.
WITHHELD_PERMISSIONS = SIGN_IN_PERMISSIONS | {
    *("instance.write", "instance_manager.write", "signing_key.write", "webhook.write"),
    *("service_user.write", "application.write", "user.write", "user.impersonate"),
}


@dataclass(eq=False, repr=False)
class AgentRules(Service):
    """An agent acts only while its owner is active, and only for them."""

    def has_active_owner(self, subject: Subject | None) -> bool:
        """True for an agent whose owner can use their account, and for every other user."""
        if subject is None or not isinstance(subject.user, Agent):
            return True
        with self._look() as storage:
            return find_owner(storage, subject.user) is not None

    def limit_actor(
        self, actor: Subject | None, subject: Subject | None, audience: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """The audience that a token for the subject may have while this actor acts: without the management API if that
        is an agent. Raises Denied for an agent that acts for another person than its owner."""
        if actor is None or not isinstance(actor.user, Agent):
            return audience
        if subject is None or subject.user.id != actor.user.owner_user_id:
            raise Denied("An agent acts only for its owner.")
        return None if audience is None else self.without_management(audience)

    def without_management(self, audience: tuple[str, ...]) -> tuple[str, ...]:
        """The audience without the service's own project."""
        instance = self._instance()
        return tuple(item for item in audience if instance is None or item != instance.project_id)

    def stop_all(self, owner: Subject) -> int:
        """Stop the person's agents until the person confirms them, and revoke their tokens; returns their number. End
        the person's sessions before, if at all: an agent that is being created is then stopped, too."""
        if not isinstance(owner.user, HumanUser):
            return 0
        running = [agent for agent in self._storage.users.list_agents(owner.user.id) if agent.stopped_at is None]
        if not running:
            return 0
        self._storage.users.stop_agents(owner.user.id, self._now)
        for agent in running:
            self._storage.tokens.revoke_for_user(agent.id, self._now)
            self._audit.record(
                "agent.stopped",
                kind="service_user",
                id=agent.id,
                organization_id=agent.organization_id,
                detail={"display_name": agent.display_name},
                user_id=owner.user.id,
            )
        return len(running)


def find_owner(storage: Storage, agent: Agent) -> Subject | None:
    """The agent's owner, if they can use their account; None otherwise."""
    owner = storage.users.find_subject(agent.owner_user_id)
    if owner is None or not isinstance(owner.user, HumanUser) or not owner.is_active:
        return None
    is_staying = owner.user.deletion_at is None and owner.organization.id == agent.organization_id
    return owner if is_staying else None


def refuse_agent(user: User | None) -> None:
    """Raise Denied for an agent: it creates no credentials."""
    if isinstance(user, Agent):
        raise Denied(gettext_lazy("An agent cannot create credentials."))


def list_effective_grants(
    storage: Storage, user: User, project_ids: frozenset[str], now: datetime
) -> tuple[UserGrant, ...]:
    """The user's effective roles in these projects; of an agent those that its owner has as well."""
    grants = storage.user_grants.list_effective(user.id, project_ids, now)
    if not grants or not isinstance(user, Agent):
        return grants
    of_owner = storage.user_grants.list_effective(user.owner_user_id, project_ids, now)
    limited = (_limit(grant, of_owner) for grant in grants)
    return tuple(grant for grant in limited if grant.roles)


def _limit(grant: UserGrant, of_owner: Iterable[UserGrant]) -> UserGrant:
    """The grant with the roles that the owner has in the same project from the same organization, and for no longer."""
    granted_in = (grant.project_id, grant.organization_id)
    found = [item for item in of_owner if (item.project_id, item.organization_id) == granted_in]
    roles = grant.roles & {role for item in found for role in item.roles}
    return replace(grant, roles=roles, until=earliest((grant.until, *(item.until for item in found))))
