"""The table of limits agrees with the code: defaults of settings, and constants."""

import importlib
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"

sys.path.insert(0, str(DOCS / "_ext"))
reference_pages: Any = __import__("reference_pages")

#: Rows of three columns: subject, limit, and where it is set.
ROWS = [
    tuple(" ".join(cell.split()) for cell in row)
    for row in re.findall(
        r"^   \* - ((?:.|\n)*?)\n     - ((?:.|\n)*?)\n     - (.*)$",
        (DOCS / "reference" / "limits.rst").read_text(),
        re.MULTILINE,
    )
][1:]
LIMITS = {subject: limit for subject, limit, _ in ROWS}
SETTINGS = {subject: found[1] for subject, _, where in ROWS if (found := re.match(r"``(identity\.[a-z_.]+)``", where))}
DEFAULTS = dict(
    re.findall(
        r"^``(identity\.\S+)``\n(?:   .*\n|\n)*?.*Default: ``([^`]*)``", reference_pages.settings(), re.MULTILINE
    )
)

#: Limits that are constants, and where the code defines them.
FIXED = {
    "Body of a protocol request": "identity.http.endpoint_routes:MAX_BODY_BYTES",
    "Document that is imported: values beside users and service users": "identity.http.json_stream:_MAX_STORED_VALUES",
    "Document that is imported: one text or number": "identity.http.json_stream:_MAX_PENDING_BYTES",
    "Reported problems of one document": "identity.services.commands.documents:MAX_REPORTED_PROBLEMS",
    "State file": "identity.cli.desired_state_file:MAX_FILE_BYTES",
    "Authorization or end session request": "identity.provider.protocol_request:MAX_REQUEST_BYTES",
    "``state``, ``nonce``, ``login_hint``": "identity.provider.authorization_request:_LONGEST",
    "Parameters of a request": "identity.provider.parameters:MAX_PARAMETERS",
    "One parameter": "identity.provider.parameters:MAX_BODY_LENGTH",
    "Repeating a request of the management API with its idempotency key": "identity.services.idempotency:_KEPT_FOR",
    "Rows of one page of the management API": "identity.http.list_parameters:MAX_PAGE_SIZE",
    "Pending sign-ins of one browser": "identity.http.cookies:MAX_COOKIES_PER_KIND",
    "Factors of one kind per user": "identity.services.factors:MAX_ENROLMENTS",
    "Passwords in the queue for that": "identity.password_hashing:MAX_QUEUED_PASSWORDS",
    "Time for the body of a request": "identity.asgi.request_body:BODY_TIMEOUT",
    "Large documents received at the same time, per process": ("identity.asgi.wsgi_adapter:MAX_CONCURRENT_UPLOADS"),
    "Time for a client to read one part of a streamed response": ("identity.asgi.wsgi_adapter:CHUNK_TIMEOUT"),
    "Large documents read or written at the same time, per process": (
        "identity.password_hashing:MAX_CONCURRENT_DOCUMENTS"
    ),
    "Host names resolved at the same time, per process": ("identity.outbound_http:_MAX_CONCURRENT_RESOLUTIONS"),
    "Passwords verified by the LDAP directory at the same time, per process": "identity.plugins.ldap.client:_MAX_CONCURRENT_REQUESTS",  # noqa: E501
    "Tests of the connection to a directory": "identity.services.directories:MAX_DIRECTORY_TESTS",
    "Mails in one batch": "identity.services.outbox:_AT_ONCE",
    "Time between a user's deletion request and the deletion": "identity.services.account_deletions:DELETION_DELAY",
    "Logo": "identity.services.images:MAX_UPLOAD_BYTES",
    "Domains checked at the same time, per process": "identity.domain_verification:_MAX_CONCURRENT_VERIFICATIONS",
    "Waiting for the proof of a domain": "identity.domain_verification:VERIFICATION_TIMEOUT",
    "ID token of another identity provider": "identity.plugins.upstream.id_tokens:_LONGEST",
    "Claims that one plugin adds to one answer": "identity.provider.claims:MAX_CLAIMS_BYTES",
    "Legal holds": "identity.services.legal_holds:MAX_HOLDS",
    "Recording the same refusal in the audit trail": "identity.services.audit:_MINUTE",
    "Refusals of unauthenticated requests in the audit trail": "identity.services.audit:MAX_ANONYMOUS_REFUSALS",
    "Attempts of a writing request that lost a race": "identity.http.transactions:MAX_ATTEMPTS",
}

#: Settings whose default does not determine the limit.
OTHERWISE = {"identity.password_workers", "identity.audit_retention"}

UNITS = {
    "KiB": 1024, "MiB": 2**20, "s": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "days": 86400, "d": 86400,
    "m": 60,
}  # fmt: skip


def quantity(text: str) -> float:
    """The first number in a text with its unit, in bytes, seconds or items."""
    if text.startswith("not allowed"):
        return 0
    text = text.replace("once a minute", "1 minute").replace(",", "")
    number, unit = re.findall(r"(\d+) ?([A-Za-z]*)", text)[0]
    return int(number) * UNITS.get(unit, 1)


def test_table_is_read() -> None:
    assert len(ROWS) > 60
    assert len(SETTINGS) > 20
    assert len(LIMITS) == len(ROWS)


@pytest.mark.parametrize(
    "subject",
    # A limit without a number refers to another one.
    [
        subject
        for subject, name in SETTINGS.items()
        if name not in OTHERWISE and re.match(r".*?\d|not allowed", LIMITS[subject].removesuffix(", then 503"))
    ],
)
def test_documented_default_matches_setting(subject: str) -> None:
    default = quantity(DEFAULTS[SETTINGS[subject]])
    # This setting is in MiB.
    assert quantity(LIMITS[subject]) == (default * 2**20 if SETTINGS[subject] == "identity.import_limit" else default)


@pytest.mark.parametrize("subject", FIXED)
def test_documented_constant_matches_code(subject: str) -> None:
    module, name = FIXED[subject].split(":")
    value = getattr(importlib.import_module(module), name)
    assert quantity(LIMITS[subject]) == (value.total_seconds() if isinstance(value, timedelta) else value)
