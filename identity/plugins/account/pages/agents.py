"""/account/agents: programs that act for the user. To create or confirm one requires a recent authentication."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup
from pyramid.response import Response

from identity.api.entities import ServiceUserKey
from identity.api.pages import Form, FormPage
from identity.plugins.account.pages.account_page import AGENTS_PATH, AccountPage

_STOP_FIELD = "stop"
_CONFIRM_FIELD, _ADD_KEY_FIELD, _REMOVE_KEY_FIELD = "confirm", "add_key", "remove_key"


class _AgentsPage(AccountPage, FormPage):
    section = AGENTS_PATH

    @property
    def agents(self) -> Any:
        return self.request.services.agents

    def state_badge(self, agent: Any) -> Markup:
        badge: Callable[[str, str], Markup] = self.template_macros.badge
        t = self.translator.gettext
        if not agent.active:
            return badge(t("Deactivated"), "danger")
        stopped = agent.stopped_at is not None
        return badge(t("Stopped") if stopped else t("Active"), "warning" if stopped else "success")

    def key_file_response(self, key_file: Any) -> Response:
        """A page with the key file, the only copy of the private key, so there is no redirect."""
        content = key_file.to_json()
        variables = {
            "content": content,
            "filename": f"agent-{key_file.key_id[:8]}.json",
            # To download it without a script.
            "file": "data:application/json;base64," + base64.b64encode(content.encode()).decode(),
            "back": f"{AGENTS_PATH}/{key_file.user_id}",
        }
        return self.render(variables, template="account/agent_key.html")


class AgentsPage(_AgentsPage):
    """One row per agent, and the button that stops them all."""

    template = "account/agents.html"

    def template_variables(self) -> Mapping[str, object]:
        found = self.agents.list_by_owner(self.subject.user.id)
        running = any(agent.stopped_at is None for agent in found)
        return {"agents": [(agent, self.state_badge(agent)) for agent in found], "running": running}

    def submit(self, form: Form) -> Response:
        """Stop all agents. This takes no more than the session."""
        if _STOP_FIELD in form:
            self.agents.stop_all(self.subject)
        return self.redirect(self.path_with_flash(AGENTS_PATH))


class NewAgentPage(_AgentsPage):
    """Creates an agent with its first key."""

    template = "account/agent_new.html"
    fields = ("display_name",)
    requires_recent_authentication = True

    def submit(self, form: Form) -> Response:
        return self.key_file_response(self.agents.create(self.signed_in_account, form.text("display_name").strip()))


class _AgentPage(_AgentsPage):
    """A page of one agent. 404 for one of another user."""

    requires_recent_authentication = True

    @property
    def agent(self) -> Any:
        return self.agents.get(self.subject, self.request.matchdict["agent_id"])

    def template_variables(self) -> Mapping[str, object]:
        agent = self.agent
        return {"agent": agent, "path": f"{AGENTS_PATH}/{agent.id}"}


class RemoveAgentPage(_AgentPage):
    """Asks for confirmation."""

    template = "account/agent_remove.html"

    def submit(self, form: Form) -> Response:
        self.agents.remove(self.subject, self.agent.id)
        return self.redirect(self.path_with_flash(AGENTS_PATH))


class AgentPage(_AgentPage):
    """Its keys, and what its owner can do with it."""

    template = "account/agent.html"

    def template_variables(self) -> Mapping[str, object]:
        agent = self.agent
        keys: tuple[ServiceUserKey, ...] = self.agents.list_keys(agent)
        return {**super().template_variables(), "state": self.state_badge(agent), "keys": keys}

    def submit(self, form: Form) -> Response:
        """Confirm the agent, or add or remove a key. Raises NotFound, Conflict."""
        agents, agent, path = self.agents, self.agent, f"{AGENTS_PATH}/{self.agent.id}"
        if _ADD_KEY_FIELD in form:
            return self.key_file_response(agents.add_key(self.signed_in_account, agent.id))
        if _CONFIRM_FIELD in form:
            agents.confirm(self.signed_in_account, agent.id)
        elif _REMOVE_KEY_FIELD in form:
            agents.remove_key(self.subject, agent.id, form.text(_REMOVE_KEY_FIELD))
        return self.redirect(self.path_with_flash(path))
