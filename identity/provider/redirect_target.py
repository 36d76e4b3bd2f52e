"""RedirectTarget: redirect URI and response mode of an authorization request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from identity.provider.errors import OAuthError
from identity.provider.protocol_request import FormPost, ProtocolResponse
from identity.provider.response_type import ResponseMode

#: Codes and tokens must not leak through the next request's Referer.
_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache", "Referrer-Policy": "no-referrer"}


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """A trusted redirect URI with response mode, state and issuer; all responses contain the last two (RFC 9207)."""

    uri: str
    mode: ResponseMode
    state: str | None
    issuer: str
    application: str

    def success_response(self, members: Mapping[str, Any]) -> ProtocolResponse:
        """A redirect (303) with these members, or a page that posts them."""
        from identity.provider.pyoidc_messages import AuthorizationResponse

        message = AuthorizationResponse(**members, iss=self.issuer)
        if self.state is not None:
            message["state"] = self.state
        if self.mode is ResponseMode.FORM_POST:
            fields = {name: str(value) for name, value in message.to_dict().items()}
            form = FormPost(self.uri, fields, self.application)
            return ProtocolResponse(200, headers=_HEADERS, form_post=form)
        location = message.request(self.uri, self.mode is ResponseMode.FRAGMENT)
        return ProtocolResponse(303, headers={**_HEADERS, "Location": location})

    def error_response(self, error: OAuthError) -> ProtocolResponse:
        """A redirect or page with the error (service description §7)."""
        return self.success_response({"error": error.error, "error_description": error.description})
