"""Requests of programs and users to a service in separate processes."""

import re
import threading
from typing import Any

import requests

from identity.cli.service_client import ServiceClient, sign_assertion
from identity.domain.service_user_keys import KeyFile

_PATIENCE = 60
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


def note_tokens(issuer: str, key_file: KeyFile, ledger: list[str], enough: threading.Event) -> int:
    """Request tokens and record each acknowledged one until ``enough`` is set; return the number of broken
    connections.
    """
    assertion, client, broken = sign_assertion(key_file, issuer), ServiceClient(issuer), 0
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "scope": "openid", "assertion": assertion.text}
    endpoint = client.endpoint_url("token")
    session = _session()
    while not enough.is_set():
        try:
            answer = session.post(endpoint, data=form, timeout=_PATIENCE)
        except requests.ConnectionError as problem:
            if "refused" in str(problem):
                raise
            broken += 1
            continue
        assert answer.status_code == requests.codes.ok, answer.text
        ledger.append(answer.json()["access_token"])
    return broken


def answers(issuer: str) -> bool:
    """True once the service responds."""
    with _session() as session:
        return session.get(f"{issuer}/healthz", timeout=_PATIENCE).status_code == requests.codes.ok


def userinfo_of(issuer: str, token: str) -> int:
    """The status code of the userinfo response."""
    headers = {"Authorization": f"Bearer {token}"}
    endpoint = ServiceClient(issuer).endpoint_url("userinfo")
    with _session() as session:
        return session.get(endpoint, headers=headers, timeout=_PATIENCE).status_code


def password_is_right(issuer: str, login_name: str, password: str) -> bool:
    """Whether the password is accepted. Walks through the pages of a sign-in; another process may answer each step."""
    with _session() as session:
        page: Any = session.get(f"{issuer}/login", timeout=_PATIENCE)
        for fields in ({"login_name": login_name}, {"password": password}):
            page = session.post(page.url, data=fields | dict(_HIDDEN.findall(page.text)), timeout=_PATIENCE)
            session.close()
            assert page.status_code < requests.codes.server_error, page.text
        # A page for choosing a new password follows.
        return 'name="new_password"' in page.text


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session
