"""The contract that every grant type passes, as a pytest class to inherit from.

.. code-block:: python

    from identity.testing.grant_type_contract import GrantTypeContract, ValidTokenRequest

    class TestTicket(GrantTypeContract):
        grant_type = "urn:example:grant-type:ticket"

        @pytest.fixture
        def valid_request(self, world):
            return lambda: ValidTokenRequest({"ticket": a_new_ticket()})

``valid_request`` creates a new valid request each time it is called: a grant may accept its credentials only once.
The tests call the token endpoint of the fixture ``world`` (``identity.testing.fixtures``), so they run on every
storage. Override ``world`` if the grant needs other plugins or settings. Do not override tests.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest

from identity.provider.client_authentication import ClientAuthenticationMethod
from identity.provider.context import Context
from identity.provider.errors import OAuthError
from identity.provider.grant_type import ClientRequirement, GrantType, PreviewInput, PreviewUnsupported
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import World

#: Values that are no valid credentials for any grant, and that must not cause an internal error.
GARBAGE = (
    " ",
    "x",
    "..",
    "a.b.c",
    "-1",
    "null",
    "[]",
    '{"a": 1}',
    "\x00",
    "\x7f\x1b[0m",
    "%00%ff",
    "' OR ''='",
    "ß€\U0001f511",
    "\u202e\ufeff",
    "9" * 400,
    "A" * 16_000,
)

#: Errors allowed for a request with wrong credentials.
_REFUSALS = frozenset(
    {"invalid_request", "invalid_grant", "invalid_client", "invalid_scope", "invalid_target", "unauthorized_client"}
)


@dataclass(frozen=True)
class ValidTokenRequest:
    """A valid request: the grant's own parameters (without grant_type and scope), and required headers."""

    form: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)


TokenRequestFactory = Callable[[], ValidTokenRequest]


