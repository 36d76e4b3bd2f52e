import base64

import pytest

from identity.domain.errors import Invalid
from identity.services.container import Services
from identity.storage.paging import PageCursor

_CURSOR = PageCursor("Äpfel\x00", "0192-id")


def test_cursor_round_trip(services: Services) -> None:
    text = services.cursors.encode(_CURSOR, "users of acme")
    assert text is not None
    assert text.replace("-", "").replace("_", "").isalnum()
    assert "0192" not in text
    assert services.cursors.decode(text, "users of acme") == _CURSOR


def test_last_page_has_no_cursor(services: Services) -> None:
    assert services.cursors.encode(None, "users of acme") is None


def test_forged_cursor_is_refused(services: Services) -> None:
    """Security 14.2."""
    text = services.cursors.encode(_CURSOR, "users of acme")
    assert text is not None
    made_up = base64.urlsafe_b64encode(b'["a", "b"]').decode()
    for wrong in ("", "x", "ä", made_up, text[:-1], text[:-2] + "AA", text + "x", text.swapcase(), "\ud800"):
        with pytest.raises(Invalid) as refusal:
            services.cursors.decode(wrong, "users of acme")
        assert refusal.value.fields == {"cursor": "This list has changed. Start from the beginning."}


def test_cursor_of_other_list_is_refused(services: Services) -> None:
    text = services.cursors.encode(_CURSOR, "users of acme")
    assert text is not None
    with pytest.raises(Invalid):
        services.cursors.decode(text, "users of other")
