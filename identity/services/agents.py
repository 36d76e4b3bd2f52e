"""What people do with the agents that act for them."""

from dataclasses import dataclass
from datetime import timedelta

from identity.crypto.secrets import new_id
from identity.domain.errors import Conflict, Denied, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.service_user_keys import KeyFile, ServiceUserKey
from identity.domain.sessions import SignedInAccount
from identity.domain.users import Agent, HumanUser, ServiceUser, Subject
from identity.services.access_control import Principal
from identity.services.agent_rules import AgentRules
from identity.services.base import Service
from identity.services.commands.service_users import CreateAgent
from identity.services.service_users import ServiceUserService
from identity.services.users import UserService
from identity.storage.paging import iterate_rows

#: How many agents a person can have.
MAX_AGENTS = 20
#: How many keys an agent can have.
MAX_AGENT_KEYS = 5


@dataclass(eq=False, repr=False)
class AgentService(Service):
    """Agents of the person who is signed in. The page that calls has required an authentication in the last ten
    minutes, to create an agent or a key and to confirm one. The owner is mailed about each.

    Managers see the agents of a person, and stop them; they never create keys of an agent."""

    _rules: AgentRules
    _service_users: ServiceUserService
    _users: UserService

    def list_by_owner(self, owner_user_id: str) -> tuple[Agent, ...]:
        """The person's agents, oldest first."""
        return self._storage.users.list_agents(owner_user_id)

    def get(self, owner: Subject, agent_id: str) -> Agent:
        """Raises NotFound for an agent of another person."""
        found = self._storage.users.find(agent_id)
        if not isinstance(found, Agent) or found.owner_user_id != owner.user.id:
            raise NotFound("agent", agent_id)
        return found

    def list_keys(self, agent: Agent) -> tuple[ServiceUserKey, ...]:
        """Its live keys, newest first."""
        keys = iterate_rows(lambda request: self._storage.credentials.page(ServiceUserKey, agent.id, request))
        return tuple(key for key in keys if key.is_live(self._now))

    def create(self, account: SignedInAccount, display_name: str) -> KeyFile:
        """Create an agent with a key, and return its key file, the only copy of the private key. Raises Conflict if the
        person has too many, Invalid for a name that no agent can have, Denied if the person is not signed in any more.
        """
        owner = self._lock_owner(account)
        if len(self.list_by_owner(owner.id)) >= MAX_AGENTS:
            raise Conflict(gettext_lazy("You can have at most {n} agents. Remove one first.", n=MAX_AGENTS))
        values = {"user_name": f"agent-{new_id()[:13]}", "display_name": display_name}
        agent = self._service_users.create_agent(owner, CreateAgent.decode(values), confirmed=True)
        return self._service_users.create_agent_key(agent)

    def add_key(self, account: SignedInAccount, agent_id: str) -> KeyFile:
        """Create a further key. Raises NotFound; Conflict if there are too many; Denied as ``create``."""
        self._lock_owner(account)
        agent = self.get(account.subject, agent_id)
        if len(self.list_keys(agent)) >= MAX_AGENT_KEYS:
            raise Conflict(gettext_lazy("An agent can have at most {n} keys. Remove one first.", n=MAX_AGENT_KEYS))
        key_file = self._service_users.create_agent_key(agent)
        self._record("agent.key_added", agent)
        return key_file

    def remove_key(self, owner: Subject, agent_id: str, key_id: str) -> None:
        """Delete a key; the tokens obtained with it stop working. Raises NotFound."""
        self._service_users.remove_agent_key(self.get(owner, agent_id), key_id)

    def confirm(self, account: SignedInAccount, agent_id: str) -> ServiceUser:
        """Let a stopped agent act again. Raises NotFound; Conflict if it is stopped or changed at the same moment;
        Denied as ``create``."""
        self._lock_owner(account)
        return self._service_users.confirm_agent(self.get(account.subject, agent_id))

    def remove(self, owner: Subject, agent_id: str) -> None:
        """Raises NotFound; Conflict under a legal hold."""
        self._service_users.remove_agent(self.get(owner, agent_id))

    def stop_all(self, owner: Subject) -> int:
        """Stop all agents of the person at once, on their own request; returns their number."""
        return self._rules.stop_all(owner)

    def stop_all_of(self, user_id: str, *, principal: Principal) -> int:
        """The same by a manager of the person. Raises NotFound, Denied."""
        user = self._users.get_changeable(user_id, principal)
        return self._rules.stop_all(self._get_subject(user.id))

    def _lock_owner(self, account: SignedInAccount) -> HumanUser:
        """The owner, whose session cannot end before this transaction does: whatever stops the agents ends the session
        first, and then finds the new agent, too. Raises Denied."""
        self._storage.sessions.update_selected(account.session.id, self._now + timedelta(seconds=1))
        session = self._storage.sessions.find(account.session.id)
        user = self._storage.users.find(account.subject.user.id)
        if session is None or session.ended_at is not None or session.is_impersonated:
            raise Denied(gettext_lazy("You are not signed in any more. Sign in again."))
        if not isinstance(user, HumanUser) or not user.active or user.deletion_at is not None:
            raise Denied(gettext_lazy("Only people have agents."))
        return user

    def _record(self, event: str, agent: Agent) -> None:
        self._audit.record(
            event,
            kind="service_user",
            id=agent.id,
            organization_id=agent.organization_id,
            detail={"display_name": agent.display_name},
            user_id=agent.owner_user_id,
        )