@pytest.mark.every_storage
class GrantTypeContract:
    """What every grant must accept and refuse, tested through the endpoint."""

    grant_type: ClassVar[str]
    #: Parameters without which no token is issued; by default all that the grant reads.
    required: ClassVar[frozenset[str] | None] = None
    #: True if a scope parameter without openid is refused (service description §4.3); False if it is granted as it is.
    openid_required: ClassVar[bool] = True
    #: The scope granted to a request without a scope parameter.
    default_scope: ClassVar[str] = "openid"
    #: False if the scopes were decided before, and a scope parameter is not read.
    reads_scope: ClassVar[bool] = True
    #: False if a scope parameter can only narrow an earlier grant: then an unknown scope is refused.
    drops_unknown_scopes: ClassVar[bool] = True
    #: True if credentials are valid for only one token response.
    is_single_use: ClassVar[bool] = False
    #: Parameters whose wrong value consumes valid credentials beside it.
    consuming_errors: ClassVar[frozenset[str]] = frozenset()

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        """A callable that creates a new valid request; if scopes were decided before, with ``openid`` only."""
        raise NotImplementedError("override the fixture 'right': it returns a callable that makes a TokenCall")

    @pytest.fixture
    def grant_type_object(self, world: World) -> GrantType:
        grants = world.identity.protocol_registry.grant_types
        assert self.grant_type in grants, f"no plugin of this world offers {self.grant_type}"
        return grants[self.grant_type]

    @pytest.fixture
    def send_request(self, world: World) -> Callable[..., Any]:
        """``send_request(call, scope="openid", **changed)`` sends the request; a changed parameter that is None is
        left out.
        """

        def ask(call: ValidTokenRequest, scope: str | None = "openid", **changed: str | None) -> Any:
            form = {"grant_type": self.grant_type, "scope": scope, **call.form, **changed}
            return world.client.request_token(
                {name: value for name, value in form.items() if value is not None}, call.headers
            )

        return ask

    def test_grant_type_is_in_discovery(self, world: World) -> None:
        assert self.grant_type in world.client.discovery["grant_types_supported"]

    def test_declares_read_parameters(self, grant_type_object: GrantType) -> None:
        assert isinstance(grant_type_object.client_requirement, ClientRequirement)
        assert not grant_type_object.parameters & {"grant_type", "scope"}
        assert grant_type_object.repeatable_parameters <= grant_type_object.parameters
        assert self._required(grant_type_object) <= grant_type_object.parameters

    def test_valid_request_is_granted(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        members = check_token_response(send_request(valid_request()))
        assert members["scope"] == "openid"
        assert members["expires_in"] > 0

    def test_the_access_token_is_recorded(
        self, world: World, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        members = check_token_response(send_request(valid_request()))
        with world.read_only_services() as services:
            issued = services.tokens.find_live_access_token(members["access_token"])
        assert issued is not None
        assert issued.token.scope == ("openid",)
        assert int((issued.token.expires_at - issued.token.issued_at).total_seconds()) == members["expires_in"]

    def test_each_request_gets_another_token(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        first, second = (check_token_response(send_request(valid_request()))["access_token"] for _ in range(2))
        assert first != second

    def test_a_missing_or_empty_parameter_is_an_invalid_request(
        self, grant_type_object: GrantType, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        for name in sorted(self._required(grant_type_object)):
            for value in (None, ""):
                answer = send_request(valid_request(), **{name: value})
                check_oauth_error(answer, "invalid_request", description=f"parameter {name} is missing")

    def test_a_repeated_parameter_is_an_invalid_request(
        self, world: World, grant_type_object: GrantType, valid_request: TokenRequestFactory
    ) -> None:
        for name in sorted(
            (grant_type_object.parameters - grant_type_object.repeatable_parameters) | {"grant_type", "scope"}
        ):
            call = valid_request()
            form = {"grant_type": self.grant_type, "scope": "openid", **call.form}
            if name in form:
                answer = world.client.request_token([*form.items(), (name, form[name])], call.headers)
                check_oauth_error(answer, "invalid_request", description=f"parameter {name} was given twice")

    def test_parameters_in_the_address_are_not_read(self, world: World, valid_request: TokenRequestFactory) -> None:
        call = valid_request()
        query = urlencode({"grant_type": self.grant_type, "scope": "openid", **call.form})
        answer = world.client.post(f"{world.client.discovery['token_endpoint']}?{query}", {}, call.headers)
        check_oauth_error(answer, "invalid_request")

    def test_garbage_is_refused(
        self, grant_type_object: GrantType, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        for name in sorted(self._required(grant_type_object)):
            for value in GARBAGE:
                answer = send_request(valid_request(), **{name: value})
                assert answer.status_int in (400, 401), f"{name}={value[:20]!r}: {answer}"
                assert answer.json["error"] in _REFUSALS, f"{name}={value[:20]!r}: {answer}"

    def test_unknown_parameters_are_ignored(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        check_token_response(send_request(valid_request(), unheard_of="1"))

    def test_an_unknown_scope_is_dropped(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        answer = send_request(valid_request(), "openid unheard_of:scope")
        if self.drops_unknown_scopes:
            assert check_token_response(answer)["scope"] == "openid"
        else:
            check_oauth_error(answer, "invalid_scope")

    def test_a_scope_asked_twice_is_granted_once(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        assert check_token_response(send_request(valid_request(), "openid openid"))["scope"] == "openid"

    def test_a_malformed_scope_is_refused(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        self._check_bad_scope(send_request(valid_request(), 'openid "quoted"'))

    def test_a_project_that_does_not_exist_is_refused(
        self, world: World, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        scope = world.audience_scope("no-such-project")
        self._check_bad_scope(send_request(valid_request(), f"openid {scope}"))

    def test_a_scope_without_openid(self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]) -> None:
        answer = send_request(valid_request(), "profile")
        if self.openid_required:
            self._check_bad_scope(answer)
        else:
            members = check_token_response(answer)
            assert members["scope"] == "profile"
            assert "id_token" not in members

    def test_missing_scope_uses_default(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        members = check_token_response(send_request(valid_request(), None))
        assert members.get("scope", "") == self.default_scope

    def test_client_requirement_is_enforced(
        self,
        world: World,
        grant_type_object: GrantType,
        valid_request: TokenRequestFactory,
        send_request: Callable[..., Any],
    ) -> None:
        call = valid_request()
        if grant_type_object.client_requirement is ClientRequirement.NONE:
            # Common clients send client_id beside other credentials.
            check_token_response(send_request(call, client_id="somebody"))
            return
        # Public clients send their client_id in the form, and others may send their secret there.
        nameless = {
            name: value
            for name, value in call.form.items()
            if name not in ("client_id", *ClientAuthenticationMethod.CREDENTIAL_PARAMETERS)
        }
        check_oauth_error(send_request(ValidTokenRequest(nameless)), "invalid_client", status=401)
        stranger = world.make_application()
        refused = send_request(ValidTokenRequest(nameless, {**call.headers, "Authorization": stranger.header}))
        check_oauth_error(refused, "unauthorized_client")
        if grant_type_object.client_requirement is ClientRequirement.REQUIRED:
            # A service user has no registered grant types.
            service_user = world.make_service_user_secret(world.make_service_user_program())
            refused = send_request(ValidTokenRequest(nameless, {**call.headers, "Authorization": service_user.header}))
            check_oauth_error(refused, "unauthorized_client")

    def test_error_does_not_consume_credentials(
        self, grant_type_object: GrantType, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        call = valid_request()
        for name in sorted(self._required(grant_type_object) - self.consuming_errors):
            send_request(call, **{name: "wrong"})
        check_token_response(send_request(call))

    def test_only_success_consumes_credentials(
        self, valid_request: TokenRequestFactory, send_request: Callable[..., Any]
    ) -> None:
        """Only a token response, if credentials are single-use, and parameters in consuming_errors."""
        call = valid_request()
        check_token_response(send_request(call))
        if self.is_single_use:
            check_oauth_error(send_request(call), "invalid_grant")
        else:
            check_token_response(send_request(call))
        for name in sorted(self.consuming_errors):
            call = valid_request()
            check_oauth_error(send_request(call, **{name: "wrong"}), "invalid_grant")
            check_oauth_error(send_request(call), "invalid_grant")

    def test_preview_matches_its_input(self, world: World, grant_type_object: GrantType) -> None:
        """A preview may be unsupported or not apply. It runs on a read connection."""
        person, robot, credentials = (
            world.make_human_user(),
            world.make_service_user_program(),
            world.make_application(),
        )
        with world.read_only_services() as services:
            identity, storage = world.identity, services.storage
            context = Context(
                services.now, identity.settings, identity.protocol_registry, lambda: identity.pyoidc_provider, services
            )
            subjects = [None, storage.users.find_subject(person.id), storage.users.find_subject(robot.id)]
            clients = [None, storage.applications.find_client(credentials.client_id)]
            for subject, client in product(subjects, clients):
                for scopes in ((), ("openid",), ("profile",), ("openid", '"quoted"')):
                    authorization = None
                    with suppress(PreviewUnsupported, OAuthError):
                        supposed = PreviewInput(subject=subject, client=client, requested_scopes=scopes)
                        authorization = grant_type_object.preview(supposed, context)
                    if authorization is not None:
                        assert authorization.subject in (None, subject)
                        assert authorization.client in (None, client)
                        assert authorization.subject or authorization.client

    def _check_bad_scope(self, answer: Any) -> None:
        """Refused, or ignored if no scope parameter is read."""
        if self.reads_scope:
            check_oauth_error(answer, "invalid_scope")
        else:
            assert check_token_response(answer)["scope"] == self.default_scope

    def _required(self, grant: GrantType) -> frozenset[str]:
        return grant.parameters if self.required is None else self.required
