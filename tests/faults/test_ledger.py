"""The ledger of the fault runs finds writes that a service lost or did twice. The services here are fakes."""

import json
import time
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import parse_qsl

import pytest

from faults.endpoint_paths import INTROSPECT, TOKEN
from faults.fault_run import Fault, FaultReport, latency_violation
from faults.http_client import FailoverClient, ReceivedResponse, ResponseClass, ResponseTally
from faults.ledger import AcknowledgedProject, Ledger, NotRecovered, RefreshTokenChain
from faults.mixed_load import ReadLane, RefreshTokenLane
from faults.seed_data import SeedData

STOCK: Any = SeedData(
    issuer="",
    organization_id="1",
    audience_scope="",
    service_user_id="",
    key_id="",
    key=None,  # type: ignore[arg-type]
    application="",
    resource_server="",
    visitor_headers={},
    authorize_path="",
    management_headers={},
    token="",
)
PROJECT = {"id": "1", "name": "first"}
CODE = {"grant_type": "authorization_code", "code": "a"}


def played(
    *,
    active: bool = True,
    accepts: Callable[[Any], bool] = lambda form: False,
    projects: Any = (PROJECT,),
    created_id: str = "1",
    tally: ResponseTally | None = None,
) -> FailoverClient:
    """A fake service with these responses."""

    class Played(FailoverClient):
        def request(
            self, method: str, path: str, headers: Any, body: str | None, *expected: int
        ) -> ReceivedResponse | None:
            status, document = 200, dict[str, Any]()
            if path == INTROSPECT:
                document = {"active": active}
            elif path == TOKEN:
                status = 200 if accepts(body) else 400
            elif method == "GET":
                document = {"items": list(projects), "next_cursor": None}
            else:
                status, document = 201, {"id": created_id}
            return ReceivedResponse(status, json.dumps(document).encode(), "", None) if status in expected else None

    return Played([1], "", tally or ResponseTally())


def ledger(**filled: Any) -> Ledger:
    new_ledger = Ledger()
    vars(new_ledger).update(filled)
    return new_ledger


def make_project(**members: Any) -> AcknowledgedProject:
    return AcknowledgedProject(**{"key": "k", "first_name": "first", "id": "1", "name": "first", **members})


WELL = {
    "a token": (ledger(tokens=["a"]), played()),
    "a revoked token": (ledger(revoked={"a": 0.0}), played(active=False)),
    "a code that was used": (ledger(used_assertions=[CODE]), played()),
    "a code that was not": (ledger(unused_codes=[CODE]), played(accepts=lambda form: True)),
    "a chain": (ledger(chains=[RefreshTokenChain("new", ["old"])]), played(accepts=lambda form: "new" in form)),
    "a chain that nobody knows the end of": (
        ledger(chains=[RefreshTokenChain("new", ["old"], is_certain=False)]),
        played(accepts=lambda form: "new" in form),
    ),
    "a project": (ledger(projects=[make_project()]), played()),
    "a project that was not acknowledged": (ledger(projects=[make_project(id=None)]), played(projects=())),
    "a new name that was not acknowledged": (
        ledger(projects=[make_project(possible_names={"second"})]),
        played(projects=[{**PROJECT, "name": "second"}]),
    ),
}
LOST = {
    "a token": (ledger(tokens=["a"]), played(active=False)),
    "a revocation": (ledger(revoked={"a": 0.0}), played()),
    "a code": (ledger(unused_codes=[CODE]), played()),
    "a rotation": (ledger(chains=[RefreshTokenChain("new")]), played()),
    "a project": (ledger(projects=[make_project()]), played(projects=())),
    "a new name": (ledger(projects=[make_project(name="second")]), played()),
}
DOUBLED = {
    "a code": (ledger(used_assertions=[CODE]), played(accepts=lambda form: True)),
    "a refresh token": (ledger(chains=[RefreshTokenChain("new", ["old"])]), played(accepts=lambda form: True)),
    "the last refresh token but two": (
        ledger(chains=[RefreshTokenChain("new", ["oldest", "older", "old"], is_certain=False)]),
        played(accepts=lambda form: "oldest" in form),
    ),
    "a project": (ledger(projects=[make_project(id=None)]), played(projects=[PROJECT, {**PROJECT, "id": "2"}])),
    "a repetition": (ledger(projects=[make_project()]), played(created_id="2")),
}


@pytest.mark.parametrize("name", WELL)
def test_intact_state_passes(name: str) -> None:
    book, client = WELL[name]
    report = book.verify(STOCK, client)
    assert (report.checked, report.lost, report.duplicated) == (1, [], [])


@pytest.mark.parametrize("name", LOST)
def test_lost_writes_are_found(name: str) -> None:
    book, client = LOST[name]
    report = book.verify(STOCK, client)
    assert len(report.lost) == 1
    assert report.duplicated == []


@pytest.mark.parametrize("name", DOUBLED)
def test_duplicated_writes_are_found(name: str) -> None:
    book, client = DOUBLED[name]
    report = book.verify(STOCK, client)
    assert report.lost == []
    assert len(report.duplicated) == 1


