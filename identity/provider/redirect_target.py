"""RedirectTarget: where and how a client receives an authorization response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from identity.provider.errors import OAuthError
from identity.provider.protocol_request import FormPost, ProtocolResponse
from identity.provider.response_type import ResponseTransport

#: Codes and tokens must not leak through the next request's Referer.
_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache", "Referrer-Policy": "no-referrer"}


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """A trusted redirect URI with state and issuer, which all responses contain (RFC 9207), and the transport and
    encoding of the response mode. An encoded response contains the issuer itself."""

    uri: str
    transport: ResponseTransport
    state: str | None
    issuer: str
    application: str
    encode: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None

    def success_response(self, members: Mapping[str, Any]) -> ProtocolResponse:
        """A redirect (303) with these members, or a page that posts them."""
        from identity.provider.pyoidc_messages import AuthorizationResponse

        if self.state is not None:
            members = {**members, "state": self.state}
        encoded = {**members, "iss": self.issuer} if self.encode is None else self.encode(members)
        message = AuthorizationResponse(**encoded)
        if self.transport is ResponseTransport.FORM_POST:
            fields = {name: str(value) for name, value in message.to_dict().items()}
            form = FormPost(self.uri, fields, self.application)
            return ProtocolResponse(200, headers=_HEADERS, form_post=form)
        location = message.request(self.uri, self.transport is ResponseTransport.FRAGMENT)
        return ProtocolResponse(303, headers={**_HEADERS, "Location": location})

    def error_response(self, error: OAuthError) -> ProtocolResponse:
        """A redirect or page with the error (service description §7)."""
        return self.success_response({"error": error.error, "error_description": error.description})
