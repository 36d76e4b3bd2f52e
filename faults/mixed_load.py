"""The mixed load: lanes that each repeat one kind of request, and record what was acknowledged."""

import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwk, jwt
from joserfc.errors import JoseError

from faults.endpoint_paths import DISCOVERY, INTROSPECT, KEYS, MANAGEMENT, REVOKE, TOKEN, USERINFO
from faults.http_client import FailoverClient, ResponseTally
from faults.ledger import AcknowledgedProject, Ledger, RefreshTokenChain, create_project_request, refresh_form
from faults.seed_data import SeedData, code_form

#: Pause between two steps of a lane: the load is steady and leaves CPU to others.
_PAUSE_SECONDS = 0.02
_JOIN_TIMEOUT = 60.0
#: Requests after which a lane switches to the next process, with a new connection: every process gets load.
_REQUESTS_PER_NODE = 25
#: Rotations after which a chain stays unchanged until the verification.
_MAX_CHAIN_LENGTH = 10


class LoadLane:
    """A repeated action. Each lane has its own connection."""

    def __init__(self, stock: SeedData, client: FailoverClient, ledger: Ledger) -> None:
        self.stock, self.client, self.ledger = stock, client, ledger

    def step(self) -> None:
        """Do it once; only what is acknowledged is recorded."""
        raise NotImplementedError

    def request_token(self, form: dict[str, str]) -> str | None:
        """The access token for a new assertion."""
        answer = self.client.post(TOKEN, form, None, 200)
        return None if answer is None else str(answer.json["access_token"])

    def request_code_form(self) -> dict[str, str] | None:
        """The form that redeems a new code."""
        answer = self.client.get(self.stock.authorize_path, self.stock.visitor_headers, 303)
        codes = [] if answer is None else parse_qs(urlsplit(answer.location).query).get("code", [])
        return code_form(codes[0]) if codes else None


class AssertionLane(LoadLane):
    """Single-use assertions; each one that succeeded is repeated at once."""

    def step(self) -> None:
        form = self.stock.assertion(single_use=True)
        token = self.request_token(form)
        if token is not None:
            self.ledger.tokens.append(token)
            self.ledger.used_assertions.append(form)
            # It must be refused.
            self.client.post(TOKEN, form, None, 400)


class IdTokenLane(LoadLane):
    """ID tokens whose signatures must verify with the keys that any of the nodes publishes at that time."""

    #: Key id of the last ID token.
    signed_by = ""

    def __init__(
        self, stock: SeedData, client: FailoverClient, ledger: Ledger, nodes: Sequence[FailoverClient]
    ) -> None:
        super().__init__(stock, client, ledger)
        self._nodes = nodes

    def step(self) -> None:
        form = self.request_code_form()
        answer = None if form is None else self.client.post(TOKEN, form, self.stock.application, 200)
        if answer is None:
            return
        for number, keys in enumerate(self.published_keys()):
            try:
                token = jwt.decode(answer.json["id_token"], jwk.KeySet.import_key_set(keys), algorithms=["RS256"])
            except (JoseError, ValueError) as problem:
                self.client.record_violation(f"an ID token does not verify by the keys of node {number}: {problem!r}")
            else:
                self.signed_by = token.header["kid"]

    def published_keys(self) -> Sequence[Any]:
        """The keys that each node publishes, if it responds."""
        answers = [node.get(KEYS, {}, 200) for node in self._nodes]
        return [answer.json for answer in answers if answer is not None]


class RefreshTokenLane(LoadLane):
    """Chains of refresh tokens."""

    chain: RefreshTokenChain | None = None

    def step(self) -> None:
        """Rotate the chain, or start a new one."""
        if self.chain is None or len(self.chain.rotated) == _MAX_CHAIN_LENGTH:
            self._begin()
            return
        presented = self.chain.current
        answer = self.client.post(TOKEN, refresh_form(presented), self.stock.application, 200)
        if answer is None:
            # Unknown whether it was used; those before it were.
            self.chain.is_certain = False
            self.chain = None
        else:
            self.chain.rotated.append(presented)
            self.chain.current = answer.json["refresh_token"]

    def _begin(self) -> None:
        self.chain = None
        form = self.request_code_form()
        answer = None if form is None else self.client.post(TOKEN, form, self.stock.application, 200)
        if answer is not None:
            self.chain = RefreshTokenChain(answer.json["refresh_token"])
            self.ledger.chains.append(self.chain)


