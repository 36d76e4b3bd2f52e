import pytest

from identity.provider.errors import InvalidScope
from identity.provider.scope import Scope

#: RFC 6749 §3.3: %x21 / %x23-5B / %x5D-7E.
ALLOWED = {0x21, *range(0x23, 0x5C), *range(0x5D, 0x7F)}


def test_scope_characters_follow_rfc_6749() -> None:
    for number in range(0x180):
        scope_name = f"a{chr(number)}"
        if number in ALLOWED:
            Scope.require_syntax((scope_name, "openid"))
            continue
        with pytest.raises(InvalidScope):
            Scope.require_syntax(("openid", scope_name))