def test_revocation_is_checked_after_propagation() -> None:
    now = time.monotonic()
    book = ledger(revoked={"long ago": now - 50, "a while ago": now - 20, "just now": now}, staleness=10.0)
    assert book.latest_certainly_revoked() == "a while ago"
    book = ledger(revoked={"a": time.monotonic()}, staleness=0.2)
    assert book.latest_certainly_revoked() is None
    assert book.verify(STOCK, played(active=False)).lost == []
    assert book.latest_certainly_revoked() == "a"


@pytest.mark.parametrize(("revoked", "blamed"), [({}, 0), ({"a": 0.0}, 1)])
def test_verification_finds_a_live_revoked_token(revoked: dict[str, float], blamed: int) -> None:
    tally = ResponseTally()
    ReadLane(STOCK, played(tally=tally), ledger(revoked=revoked)).step()
    assert len(tally.violations) == tally.counts[ResponseClass.WRONG] == blamed


class Noting(FailoverClient):
    """A service in which every credential is active except the lost ones."""

    def __init__(self, *, lost: Collection[str] = (), alive: bool = True) -> None:
        super().__init__([1], "", ResponseTally())
        self.requests: list[str] = []
        self._lost, self._alive = lost, alive

    def request(
        self, method: str, path: str, headers: Any, body: str | None, *expected: int
    ) -> ReceivedResponse | None:
        if method == "GET":
            return ReceivedResponse(200, json.dumps({"items": [], "next_cursor": None}).encode(), "", None)
        form = dict(parse_qsl(body or ""))
        secret = next(form[name] for name in ("token", "code", "refresh_token", "assertion") if name in form)
        self.requests.append(secret)
        is_well = (secret not in self._lost) is self._alive
        return ReceivedResponse(
            200 if path == INTROSPECT or is_well else 400, json.dumps({"active": is_well}).encode(), "", None
        )


