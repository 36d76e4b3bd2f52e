"""What answers must look like, checked in one place: a failing check shows the whole answer."""

from typing import Any


def check_private(response: Any) -> None:
    """The answer is never cached: it holds, or could hold, a secret (RFC 6749 §5.1)."""
    assert response.headers.get("Cache-Control") == "no-store", _shown(response)
    assert response.headers.get("Pragma") == "no-cache", _shown(response)


def check_granted(response: Any) -> dict[str, Any]:
    """A token answer of service description §2.4; returns its members."""
    assert response.status_int == 200, _shown(response)
    assert response.content_type == "application/json", _shown(response)
    check_private(response)
    members: dict[str, Any] = response.json
    assert members.get("token_type") == "Bearer", _shown(response)
    assert isinstance(members["access_token"], str), _shown(response)
    assert isinstance(members["expires_in"], int), _shown(response)
    return members


def check_refused(response: Any, error: str, *, status: int = 400, description: str | None = None) -> None:
    """A protocol error of RFC 6749 §5.2: exactly error and error_description, never cached."""
    assert response.status_int == status, _shown(response)
    assert response.content_type == "application/json", _shown(response)
    assert set(response.json) == {"error", "error_description"}, _shown(response)
    assert response.json["error"] == error, _shown(response)
    check_private(response)
    if description is not None:
        assert response.json["error_description"] == description, _shown(response)


def check_inactive(response: Any) -> None:
    """Introspection's answer for a token that is not the client's business: active false and nothing else."""
    assert response.status_int == 200, _shown(response)
    assert response.json == {"active": False}, _shown(response)
    check_private(response)


def check_api_error(response: Any, status: int, error: str) -> dict[str, Any]:
    """The management API's error format; returns its members."""
    assert response.status_int == status, _shown(response)
    assert response.content_type == "application/json", _shown(response)
    members: dict[str, Any] = response.json
    assert members["error"] == error, _shown(response)
    assert set(members) <= {"error", "message", "fields", "request_id"}, _shown(response)
    assert members["message"], _shown(response)
    assert members["request_id"], _shown(response)
    assert response.headers["Cache-Control"] == "no-store", _shown(response)
    return members


def _shown(response: Any) -> str:
    lines = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"\n{response.status}\n{lines}\n\n{response.body.decode('utf-8', 'replace')}"
