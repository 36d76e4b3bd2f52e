"""Checks of responses; a failing check shows the whole response."""

from typing import Any


def check_not_cacheable(response: Any) -> None:
    """Check that the response is never cached: it contains, or could contain, a secret (RFC 6749 §5.1)."""
    assert response.headers.get("Cache-Control") == "no-store", format_response(response)
    assert response.headers.get("Pragma") == "no-cache", format_response(response)


def check_token_response(response: Any) -> dict[str, Any]:
    """Check a token response of service description §2.4; returns its members."""
    assert response.status_int == 200, format_response(response)
    assert response.content_type == "application/json", format_response(response)
    check_not_cacheable(response)
    members: dict[str, Any] = response.json
    assert members.get("token_type") == "Bearer", format_response(response)
    assert isinstance(members["access_token"], str), format_response(response)
    assert isinstance(members["expires_in"], int), format_response(response)
    return members


def check_oauth_error(response: Any, error: str, *, status: int = 400, description: str | None = None) -> None:
    """Check an error of RFC 6749 §5.2: exactly error and error_description, never cached."""
    assert response.status_int == status, format_response(response)
    assert response.content_type == "application/json", format_response(response)
    assert set(response.json) == {"error", "error_description"}, format_response(response)
    assert response.json["error"] == error, format_response(response)
    check_not_cacheable(response)
    if description is not None:
        assert response.json["error_description"] == description, format_response(response)


def check_inactive_token(response: Any) -> None:
    """Check introspection's response for a token that this client may not introspect: active false and nothing else."""
    assert response.status_int == 200, format_response(response)
    assert response.json == {"active": False}, format_response(response)
    check_not_cacheable(response)


def check_api_error(response: Any, status: int, error: str) -> dict[str, Any]:
    """Check the management API's error format; returns its members."""
    assert response.status_int == status, format_response(response)
    assert response.content_type == "application/json", format_response(response)
    members: dict[str, Any] = response.json
    assert members["error"] == error, format_response(response)
    assert set(members) <= {"error", "message", "fields", "request_id"}, format_response(response)
    assert members["message"], format_response(response)
    assert members["request_id"], format_response(response)
    assert response.headers["Cache-Control"] == "no-store", format_response(response)
    return members


def check_page(response: Any, status: int = 200, title: str | None = None) -> Any:
    """Check an HTML page: never cached, framed or sniffed; returns it parsed."""
    assert response.status_int == status, format_response(response)
    assert response.content_type == "text/html", format_response(response)
    assert "Location" not in response.headers, format_response(response)
    assert response.headers["Cache-Control"] == "no-store", format_response(response)
    assert response.headers["X-Content-Type-Options"] == "nosniff", format_response(response)
    assert response.headers["X-Frame-Options"] == "DENY", format_response(response)
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'"), format_response(response)
    assert "frame-ancestors 'none'" in policy, format_response(response)
    assert "unsafe" not in policy, format_response(response)
    if title is not None:
        assert response.html.h1.get_text(strip=True) == title, format_response(response)
    return response.html


def format_response(response: Any) -> str:
    """The whole response, for the message of a failed check."""
    lines = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"\n{response.status}\n{lines}\n\n{response.body.decode('utf-8', 'replace')}"


def comparable_headers(answer: Any) -> list[tuple[str, str]]:
    """The headers of a response, except those that always differ."""
    return [item for item in answer.headerlist if item[0] != "X-Request-ID"]
