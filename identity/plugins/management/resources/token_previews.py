"""Token preview: which tokens and claims a user and an application would get, and why."""

from typing import Any

from identity.domain.organizations import Organization
from identity.domain.users import TokenFormat
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import build_token_preview
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import ORGANIZATION
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation
from identity.provider.claim_reasons import ClaimsCarrier
from identity.provider.scope import Scope
from identity.provider.token_preview import GrantPreview, PreviewedClaims
from identity.services.commands import Command


class TokenPreviewRequest(Command):
    """Whose tokens: a user by id or login name, the client id of an application, or both. `scope` and `resource` are
    separated by spaces."""

    user_id: str = ""
    application_id: str = ""
    scope: str = Scope.OPENID
    response_type: str = "code"
    resource: str = ""


class ExplainedClaimRepresentation(Representation):
    """A claim and the reason for it; `value` is null if it differs each time."""

    name: str
    value: Any
    why: str


class PreviewedClaimsRepresentation(Representation):
    """A token, or a response about the access token, with its claims."""

    carrier: ClaimsCarrier
    format: TokenFormat | None
    expires_at: DateTime | None
    claims: list[ExplainedClaimRepresentation]


class OmittedItemRepresentation(Representation):
    """What was requested or could be expected, and why it is missing."""

    what: str
    why: str


class OAuthErrorRepresentation(Representation):
    """The error that the client would get."""

    error: str
    error_description: str


class GrantPreviewRepresentation(Representation):
    """The result of one grant type, or (null) of a sign-in by an authorization request."""

    grant_type: str | None
    scope: list[str]
    audience: list[str]
    carried: list[PreviewedClaimsRepresentation]
    left_out: list[OmittedItemRepresentation]
    refusal: OAuthErrorRepresentation | None


class TokenPreviewRepresentation(Representation):
    """The results by grant type. Nothing is issued or recorded. `untold` are grant types without a preview."""

    has_volatile_members = True

    ways: list[GrantPreviewRepresentation]
    untold: list[str]


def _represent(call: OperationCall[Organization]) -> TokenPreviewRepresentation:
    preview_request = call.filters_as(TokenPreviewRequest)
    preview = build_token_preview(
        request_context(call.request),
        call.principal,
        user=preview_request.user_id,
        application=preview_request.application_id,
        scope=preview_request.scope,
        response_type=preview_request.response_type,
        resource=preview_request.resource,
    )
    return TokenPreviewRepresentation(
        ways=[_represent_grant_preview(grant_preview) for grant_preview in preview.grant_previews],
        untold=list(preview.unsupported_grant_types),
    )


def _represent_grant_preview(preview: GrantPreview) -> GrantPreviewRepresentation:
    refusal = preview.error
    return GrantPreviewRepresentation(
        grant_type=preview.grant_type,
        scope=list(preview.granted),
        audience=list(preview.audience),
        carried=[_represent_claims(previewed) for previewed in preview.previewed_claims],
        left_out=[OmittedItemRepresentation(what=item.name, why=item.reason) for item in preview.omitted],
        refusal=None
        if refusal is None
        else OAuthErrorRepresentation(error=refusal.error, error_description=refusal.description or ""),
    )


def _represent_claims(previewed: PreviewedClaims) -> PreviewedClaimsRepresentation:
    claims = [ExplainedClaimRepresentation.from_value(claim, why=claim.reason) for claim in previewed.claims]
    return PreviewedClaimsRepresentation.from_value(previewed, claims=claims)


OPERATIONS = (
    ApiResource[None]("token_preview", TokenPreviewRepresentation).get(
        ORGANIZATION / "token-preview",
        "Shows which tokens and claims a user and an application would get, and why.",
        _represent,
        name="preview_tokens",
        permission="user.read",
        description="Simulates a sign-in to the application, then shows what each grant type would issue: "
        "after that sign-in, for a service user, or for an application alone. Nothing is "
        "issued.",
        filters=TokenPreviewRequest,
    ),
)
