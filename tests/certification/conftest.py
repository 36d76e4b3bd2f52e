"""The conformance suite's side: two clients, and one user in one browser.

A test names the modules of the OpenID Foundation's suite that it is equivalent to:
``@pytest.mark.modules("oidcc-server")``.
``plans.py`` lists the modules of each plan.
"""

from typing import Any

import pytest

from identity.domain.users import HumanUser
from identity.services.commands.users import ChangeAddress, ChangeProfile
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import ReceivedTokens, RelyingParty, SentAuthorizationRequest
from identity.testing.world import World
from tests.certification.plans import RESPONSE_TYPES

#: Standard claims of each scope (OpenID Connect Core §5.4) that the user has.
CLAIMS = {
    "profile": {
        "name", "family_name", "given_name", "middle_name", "nickname", "preferred_username", "profile", "picture",
        "website", "gender", "birthdate", "zoneinfo", "locale", "updated_at",
    },
    "email": {"email", "email_verified"},
    "address": {"address"},
    "phone": {"phone_number", "phone_number_verified"},
}  # fmt: skip

PROFILE = ChangeProfile(
    middle_name="King",
    nickname="Ada",
    display_name="Ada Lovelace",
    profile="https://people.example/ada",
    picture="https://people.example/ada.jpg",
    website="https://ada.example",
    gender="female",
    birthdate="1815-12-10",
    zoneinfo="Europe/London",
    locale="en-GB",
    email="ada@people.example",
    phone="+442071234567",
    address=ChangeAddress(street_address="12 St James's Square", locality="London", country="UK"),
)


class Suite:
    """One run of the suite: the clients it registers, and the user's actions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.first = RelyingParty.register(world, response_types=RESPONSE_TYPES)
        self.second = RelyingParty.register(
            world, authentication_method="client_secret_post", response_types=RESPONSE_TYPES
        )
        self.person = make_user_with_all_claims(world)
        self.login_name = set_password(world, self.person)
        self.browser = Browser(world)
        #: Pages shown in the last run through the authorization endpoint.
        self.pages: list[str] = []

    @property
    def endpoint(self) -> str:
        """The authorization endpoint."""
        url: str = self.world.client.discovery["authorization_endpoint"]
        return url

    def authorize(
        self,
        authorization: SentAuthorizationRequest,
        *,
        relying_party: RelyingParty | None = None,
        posted: bool = False,
    ) -> Any:
        """The response to the request, after the user completes every page."""
        sender = (relying_party or self.first).origin
        if posted:
            answer = self.browser.post_form(authorization.endpoint, dict(authorization.parameters), initiator=sender)
        else:
            answer = self.browser.open(authorization.url, initiator=sender)
        self.pages = []
        while self.browser.sign_in_step is not None:
            step = self.browser.sign_in_step
            self.pages.append(step)
            assert len(self.pages) < 5, self.pages
            if step == "consent":
                answer = self.browser.submit(button=("decision", "allow"))
            elif step == "accounts":
                answer = self.browser.select_account(self.person.user_name)
            else:
                answer = self.browser.sign_in(self.login_name)
        return answer

    def tokens(
        self, response_type: str = "code", *, relying_party: RelyingParty | None = None, **parameters: Any
    ) -> ReceivedTokens:
        """The tokens from the authorization endpoint and the token endpoint."""
        party = relying_party or self.first
        authorization = party.new_request(response_type, **parameters)
        return party.obtain_tokens(self.authorize(authorization, relying_party=party), authorization)


def make_user_with_all_claims(world: World) -> HumanUser:
    """A user with every standard claim."""
    person = world.make_human_user()
    return world.operator_services.users.change_profile(person.id, PROFILE)


@pytest.fixture
def suite(world: World) -> Suite:
    """A new run without a session."""
    return Suite(world)


@pytest.fixture
def own_suite(isolated_world: World) -> Suite:
    """A run against an isolated provider, for tests that change it."""
    return Suite(isolated_world)


@pytest.fixture
def claims_of() -> dict[str, set[str]]:
    """The claims that each scope opens."""
    return CLAIMS
