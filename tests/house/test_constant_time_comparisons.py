"""Security 18.5: only ``identity.crypto.secrets.constant_time_equal`` compares secrets and digests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import identity

PACKAGE = Path(identity.__file__).parent

#: Names of values that an attacker could learn from the duration of a comparison.
_SECRET = re.compile(r"(secret|digest|hmac|mac|signature|password|verifier|challenge|csrf|cookie|token|hash|code)s?\Z")
#: Names that match although they are no secrets.
_HARMLESS = re.compile(
    r"(status|error|response|form|exit|http|return|language|country|zip)_?code\Z|_hash_of\Z|\A(en|de)code\Z"
)
_COMPARING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def compared(source: str) -> Iterator[tuple[int, str]]:
    """The line and text of every comparison by value of something with such a name."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare) or not any(isinstance(item, _COMPARING) for item in node.ops):
            continue
        sides = [node.left, *node.comparators]
        # A literal in the source is not secret.
        if any(isinstance(side, ast.Constant) for side in sides):
            continue
        if any(is_secret(side) for side in sides):
            yield node.lineno, ast.unparse(node)


def is_secret(side: ast.expr) -> bool:
    name = side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""
    if isinstance(side, ast.Call):
        return is_secret(side.func)
    return bool(_SECRET.search(name)) and not _HARMLESS.search(name)


def test_naive_comparisons_are_found() -> None:
    for source in (
        "if given == stored.digest: pass",
        "if digest(given) == known: pass",
        "ok = secret != other",
        "ok = client_secret in known",
        "ok = request.csrf_token == token",
    ):
        assert list(compared(source))


#: Comparisons that look like a leak but are none.
HARMLESS = {
    "code != _READY": "a reply code of SMTP",
    "code not in _BIND_REFUSED_CODES": "a result code of LDAP",
    "code not in _EMPTY_RESULT_CODES": "a result code of LDAP",
    "confirmation != password": "both were typed by the same person, just now",
    "password in FREQUENCY_LISTS['passwords']": "the list is public",
    "form.text(CONFIRMED_FIELD) != self.confirmation_digest": "a digest of what the page has just shown",
    "request.code_challenge == _CODE_CHALLENGE": "an example of RFC 7636",
    "stored.hash == trial.stored_hash": "both come from the database",
}
#: Storage finds rows by digests of 256 random bits: the timing of a look-up reveals nothing about the secret.
LOOKING_UP = ("storage", "plugins/sql", "testing", "crypto")


@pytest.mark.thorough
def test_secrets_are_compared_in_constant_time() -> None:
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(LOOKING_UP):
            found |= {text for _, text in compared(path.read_text("utf-8"))}
    assert found == set(HARMLESS)
