"""What answers must look like, checked in one place: a failing check shows the whole answer."""

from typing import Any


def check_private(response: Any) -> None:
    """The answer is never cached: it holds, or could hold, a secret (RFC 6749 §5.1)."""
    assert response.headers.get("Cache-Control") == "no-store", shown(response)
    assert response.headers.get("Pragma") == "no-cache", shown(response)


def check_granted(response: Any) -> dict[str, Any]:
    """A token answer of service description §2.4; returns its members."""
    assert response.status_int == 200, shown(response)
    assert response.content_type == "application/json", shown(response)
    check_private(response)
    members: dict[str, Any] = response.json
    assert members.get("token_type") == "Bearer", shown(response)
    assert isinstance(members["access_token"], str), shown(response)
    assert isinstance(members["expires_in"], int), shown(response)
    return members


def check_refused(response: Any, error: str, *, status: int = 400, description: str | None = None) -> None:
    """A protocol error of RFC 6749 §5.2: exactly error and error_description, never cached."""
    assert response.status_int == status, shown(response)
    assert response.content_type == "application/json", shown(response)
    assert set(response.json) == {"error", "error_description"}, shown(response)
    assert response.json["error"] == error, shown(response)
    check_private(response)
    if description is not None:
        assert response.json["error_description"] == description, shown(response)


def check_inactive(response: Any) -> None:
    """Introspection's answer for a token that is not the client's business: active false and nothing else."""
    assert response.status_int == 200, shown(response)
    assert response.json == {"active": False}, shown(response)
    check_private(response)


def check_api_error(response: Any, status: int, error: str) -> dict[str, Any]:
    """The management API's error format; returns its members."""
    assert response.status_int == status, shown(response)
    assert response.content_type == "application/json", shown(response)
    members: dict[str, Any] = response.json
    assert members["error"] == error, shown(response)
    assert set(members) <= {"error", "message", "fields", "request_id"}, shown(response)
    assert members["message"], shown(response)
    assert members["request_id"], shown(response)
    assert response.headers["Cache-Control"] == "no-store", shown(response)
    return members


def check_page(response: Any, status: int = 200, title: str | None = None) -> Any:
    """A page for a person: HTML that is never cached, framed or guessed at; returns it parsed."""
    assert response.status_int == status, shown(response)
    assert response.content_type == "text/html", shown(response)
    assert "Location" not in response.headers, shown(response)
    assert response.headers["Cache-Control"] == "no-store", shown(response)
    assert response.headers["X-Content-Type-Options"] == "nosniff", shown(response)
    assert response.headers["X-Frame-Options"] == "DENY", shown(response)
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'"), shown(response)
    assert "frame-ancestors 'none'" in policy, shown(response)
    assert "unsafe" not in policy, shown(response)
    if title is not None:
        assert response.html.h1.get_text(strip=True) == title, shown(response)
    return response.html


def shown(response: Any) -> str:
    """The whole answer, for the message of a failed check."""
    lines = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"\n{response.status}\n{lines}\n\n{response.body.decode('utf-8', 'replace')}"


def headers_of(answer: Any) -> list[tuple[str, str]]:
    """The headers of an answer, but for the one that no two answers have alike."""
    return [one for one in answer.headerlist if one[0] != "X-Request-ID"]
