"""The ledger records what the service has acknowledged, and verifies it: nothing lost, duplicated or revived."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from faults.endpoint_paths import INTROSPECT, MANAGEMENT, TOKEN
from faults.http_client import FailoverClient, ReceivedResponse
from faults.seed_data import SeedData

#: Sample sizes of each kind: acknowledged just before the fault, during it (evenly spread), and last.
_SAMPLED_BEFORE, _SAMPLED_DURING, _SAMPLED_LAST = 120, 240, 60
#: Number of repeated requests per kind.
_MAX_REPETITIONS = 10
_KINDS = ("tokens", "revoked", "used_assertions", "unused_codes", "chains", "projects")
_Entry = TypeVar("_Entry")
_ATTEMPTS = 40


@dataclass
class RefreshTokenChain:
    """Refresh tokens of one family: the last acknowledged one, and the used ones before it, the latest last.

    ``is_certain``: the last one was never sent. If it was sent without a response, it may be used or not.
    """

    current: str
    rotated: list[str] = field(default_factory=list)
    is_certain: bool = True


@dataclass
class AcknowledgedProject:
    """A project requested with one idempotency key, and the names requested for it since."""

    key: str
    first_name: str
    id: str | None = None
    #: The last acknowledged name, and those requested since.
    name: str = ""
    possible_names: set[str] = field(default_factory=set)


@dataclass
class LedgerFindings:
    """Violations as sentences; empty if there are none."""

    checked: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)


class Ledger:
    """Filled by the lanes of the load, each of which records what was acknowledged, and when."""

    def __init__(self, staleness: float = 0.0, *, keeps_time: bool = True) -> None:
        self.tokens: list[str] = []
        #: Revoked tokens, and when their revocation was acknowledged: after the allowed staleness they are inactive
        #: everywhere.
        self.revoked: dict[str, float] = {}
        self.staleness = staleness
        #: Longest time in seconds during which no introspection succeeded.
        self.silence = 0.0
        #: Forms that succeeded once, and must not succeed again.
        self.used_assertions: list[Mapping[str, str]] = []
        #: Forms of codes that were never sent.
        self.unused_codes: list[Mapping[str, str]] = []
        self.chains: list[RefreshTokenChain] = []
        self.projects: list[AcknowledgedProject] = []
        #: With wrong clocks the lifetime of what is issued during the fault is unknown.
        self._keeps_time = keeps_time
        self._marks: list[Mapping[str, int]] = []
        #: Codes that the verification has sent.
        self._judged: set[str] = set()

    def mark_phase(self) -> None:
        """Mark the beginning of the fault; on the second call, the end of its cause."""
        self._marks.append({name: len(vars(self)[name]) for name in _KINDS})

    def latest_certainly_revoked(self) -> str | None:
        """The token revoked last among those that must be inactive by now."""
        latest = time.monotonic() - self.staleness
        return next((token for token, at in reversed([*self.revoked.items()]) if at <= latest), None)

    def verify(self, stock: SeedData, client: FailoverClient) -> LedgerFindings:
        """Verify everything with the recovered service. Raises NotRecovered if it has not recovered.

        Can be called again: single-use values that an earlier call sent must then be refused.
        """
        findings = LedgerFindings()
        self._judge_tokens(stock, client, findings)
        self._judge_projects(stock, client, findings)
        self._judge_codes(stock, client, findings)
        self._judge_chains(stock, client, findings)
        return findings

    def find_revived(self, stock: SeedData, client: FailoverClient) -> Sequence[str]:
        """Sentences about everything revived: this must not happen even while clocks are wrong.

        Raises NotRecovered.
        """
        revived = ["a token that was revoked" for token in self.revoked if _is_active(token, stock, client)]
        replayed = [(form, stock.application if "code" in form else None) for form in self.used_assertions]
        replayed += [(refresh_form(used), stock.application) for chain in self.chains for used in chain.rotated[::-1]]
        return revived + [
            f"a {form['grant_type']} that was used"
            for form, authorization in replayed
            if _redeem(client, form, authorization).status == 200
        ]

    def _judge_tokens(self, stock: SeedData, client: FailoverClient, findings: LedgerFindings) -> None:
        for token in self._sample("tokens", self.tokens, during=_SAMPLED_DURING * self._keeps_time):
            findings.checked += 1
            if not _is_active(token, stock, client):
                findings.lost.append("an access token that was issued is not there")
        time.sleep(max([0.0, *(at + self.staleness - time.monotonic() for at in self.revoked.values())]))
        for token in self._sample("revoked", [*self.revoked]):
            findings.checked += 1
            if _is_active(token, stock, client):
                findings.lost.append("a revocation: the token lives")

    def _judge_codes(self, stock: SeedData, client: FailoverClient, findings: LedgerFindings) -> None:
        for form in self._sample("unused_codes", self.unused_codes, during=_SAMPLED_DURING * self._keeps_time):
            findings.checked += 1
            is_first = form["code"] not in self._judged
            self._judged.add(form["code"])
            is_accepted = _redeem(client, form, stock.application).status == 200
            if is_first and not is_accepted:
                findings.lost.append("a code that was issued is not there")
            if is_accepted and not is_first:
                findings.duplicated.append("a code was accepted twice")
        for form in self._sample("used_assertions", self.used_assertions):
            findings.checked += 1
            if _redeem(client, form, stock.application if "code" in form else None).status == 200:
                findings.duplicated.append(f"{form['grant_type']} was accepted twice")

    def _judge_chains(self, stock: SeedData, client: FailoverClient, findings: LedgerFindings) -> None:
        for chain in self._sample("chains", self.chains):
            findings.checked += 1
            used = chain.rotated[-1:]
            if chain.is_certain:
                answer = _redeem(client, refresh_form(chain.current), stock.application)
                if answer.status != 200:
                    findings.lost.append(f"a rotation: the successor is not there: {answer.body!r}")
            else:
                # If a rotation was lost, the token before it is valid again.
                used = chain.rotated[::-1]
            if any(_redeem(client, refresh_form(item), stock.application).status == 200 for item in used):
                findings.duplicated.append("a refresh token was accepted after its successor")
            if chain.is_certain:
                chain.rotated.append(chain.current)
                chain.is_certain = False

    def _judge_projects(self, stock: SeedData, client: FailoverClient, findings: LedgerFindings) -> None:
        present = _list_projects(stock, client)
        for project in self._sample("projects", self.projects):
            findings.checked += 1
            names = {project.first_name, project.name, *project.possible_names}
            found = [item for item in present if item["name"] in names]
            if len(found) > 1:
                findings.duplicated.append(f"{len(found)} projects were made for one idempotency key")
            if project.id is None:
                continue
            if [item["id"] for item in found] != [project.id]:
                findings.lost.append("a project that was made is not there")
            elif found[0]["name"] not in {project.name, *project.possible_names}:
                findings.lost.append("a project's new name")
        for project in self._sample("projects", self.projects, _MAX_REPETITIONS, _MAX_REPETITIONS, _MAX_REPETITIONS):
            again = _repeat_project_request(project, stock, client)
            if project.id is not None and again != project.id:
                findings.duplicated.append("the repetition of a management write was not answered as the first one")

    def _sample(
        self,
        name: str,
        filled: Sequence[_Entry],
        before: int = _SAMPLED_BEFORE,
        during: int = _SAMPLED_DURING,
        last: int = _SAMPLED_LAST,
    ) -> Sequence[_Entry]:
        """A sample of a kind."""
        marks = [mark[name] for mark in self._marks] or [len(filled)]
        begin, end = marks[0], marks[-1]
        spread = filled[begin : end : max(1, math.ceil((end - begin) / during))] if during else ()
        return [*filled[max(0, begin - before) : begin], *spread, *filled[max(end, len(filled) - last) :]]


class NotRecovered(Exception):
    """The service has not recovered."""


def refresh_form(token: str) -> Mapping[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": token}


def create_project_request(stock: SeedData, project: AcknowledgedProject) -> tuple[str, str, Mapping[str, str], str]:
    """The request that creates a project, as arguments of ``FailoverClient.request``."""
    headers = {**stock.management_headers, "Content-Type": "application/json", "Idempotency-Key": project.key}
    path = f"{MANAGEMENT}/organizations/{stock.organization_id}/projects"
    return "POST", path, headers, json.dumps({"name": project.first_name})


def _is_active(token: str, stock: SeedData, client: FailoverClient) -> bool:
    answer = _request(client, "POST", INTROSPECT, {"token": token}, stock.resource_server, 200)
    return bool(answer.json["active"])


def _redeem(client: FailoverClient, form: Mapping[str, str], authorization: str | None) -> ReceivedResponse:
    return _request(client, "POST", TOKEN, form, authorization, 200, 400)


def _request(
    client: FailoverClient, method: str, path: str, form: Mapping[str, str], bearer: str | None, *expected: int
) -> ReceivedResponse:
    for _ in range(_ATTEMPTS):
        answer = client.post(path, form, bearer, *expected)
        if answer is not None:
            return answer
    raise NotRecovered(f"{method} {path} was asked {_ATTEMPTS} times")


def _list_projects(stock: SeedData, client: FailoverClient) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    path = where = f"{MANAGEMENT}/organizations/{stock.organization_id}/projects?limit=100"
    while True:
        answer = client.get(where, stock.management_headers, 200)
        if answer is None:
            raise NotRecovered(f"GET {path} was not answered")
        found += answer.json["items"]
        cursor = answer.json.get("next_cursor")
        if cursor is None:
            return found
        where = f"{path}&cursor={cursor}"


def _repeat_project_request(project: AcknowledgedProject, stock: SeedData, client: FailoverClient) -> str:
    answer = client.request(*create_project_request(stock, project), 201)
    if answer is None:
        raise NotRecovered("a repeated management write was not answered")
    project_id: str = answer.json["id"]
    return project_id
