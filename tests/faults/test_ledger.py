"""The ledger of the faults finds what a service has lost or done twice: services that do so are played here."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from faults.client import Answer, Client, Kind, Tally
from faults.ledger import Chain, Ledger, NoAnswer, Project
from faults.load import Reading
from faults.paths import INTROSPECT, TOKEN
from faults.scene import Fault, Report
from faults.stock import Stock

STOCK: Any = Stock(
    issuer="",
    organization_id="1",
    audience_scope="",
    robot_id="",
    key_id="",
    key=None,  # type: ignore[arg-type]
    application="",
    resource_server="",
    visitor={},
    authorize_path="",
    managing={},
    token="",
)
ONE = {"id": "1", "name": "first"}
CODE = {"grant_type": "authorization_code", "code": "a"}


def played(
    *,
    active: bool = True,
    accepts: Callable[[Any], bool] = lambda form: False,
    projects: Any = (ONE,),
    made: str = "1",
    tally: Tally | None = None,
) -> Client:
    """A service that answers as it is told."""

    class Played(Client):
        def ask(self, method: str, path: str, headers: Any, body: str | None, *expected: int) -> Answer | None:
            status, said = 200, dict[str, Any]()
            if path == INTROSPECT:
                said = {"active": active}
            elif path == TOKEN:
                status = 200 if accepts(body) else 400
            elif method == "GET":
                said = {"items": list(projects), "next_cursor": None}
            else:
                status, said = 201, {"id": made}
            return Answer(status, json.dumps(said).encode(), "", None) if status in expected else None

    return Played([1], "", tally or Tally())


def ledger(**filled: Any) -> Ledger:
    made = Ledger()
    vars(made).update(filled)
    return made


def a_project(**members: Any) -> Project:
    return Project(**{"key": "k", "first_name": "first", "id": "1", "name": "first", **members})


WELL = {
    "a token": (ledger(tokens=["a"]), played()),
    "a revoked token": (ledger(revoked={"a": 0.0}), played(active=False)),
    "a code that was used": (ledger(spent=[CODE]), played()),
    "a code that was not": (ledger(unused_codes=[CODE]), played(accepts=lambda form: True)),
    "a chain": (ledger(chains=[Chain("new", "old")]), played(accepts=lambda form: "new" in form)),
    "a project": (ledger(projects=[a_project()]), played()),
    "a project that was not acknowledged": (ledger(projects=[a_project(id=None)]), played(projects=())),
    "a new name that was not acknowledged": (
        ledger(projects=[a_project(perhaps={"second"})]),
        played(projects=[{**ONE, "name": "second"}]),
    ),
}
LOST = {
    "a token": (ledger(tokens=["a"]), played(active=False)),
    "a revocation": (ledger(revoked={"a": 0.0}), played()),
    "a code": (ledger(unused_codes=[CODE]), played()),
    "a rotation": (ledger(chains=[Chain("new")]), played()),
    "a project": (ledger(projects=[a_project()]), played(projects=())),
    "a new name": (ledger(projects=[a_project(name="second")]), played()),
}
DOUBLED = {
    "a code": (ledger(spent=[CODE]), played(accepts=lambda form: True)),
    "a refresh token": (ledger(chains=[Chain("new", "old")]), played(accepts=lambda form: True)),
    "a project": (ledger(projects=[a_project(id=None)]), played(projects=[ONE, {**ONE, "id": "2"}])),
    "a repetition": (ledger(projects=[a_project()]), played(made="2")),
}


@pytest.mark.parametrize("name", WELL)
def test_what_is_well_is_found_to_be(name: str) -> None:
    book, client = WELL[name]
    verdict = book.judge(STOCK, client)
    assert (verdict.checked, verdict.lost, verdict.doubled) == (1, [], [])


@pytest.mark.parametrize("name", LOST)
def test_what_was_lost_is_found(name: str) -> None:
    book, client = LOST[name]
    verdict = book.judge(STOCK, client)
    assert len(verdict.lost) == 1
    assert verdict.doubled == []


@pytest.mark.parametrize("name", DOUBLED)
def test_what_was_done_twice_is_found(name: str) -> None:
    book, client = DOUBLED[name]
    verdict = book.judge(STOCK, client)
    assert verdict.lost == []
    assert len(verdict.doubled) == 1


def test_a_revocation_is_judged_when_everybody_has_to_know_it() -> None:
    now = time.monotonic()
    book = ledger(revoked={"long ago": now - 50, "a while ago": now - 20, "just now": now}, staleness=10.0)
    assert book.dead() == "a while ago"
    book = ledger(revoked={"a": time.monotonic()}, staleness=0.2)
    assert book.dead() is None
    assert book.judge(STOCK, played(active=False)).lost == []
    assert book.dead() == "a"


@pytest.mark.parametrize(("revoked", "blamed"), [({}, 0), ({"a": 0.0}, 1)])
def test_who_reads_finds_a_revoked_token_that_lives(revoked: dict[str, float], blamed: int) -> None:
    tally = Tally()
    Reading(STOCK, played(tally=tally), ledger(revoked=revoked)).step()
    assert len(tally.offences) == tally.kinds[Kind.WRONG] == blamed


def test_a_service_that_does_not_answer_has_not_recovered() -> None:
    class Dead(Client):
        def ask(self, *_arguments: Any) -> None:
            return None

    with pytest.raises(NoAnswer):
        ledger(tokens=["a"]).judge(STOCK, Dead([1], "", Tally()))


@pytest.mark.parametrize(
    ("answer", "later"),
    [
        (Answer(503, b"", "", "5"), True),
        (Answer(503, b"", "", None), False),
        (Answer(500, b"", "", "5"), False),
        (Answer(303, b"", "https://app.example/callback?error=temporarily_unavailable", None), True),
        (Answer(303, b"", "https://app.example/callback?error=server_error", None), False),
    ],
)
def test_only_a_client_that_is_told_when_to_come_back_was_told_later(answer: Answer, later: bool) -> None:
    assert answer.says_later is later


def test_a_report_is_good_if_all_of_it_is() -> None:
    fault = Fault("a", "A fault", lambda scene: None)
    assert Report(fault, "sqlite", allowed=5.0, recovery=4.9).is_good
    assert not Report(fault, "sqlite", allowed=5.0, recovery=5.1).is_good
    assert not Report(fault, "sqlite", allowed=5.0, slowest=20.1).is_good
    for said in ({"lost": ["a"]}, {"doubled": ["a"]}, {"offences": ["a"]}):
        assert not Report(fault, "sqlite", allowed=5.0, **said).is_good  # type: ignore[arg-type]


def test_what_a_client_must_never_meet_is_told() -> None:
    tally = Tally()
    for kind in Kind:
        tally.note(kind, 0.0, "words")
    assert tally.offences == ["cut: words", "silent: words", "wrong: words"]
    assert tally.requests == len(Kind)
