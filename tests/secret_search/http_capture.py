"""Records secrets in requests and responses of WebTest and of http.client, which requests and pyoidc use."""

import http.client
import io
import json
import re
from typing import Any
from urllib.parse import unquote_plus

from webtest import TestApp

from tests.secret_search.search import SecretSearch

#: Larger bodies are documents and contain no secrets.
_LONGEST = 65536

#: Names of parameters, JSON members and form fields that contain secrets.
_NAMES = (
    r"(?!token_endpoint|access_token_|id_token_signing|secrets?_)"
    r"(?:\w*(?:password|secret|token|assertion)\w*|code|code_verifier|device_code|user_code|otp)(?<!_type)(?<!_expires_at)"
    r"(?<!_hint)(?<!_format)(?<!_method)(?<!_id)(?<!_rule)(?<!_days)"
)
_IN_FORM = re.compile(rf"(?:^|[?&#\s])({_NAMES})=([^&\s\"'<>#]+)")
_IN_JSON = re.compile(rf'"({_NAMES})"\s*:\s*("(?:[^"\\]|\\.)*")')
_IN_PARTS = re.compile(rf'name="({_NAMES})"\r\n\r\n(.*?)\r\n--')
_AUTHORIZATION = re.compile(r"\s*(?:Basic|Bearer|DPoP)\s+(\S+)\s*", re.IGNORECASE)
_COOKIE = re.compile(r"[^=;\s]+=\"?([^;\s\"]+)")


#: Response headers that may contain secrets.
_TELLING = frozenset({"Location", "Set-Cookie"})


class HttpCapture:
    """Finds secrets in requests and responses."""

    def __init__(self, search: SecretSearch) -> None:
        self._note = search.note

    def header(self, name: str, value: str) -> None:
        name = name.lower()
        if name == "authorization" and (credentials := _AUTHORIZATION.fullmatch(value)):
            self._note(credentials[1])
        elif name == "cookie":
            for item in _COOKIE.findall(value):
                self._note(item)
        elif name == "set-cookie" and (set_ := _COOKIE.match(value)):
            self._note(set_[1])
        elif name == "location":
            self.form(value)

    def form(self, text: str) -> None:
        for _, value in _IN_FORM.findall(text):
            self._note(unquote_plus(value))

    def body(self, data: bytes) -> None:
        """Record the secrets in a body: a form, JSON, or neither."""
        if not data or len(data) > _LONGEST or data.lstrip().startswith(b"<"):
            return
        text = data.decode("utf-8", "replace")
        if text.startswith("--"):
            for _, value in _IN_PARTS.findall(text):
                self._note(value)
        elif text.lstrip().startswith(("{", "[")):
            for _, value in _IN_JSON.findall(text):
                try:
                    self._note(json.loads(value))
                except ValueError:
                    self._note(value[1:-1])
        else:
            self.form(text)


def wrap(search: SecretSearch) -> None:
    """Record the traffic of WebTest and http.client."""
    exchanges = HttpCapture(search)
    _wrap_webtest(exchanges)
    _wrap_http(exchanges)


def _wrap_webtest(exchanges: HttpCapture) -> None:
    do_request = TestApp.do_request

    def done(app: TestApp, request: Any, *arguments: Any, **named: Any) -> Any:
        for name, key in (("Authorization", "HTTP_AUTHORIZATION"), ("Cookie", "HTTP_COOKIE")):
            exchanges.header(name, request.environ.get(key, ""))
        exchanges.form(f"?{request.query_string}")
        # Other streams are not read: they may be shorter than their Content-Length, or too large for memory.
        if isinstance(request.body_file_raw, io.BytesIO):
            exchanges.body(request.body_file_raw.getvalue())
        answer = do_request(app, request, *arguments, **named)
        for name, value in answer.headerlist:
            if name in _TELLING:
                exchanges.header(name, value)
        exchanges.body(answer.body)
        return answer

    TestApp.do_request = done


def _wrap_http(exchanges: HttpCapture) -> None:
    send, begin, read = http.client.HTTPConnection.send, http.client.HTTPResponse.begin, http.client.HTTPResponse.read

    def sent(connection: Any, data: Any) -> None:
        if isinstance(data, bytes):
            head, _, body = data.partition(b"\r\n\r\n")
            if b" HTTP/1." in head:
                first, *lines = head.decode("latin-1").split("\r\n")
                exchanges.form(first)
                for line in lines:
                    name, _, value = line.partition(":")
                    exchanges.header(name, value.strip())
            exchanges.body(body or data)
        send(connection, data)

    def begun(response: Any) -> None:
        begin(response)
        for name, value in response.headers.items():
            exchanges.header(name, value)

    def was_read(response: Any, *arguments: Any, **named: Any) -> bytes:
        data = read(response, *arguments, **named)
        exchanges.body(data)
        return data

    http.client.HTTPConnection.send = sent  # type: ignore[method-assign]
    http.client.HTTPResponse.begin = begun  # type: ignore[method-assign]
    http.client.HTTPResponse.read = was_read  # type: ignore[method-assign]
