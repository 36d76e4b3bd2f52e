"""A user who is asked for consent to an application of another organization."""

from typing import Any

from identity.domain.applications import ConsentRule
from identity.domain.audit import AuditEvent
from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.services.commands.applications import ChangeApplication
from identity.testing.browser import Browser
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.world import World

CONSENT = "consent"


class ConsentScenario:
    """A user in a browser, and an application of another organization."""

    def __init__(self, world: World, *, organization: Organization | None = None, **members: Any) -> None:
        self.world = world
        self.home = world.make_organization()
        self.owner = organization or world.make_organization()
        self.person: HumanUser = world.make_human_user(self.home)
        self.project = world.make_project(self.owner)
        members = {"consent": ConsentRule.WHEN_FOREIGN, "name": "Invoices & more"} | members
        self.party = RelyingParty.register(world, project_id=self.project.id, **members)
        self.browser = Browser(world)
        self.browser.start_session(self.person)

    def ask(
        self, scope: str = "openid email", response_type: str = "code", **parameters: Any
    ) -> SentAuthorizationRequest:
        """Opens the application's authorization request."""
        authorization = self.party.new_request(response_type, scope=scope, **parameters)
        self.browser.open(authorization.url, initiator=self.party.origin)
        return authorization

    @property
    def asks(self) -> bool:
        """True if the consent page precedes the response."""
        return self.browser.sign_in_step == CONSENT

    def decide(self, decision: str = "allow") -> None:
        """Press the button."""
        self.browser.submit(button=("decision", decision))

    def agreed(self, scope: str = "openid email", **parameters: Any) -> ReceivedTokens:
        """Tokens of a sign-in whose consent page is confirmed."""
        authorization = self.ask(scope, **parameters)
        assert self.asks
        self.decide()
        return self.party.obtain_tokens(self.browser.page, authorization)

    def refused(
        self, error: str, scope: str = "openid email", *, decision: str | None = None, **parameters: Any
    ) -> None:
        """Checks that a sign-in ends with this error, immediately or after a decision."""
        authorization = self.ask(scope, **parameters)
        if decision:
            assert self.asks
            self.decide(decision)
        self.party.check_error_response(self.browser.page, authorization, error)

    def disconnect(self) -> None:
        """Revokes the consent on the account page."""
        self.browser.open(f"/account/applications/{self.party.client_id}/disconnect")
        self.browser.submit()

    def silently(self, scope: str = "openid email", **parameters: Any) -> ReceivedTokens:
        """Tokens of a sign-in that shows no page."""
        authorization = self.ask(scope, **parameters)
        assert not self.asks
        return self.party.obtain_tokens(self.browser.page, authorization)

    def change(self, **members: Any) -> None:
        """Change the application."""
        self.world.operator_services.applications.change(self.party.client_id, ChangeApplication(**members))

    def events(self) -> list[AuditEvent]:
        """Consent events of the application, newest first."""
        audit_events = self.world.audit_events(event="consent", object_id=self.party.client_id)
        for event in audit_events:
            assert event.actor.id == event.detail["user_id"] == self.person.id
            assert event.organization_id == self.home.id
        return list(audit_events)
