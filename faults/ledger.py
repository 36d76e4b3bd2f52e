"""What the service has acknowledged, and whether it all still holds: nothing lost, nothing twice, nothing revived."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.client import Answer, Client
from faults.paths import INTROSPECT, MANAGEMENT, TOKEN
from faults.stock import Stock

#: So many of each kind are looked at: the latest, which are the ones that a fault has met.
_MOST = 120
_ATTEMPTS = 40


@dataclass
class Chain:
    """Refresh tokens of one family: the last that was acknowledged, and the one that it replaced."""

    current: str
    used: str | None = None


@dataclass
class Project:
    """A project that was asked for under one idempotency key, and the names that it was given since."""

    key: str
    first_name: str
    id: str | None = None
    #: The last name that was acknowledged, and those asked for since.
    name: str = ""
    perhaps: set[str] = field(default_factory=set)


@dataclass
class Verdict:
    """What the ledger found: sentences; empty is good."""

    checked: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)


class Ledger:
    """Filled by the lanes of the load, each of which writes down what was acknowledged, and when it was."""

    def __init__(self, staleness: float = 0.0) -> None:
        self.tokens: list[str] = []
        #: Tokens, and when their revocation was acknowledged: so many seconds later they are dead wherever one asks.
        self.revoked: dict[str, float] = {}
        self.staleness = staleness
        #: Seconds of the longest time for which nobody could learn that a token is active.
        self.silence = 0.0
        #: The forms of what was shown once with success, and must not succeed again.
        self.spent: list[Mapping[str, str]] = []
        #: Forms of codes that nobody has shown yet.
        self.unused_codes: list[Mapping[str, str]] = []
        self.chains: list[Chain] = []
        self.projects: list[Project] = []

    def dead(self) -> str | None:
        """The token that was revoked last among those that must be dead by now."""
        latest = time.monotonic() - self.staleness
        return next((token for token, at in reversed([*self.revoked.items()]) if at <= latest), None)

    def judge(self, stock: Stock, client: Client) -> Verdict:
        """Ask the service, which has recovered, about all of it. Raises NoAnswer if it has not."""
        verdict = Verdict()
        self._judge_tokens(stock, client, verdict)
        self._judge_projects(stock, client, verdict)
        self._judge_codes(stock, client, verdict)
        self._judge_chains(stock, client, verdict)
        return verdict

    def _judge_tokens(self, stock: Stock, client: Client, verdict: Verdict) -> None:
        for token in self.tokens[-_MOST:]:
            verdict.checked += 1
            if not _is_active(token, stock, client):
                verdict.lost.append("an access token that was issued is not there")
        time.sleep(max([0.0, *(at + self.staleness - time.monotonic() for at in self.revoked.values())]))
        for token in [*self.revoked][-_MOST:]:
            verdict.checked += 1
            if _is_active(token, stock, client):
                verdict.lost.append("a revocation: the token lives")

    def _judge_codes(self, stock: Stock, client: Client, verdict: Verdict) -> None:
        for form in self.unused_codes[-_MOST:]:
            verdict.checked += 1
            if _answered(client, form, stock.application).status != 200:
                verdict.lost.append("a code that was issued is not there")
        for form in self.spent[-_MOST:]:
            verdict.checked += 1
            if _answered(client, form, stock.application if "code" in form else None).status == 200:
                verdict.doubled.append(f"{form['grant_type']} was accepted twice")

    def _judge_chains(self, stock: Stock, client: Client, verdict: Verdict) -> None:
        for chain in self.chains[-_MOST:]:
            verdict.checked += 1
            answer = _answered(client, refreshing(chain.current), stock.application)
            if answer.status != 200:
                verdict.lost.append(f"a rotation: the successor is not there: {answer.body!r}")
            if chain.used is not None and _answered(client, refreshing(chain.used), stock.application).status == 200:
                verdict.doubled.append("a refresh token was accepted after its successor")

    def _judge_projects(self, stock: Stock, client: Client, verdict: Verdict) -> None:
        present = _projects(stock, client)
        for project in self.projects[-_MOST:]:
            verdict.checked += 1
            names = {project.first_name, project.name, *project.perhaps}
            found = [one for one in present if one["name"] in names]
            if len(found) > 1:
                verdict.doubled.append(f"{len(found)} projects were made for one idempotency key")
            if project.id is None:
                continue
            if [one["id"] for one in found] != [project.id]:
                verdict.lost.append("a project that was made is not there")
            elif found[0]["name"] not in {project.name, *project.perhaps}:
                verdict.lost.append("a project's new name")
        for project in self.projects[-20:]:
            again = _repeat(project, stock, client)
            if project.id is not None and again != project.id:
                verdict.doubled.append("the repetition of a management write was not answered as the first one")


class NoAnswer(Exception):
    """The service has not recovered."""


def refreshing(token: str) -> Mapping[str, str]:
    """The form that shows a refresh token."""
    return {"grant_type": "refresh_token", "refresh_token": token}


def creating(stock: Stock, project: Project) -> tuple[str, str, Mapping[str, str], str]:
    """The request that makes a project, as ``Client.ask`` takes it."""
    headers = {**stock.managing, "Content-Type": "application/json", "Idempotency-Key": project.key}
    path = f"{MANAGEMENT}/organizations/{stock.organization_id}/projects"
    return "POST", path, headers, json.dumps({"name": project.first_name})


def _is_active(token: str, stock: Stock, client: Client) -> bool:
    answer = _asked(client, "POST", INTROSPECT, {"token": token}, stock.resource_server, 200)
    return bool(answer.members["active"])


def _answered(client: Client, form: Mapping[str, str], authorization: str | None) -> Answer:
    return _asked(client, "POST", TOKEN, form, authorization, 200, 400)


def _asked(client: Client, method: str, path: str, form: Mapping[str, str], who: str | None, *expected: int) -> Answer:
    for _ in range(_ATTEMPTS):
        answer = client.post(path, form, who, *expected)
        if answer is not None:
            return answer
    raise NoAnswer(f"{method} {path} was asked {_ATTEMPTS} times")


def _projects(stock: Stock, client: Client) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    path = where = f"{MANAGEMENT}/organizations/{stock.organization_id}/projects?limit=100"
    while True:
        answer = client.get(where, stock.managing, 200)
        if answer is None:
            raise NoAnswer(f"GET {path} was not answered")
        found += answer.members["items"]
        cursor = answer.members.get("next_cursor")
        if cursor is None:
            return found
        where = f"{path}&cursor={cursor}"


def _repeat(project: Project, stock: Stock, client: Client) -> str:
    answer = client.ask(*creating(stock, project), 201)
    if answer is None:
        raise NoAnswer("a repeated management write was not answered")
    made: str = answer.members["id"]
    return made
