"""The contract that every grant type passes, as a pytest class to inherit from.

    from identity.testing.grant_contract import GrantContract, TokenCall

    class TestTicket(GrantContract):
        grant_type = "urn:example:grant-type:ticket"

        @pytest.fixture
        def right(self, world):
            return lambda: TokenCall({"ticket": a_new_ticket()})

``right`` makes a new right request each time it is called: a grant may accept its credentials once only. The tests
speak to the token endpoint of the fixture ``world`` (``identity.testing.fixtures``), so they run on every storage.
Override ``world`` where the grant needs other plugins or settings than the usual ones. No test is to be overridden.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest

from identity.provider.client_authentication import CREDENTIALS
from identity.provider.context import Context
from identity.provider.errors import OAuthError
from identity.provider.grant import ClientRule, Grant, NoPreview, Supposed
from identity.testing.responses import check_granted, check_refused
from identity.testing.world import World

#: Values that no grant can take for credentials, and that must not upset it.
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

#: Refusals that a request with wrong credentials may meet.
_REFUSALS = frozenset(
    {"invalid_request", "invalid_grant", "invalid_client", "invalid_scope", "invalid_target", "unauthorized_client"}
)


@dataclass(frozen=True)
class TokenCall:
    """A right request: the grant's own parameters (without grant_type and scope), and the headers it needs."""

    form: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)


MakeCall = Callable[[], TokenCall]