KINDS: dict[str, tuple[Callable[[Ledger, str], object], bool]] = {
    "tokens": (lambda book, secret: book.tokens.append(secret), True),
    "revocations": (lambda book, secret: book.revoked.update({secret: 0.0}), False),
    "codes that were used": (lambda book, secret: book.used_assertions.append({**CODE, "code": secret}), False),
    "codes": (lambda book, secret: book.unused_codes.append({**CODE, "code": secret}), True),
    "assertions": (lambda book, secret: book.used_assertions.append({"grant_type": "a", "assertion": secret}), False),
    "chains": (lambda book, secret: book.chains.append(RefreshTokenChain("x", [secret], is_certain=False)), False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lost", ["before 399", "before 280", "after 999", "during 0", "during 700"])
def test_writes_before_a_fault_are_verified_despite_later_traffic(kind: str, lost: str) -> None:
    write, alive = KINDS[kind]
    book = Ledger()
    for when, many in (("before", 400), ("during", 1000), ("after", 1000)):
        for number in range(many):
            write(book, f"{when} {number}")
        if when != "after":
            book.mark_phase()
    client = Noting(lost=[lost], alive=alive)
    report = book.verify(STOCK, client)
    assert [len(report.lost), len(report.duplicated)] in ([1, 0], [0, 1])
    assert report.checked == 120 + 200 + 60
    assert not {"before 0", "after 0"} & set(client.requests)


def test_lost_seconds_are_found_as_revived_tokens() -> None:
    """The service has lost the last two rotations, so it accepts an older token again."""
    service = Rotating()
    book = Ledger()
    lane = RefreshTokenLane(STOCK, service, book)
    for _ in range(6):
        lane.step()
    service.answers = False
    lane.step()
    assert lane.chain is None
    service.answers = True
    service.forget(all_but=5)
    assert book.verify(STOCK, service).duplicated == ["a refresh token was accepted after its successor"]


@pytest.mark.parametrize("is_used_up", [True, False])
def test_rotation_with_unknown_outcome_may_have_happened(is_used_up: bool) -> None:
    service = Rotating()
    book = Ledger()
    lane = RefreshTokenLane(STOCK, service, book)
    for _ in range(6):
        lane.step()
    service.answers, service.acts = False, is_used_up
    lane.step()
    service.answers = service.acts = True
    report = book.verify(STOCK, service)
    assert (report.checked, report.lost, report.duplicated) == (1, [], [])


class Rotating(FailoverClient):
    """One family of refresh tokens. Replay of a known token revokes it."""

    def __init__(self) -> None:
        super().__init__([1], "", ResponseTally())
        self.answers = self.acts = True
        self._known: list[str] = []

    def forget(self, *, all_but: int) -> None:
        """Drop the later tokens, as after a restore."""
        del self._known[all_but:]

    def request(
        self, method: str, path: str, headers: Any, body: str | None, *expected: int
    ) -> ReceivedResponse | None:
        status, document = 200, dict[str, Any]()
        if path == STOCK.authorize_path:
            return ReceivedResponse(303, b"", "https://app.example/callback?code=a", None)
        if method == "GET":
            document = {"items": [], "next_cursor": None}
        else:
            presented = dict(parse_qsl(body or "")).get("refresh_token")
            if presented is not None and (not self._known or presented != self._known[-1]):
                status = 400
                if presented in self._known:
                    self._known.append("revoked")
            elif self.acts:
                self._known.append(f"token {len(self._known)}")
                document = {"refresh_token": self._known[-1]}
        return (
            ReceivedResponse(status, json.dumps(document).encode(), "", None)
            if self.answers and status in expected
            else None
        )


def test_repeated_verification_presents_no_new_secret() -> None:
    service = Rotating()
    book = Ledger()
    lane = RefreshTokenLane(STOCK, service, book)
    for _ in range(3):
        lane.step()
    for _ in range(2):
        assert (report := book.verify(STOCK, service)).lost == report.duplicated == []
    service.forget(all_but=2)
    assert book.verify(STOCK, service).duplicated == ["a refresh token was accepted after its successor"]
    codes = ledger(unused_codes=[CODE])
    assert codes.verify(STOCK, played(accepts=lambda form: True)).duplicated == []
    assert codes.verify(STOCK, played()).lost == []
    assert codes.verify(STOCK, played(accepts=lambda form: True)).duplicated == ["a code was accepted twice"]


def test_tokens_issued_under_clock_skew_may_expire_early() -> None:
    book = Ledger(keeps_time=False)
    book.mark_phase()
    book.tokens.append("a")
    book.unused_codes.append(CODE)
    book.mark_phase()
    assert book.verify(STOCK, played(active=False)).checked == 0


@pytest.mark.parametrize(
    "filled",
    [{"revoked": {"a": 0.0}}, {"used_assertions": [CODE]}, {"chains": [RefreshTokenChain("new", ["oldest", "old"])]}],
)
def test_revived_secret_is_always_reported(filled: dict[str, Any]) -> None:
    dead = played(active=False)
    assert ledger(**filled).find_revived(STOCK, dead) == []
    assert ledger(**filled).find_revived(STOCK, played(accepts=lambda form: "oldest" in form or "code" in form)) != []


def test_service_that_does_not_answer_has_not_recovered() -> None:
    class Dead(FailoverClient):
        def request(self, *_arguments: Any) -> None:
            return None

    with pytest.raises(NotRecovered):
        ledger(tokens=["a"]).verify(STOCK, Dead([1], "", ResponseTally()))


@pytest.mark.parametrize(
    ("answer", "later"),
    [
        (ReceivedResponse(503, b"", "", "5"), True),
        (ReceivedResponse(503, b"", "", None), False),
        (ReceivedResponse(500, b"", "", "5"), False),
        (ReceivedResponse(303, b"", "https://app.example/callback?error=temporarily_unavailable", None), True),
        (ReceivedResponse(303, b"", "https://app.example/callback?error=server_error", None), False),
    ],
)
def test_retry_after_marks_a_deferred_response(answer: ReceivedResponse, later: bool) -> None:
    assert answer.asks_for_retry is later


def test_report_is_good_if_all_of_it_is() -> None:
    fault = Fault("a", "A fault", lambda scene: None)
    assert FaultReport(fault, "sqlite", allowed=5.0, recovery=4.9).is_passed
    assert not FaultReport(fault, "sqlite", allowed=5.0, recovery=5.1).is_passed
    assert not FaultReport(fault, "sqlite", allowed=5.0, slowest=20.1).is_passed
    for findings in ({"lost": ["a"]}, {"duplicated": ["a"]}, {"violations": ["a"]}):
        assert not FaultReport(fault, "sqlite", allowed=5.0, **findings).is_passed  # type: ignore[arg-type]


def test_forbidden_responses_are_reported() -> None:
    tally = ResponseTally()
    for kind in ResponseClass:
        tally.record(kind, 0.0, "words")
    assert tally.violations == ["fitting: words", "cut: words", "silent: words", "wrong: words"]
    assert tally.requests == len(ResponseClass)


def test_expected_failures_are_allowed_during_the_fault() -> None:
    tally = ResponseTally([ResponseClass.CUT])
    tally.record(ResponseClass.CUT, time.monotonic(), "before it began")
    began = time.monotonic()
    tally.mark_fault_start()
    for kind in (ResponseClass.CUT, ResponseClass.FITTING):
        tally.record(kind, began, "ended while it lasted")
    sent = time.monotonic()
    time.sleep(0.001)
    tally.mark_fault_end()
    tally.record(ResponseClass.CUT, sent, "sent while it lasted")
    tally.record(ResponseClass.CUT, time.monotonic(), "after it ended")
    assert tally.violations == ["cut: before it began", "fitting: ended while it lasted", "cut: after it ended"]


QUICK = [0.02] * 990 + [0.08] * 10


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (QUICK, ""),
        ([*QUICK, 0.5], ""),
        ([*QUICK, *[1.0] * 8], "the slowest request took 1.00 s"),
        ([*QUICK, *[0.4] * 30], "one of a hundred requests took 0.40 s"),
        ([], ""),
    ],
)
def test_stalled_requests_are_found_by_latency(since: list[float], found: str) -> None:
    message = latency_violation(QUICK, since)
    assert message == [] if not found else [item[: len(found)] for item in message] == [found]