class AuthorizationCodeLane(LoadLane):
    """Codes that are redeemed, and some that are kept."""

    step_number = 0

    def step(self) -> None:
        form = self.request_code_form()
        if form is None:
            return
        self.step_number += 1
        if self.step_number % 4 == 0:
            self.ledger.unused_codes.append(form)
            return
        answer = self.client.post(TOKEN, form, self.stock.application, 200)
        if answer is not None:
            self.ledger.used_assertions.append(form)


class RevocationLane(LoadLane):
    """Tokens that are revoked at once."""

    def step(self) -> None:
        token = self.request_token(self.stock.assertion(single_use=False))
        if token is not None and self.client.post(REVOKE, {"token": token}, self.stock.resource_server, 200):
            self.ledger.revoked[token] = time.monotonic()


class ManagementLane(LoadLane):
    """Projects that are created with idempotency keys, and renamed. Unacknowledged requests are repeated."""

    pending: AcknowledgedProject | None = None

    def step(self) -> None:
        """One project, or the repetition of the last one."""
        project = self.pending
        if project is None:
            suffix = uuid.uuid4().hex
            project = AcknowledgedProject(key=suffix, first_name=f"Project {suffix}", name=f"Project {suffix}")
            self.ledger.projects.append(project)
        answer = self.client.request(*create_project_request(self.stock, project), 201)
        self.pending = project if answer is None else None
        if answer is not None:
            project.id = answer.json["id"]
            self._rename(project)

    def _rename(self, project: AcknowledgedProject) -> None:
        name = f"Renamed {project.key}"
        project.possible_names.add(name)
        headers = {**self.stock.management_headers, "Content-Type": "application/json"}
        path, body = f"{MANAGEMENT}/projects/{project.id}", f'{{"name": "{name}"}}'
        if self.client.request("PATCH", path, headers, body, 200) is not None:
            project.name = name
            project.possible_names.clear()


class ReadLane(LoadLane):
    """Public documents, and requests of APIs."""

    def __init__(self, stock: SeedData, client: FailoverClient, ledger: Ledger) -> None:
        super().__init__(stock, client, ledger)
        self._answered_at = time.monotonic()

    def step(self) -> None:
        """Each of them once."""
        bearer = {"Authorization": f"Bearer {self.stock.token}"}
        self.client.get(KEYS, {}, 200)
        self.client.get(DISCOVERY, {}, 200)
        self.client.get(USERINFO, bearer, 200)
        if self._is_active(self.stock.token):
            now = time.monotonic()
            self.ledger.silence = max(self.ledger.silence, now - self._answered_at)
            self._answered_at = now
        dead = self.ledger.latest_certainly_revoked()
        if dead is not None and self._is_active(dead):
            self.client.record_violation("a token is active that was revoked")

    def _is_active(self, token: str) -> bool:
        answer = self.client.post(INTROSPECT, {"token": token}, self.stock.resource_server, 200)
        return answer is not None and bool(answer.json["active"])


_LANES: Sequence[type[LoadLane]] = (
    AssertionLane,
    RefreshTokenLane,
    AuthorizationCodeLane,
    RevocationLane,
    ManagementLane,
    ReadLane,
    RefreshTokenLane,
    AuthorizationCodeLane,
)


@contextmanager
def run_mixed_load(
    stock: SeedData,
    ports: Sequence[int],
    host: str,
    tally: ResponseTally,
    ledger: Ledger,
    fitting: Collection[tuple[str, int]] = (),
) -> Iterator[None]:
    """Run the mixed load until the block ends. Raises the error of a lane."""
    over = threading.Event()
    problems: list[BaseException] = []

    def run(number: int) -> None:
        client = FailoverClient(ports, host, tally, first=number, fitting=fitting, stays=_REQUESTS_PER_NODE)
        lane = _LANES[number](stock, client, ledger)
        try:
            while not over.wait(_PAUSE_SECONDS):
                lane.step()
        except Exception as problem:
            problems.append(problem)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=[number], daemon=True) for number in range(len(_LANES))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(_JOIN_TIMEOUT)
    if problems:
        raise problems[0]