@pytest.mark.every_storage
class GrantContract:
    """What every grant must do and refuse, seen from outside."""

    grant_type: ClassVar[str]
    #: The parameters without which there can be no token; by default all that the grant reads.
    required: ClassVar[frozenset[str] | None] = None
    #: True if a scope parameter without openid is refused (service description §4.3); False if it is granted as it is.
    openid_required: ClassVar[bool] = True
    #: The scope that a request without a scope parameter gets.
    default_scope: ClassVar[str] = "openid"
    #: False if the scopes were settled before, and a scope parameter is not read.
    reads_scope: ClassVar[bool] = True
    #: False if a scope parameter can only narrow what was granted before: then an unknown scope is refused.
    drops_unknown_scopes: ClassVar[bool] = True
    #: True if credentials are good for one token answer.
    single_use: ClassVar[bool] = False
    #: Parameters whose wrong value uses up the right credentials beside it.
    unforgiving: ClassVar[frozenset[str]] = frozenset()

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        """A callable that makes a new right request; if scopes were settled before, with ``openid`` alone."""
        raise NotImplementedError("override the fixture 'right': it returns a callable that makes a TokenCall")

    @pytest.fixture
    def grant(self, world: World) -> Grant:
        """The grant under test, as the plugins offer it."""
        grants = world.identity.protocol.grants
        assert self.grant_type in grants, f"no plugin of this world offers {self.grant_type}"
        return grants[self.grant_type]

    @pytest.fixture
    def ask(self, world: World) -> Callable[..., Any]:
        """``ask(call, scope="openid", **changed)`` sends the request; a changed parameter that is None is left out."""

        def ask(call: TokenCall, scope: str | None = "openid", **changed: str | None) -> Any:
            form = {"grant_type": self.grant_type, "scope": scope, **call.form, **changed}
            return world.client.token({name: value for name, value in form.items() if value is not None}, call.headers)

        return ask

    def test_it_is_in_the_discovery_document(self, world: World) -> None:
        assert self.grant_type in world.client.discovery["grant_types_supported"]

    def test_it_declares_what_it_reads(self, grant: Grant) -> None:
        assert isinstance(grant.client, ClientRule)
        assert not grant.parameters & {"grant_type", "scope"}
        assert grant.repeatable <= grant.parameters
        assert self._required(grant) <= grant.parameters

    def test_a_right_request_is_granted(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        members = check_granted(ask(right()))
        assert members["scope"] == "openid"
        assert members["expires_in"] > 0

    def test_the_access_token_is_recorded(self, world: World, right: MakeCall, ask: Callable[..., Any]) -> None:
        members = check_granted(ask(right()))
        with world.reading() as services:
            issued = services.tokens.find_live(members["access_token"])
        assert issued is not None
        assert issued.token.scope == ("openid",)
        assert int((issued.token.expires_at - issued.token.issued_at).total_seconds()) == members["expires_in"]

    def test_each_request_gets_another_token(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        first, second = (check_granted(ask(right()))["access_token"] for _ in range(2))
        assert first != second

    def test_a_missing_or_empty_parameter_is_an_invalid_request(
        self, grant: Grant, right: MakeCall, ask: Callable[..., Any]
    ) -> None:
        for name in sorted(self._required(grant)):
            for value in (None, ""):
                answer = ask(right(), **{name: value})
                check_refused(answer, "invalid_request", description=f"parameter {name} is missing")

    def test_a_repeated_parameter_is_an_invalid_request(self, world: World, grant: Grant, right: MakeCall) -> None:
        for name in sorted((grant.parameters - grant.repeatable) | {"grant_type", "scope"}):
            call = right()
            form = {"grant_type": self.grant_type, "scope": "openid", **call.form}
            if name in form:
                answer = world.client.token([*form.items(), (name, form[name])], call.headers)
                check_refused(answer, "invalid_request", description=f"parameter {name} was given twice")

    def test_parameters_in_the_address_are_not_read(self, world: World, right: MakeCall) -> None:
        call = right()
        query = urlencode({"grant_type": self.grant_type, "scope": "openid", **call.form})
        answer = world.client.post(f"{world.client.discovery['token_endpoint']}?{query}", {}, call.headers)
        check_refused(answer, "invalid_request")

    def test_garbage_is_refused(self, grant: Grant, right: MakeCall, ask: Callable[..., Any]) -> None:
        for name in sorted(self._required(grant)):
            for value in GARBAGE:
                answer = ask(right(), **{name: value})
                assert answer.status_int in (400, 401), f"{name}={value[:20]!r}: {answer}"
                assert answer.json["error"] in _REFUSALS, f"{name}={value[:20]!r}: {answer}"

    def test_unknown_parameters_are_ignored(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        check_granted(ask(right(), unheard_of="1"))

    def test_an_unknown_scope_is_dropped(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        answer = ask(right(), "openid unheard_of:scope")
        if self.drops_unknown_scopes:
            assert check_granted(answer)["scope"] == "openid"
        else:
            check_refused(answer, "invalid_scope")

    def test_a_scope_asked_twice_is_granted_once(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        assert check_granted(ask(right(), "openid openid"))["scope"] == "openid"

    def test_a_malformed_scope_is_refused(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        self._check_bad_scope(ask(right(), 'openid "quoted"'))

    def test_a_project_that_does_not_exist_is_refused(
        self, world: World, right: MakeCall, ask: Callable[..., Any]
    ) -> None:
        scope = world.audience_scope("no-such-project")
        self._check_bad_scope(ask(right(), f"openid {scope}"))

    def test_a_scope_without_openid(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        answer = ask(right(), "profile")
        if self.openid_required:
            self._check_bad_scope(answer)
        else:
            members = check_granted(answer)
            assert members["scope"] == "profile"
            assert "id_token" not in members

    def test_no_scope(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        members = check_granted(ask(right(), None))
        assert members.get("scope", "") == self.default_scope

    def test_the_client_rule_holds(self, world: World, grant: Grant, right: MakeCall, ask: Callable[..., Any]) -> None:
        call = right()
        if grant.client is ClientRule.NONE:
            # Common clients send one beside other credentials.
            check_granted(ask(call, client_id="somebody"))
            return
        # Public clients name themselves in the form, and others may send their secret there.
        nameless = {name: value for name, value in call.form.items() if name not in ("client_id", *CREDENTIALS)}
        check_refused(ask(TokenCall(nameless)), "invalid_client", status=401)
        stranger = world.an_application()
        refused = ask(TokenCall(nameless, {**call.headers, "Authorization": stranger.header}))
        check_refused(refused, "unauthorized_client")
        if grant.client is ClientRule.REQUIRED:
            # A service user has no registered grant types.
            service_user = world.a_secret(world.a_robot())
            refused = ask(TokenCall(nameless, {**call.headers, "Authorization": service_user.header}))
            check_refused(refused, "unauthorized_client")

    def test_a_refusal_is_no_obstacle_to_the_next_request(
        self, grant: Grant, right: MakeCall, ask: Callable[..., Any]
    ) -> None:
        call = right()
        for name in sorted(self._required(grant) - self.unforgiving):
            ask(call, **{name: "wrong"})
        check_granted(ask(call))

    def test_what_uses_credentials_up(self, right: MakeCall, ask: Callable[..., Any]) -> None:
        """A token answer, if they are good for one alone, and what is declared to be unforgiving; nothing else."""
        call = right()
        check_granted(ask(call))
        if self.single_use:
            check_refused(ask(call), "invalid_grant")
        else:
            check_granted(ask(call))
        for name in sorted(self.unforgiving):
            call = right()
            check_refused(ask(call, **{name: "wrong"}), "invalid_grant")
            check_refused(ask(call), "invalid_grant")

    def test_a_preview_is_about_those_whom_it_is_asked_about(self, world: World, grant: Grant) -> None:
        """It may be silent, or not be for them. On a connection that only reads."""
        person, robot, credentials = world.a_person(), world.a_robot(), world.an_application()
        with world.reading() as services:
            identity, storage = world.identity, services.storage
            context = Context(services.now, identity.settings, identity.protocol, lambda: identity.provider, services)
            subjects = [None, storage.users.find_subject(person.id), storage.users.find_subject(robot.id)]
            clients = [None, storage.applications.find_client(credentials.client_id)]
            for subject, client in product(subjects, clients):
                for asked in ((), ("openid",), ("profile",), ("openid", '"quoted"')):
                    authorization = None
                    with suppress(NoPreview, OAuthError):
                        supposed = Supposed(subject=subject, client=client, asked=asked)
                        authorization = grant.preview(supposed, context)
                    if authorization is not None:
                        assert authorization.subject in (None, subject)
                        assert authorization.client in (None, client)
                        assert authorization.subject or authorization.client

    def _check_bad_scope(self, answer: Any) -> None:
        """Refused, or overlooked where no scope parameter is read."""
        if self.reads_scope:
            check_refused(answer, "invalid_scope")
        else:
            assert check_granted(answer)["scope"] == self.default_scope

    def _required(self, grant: Grant) -> frozenset[str]:
        return grant.parameters if self.required is None else self.required
