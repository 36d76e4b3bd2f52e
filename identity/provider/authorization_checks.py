"""Admission: what an authorization brings, once nothing stands against its user at its application.

The same for every grant and for the answers of the authorization endpoint, so that no way around a policy is left.
"""

from identity.domain.organizations import Organization
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, OAuthError
from identity.provider.grant_type import Authorization
from identity.provider.role_claims import refuse_without_role
from identity.provider.scope import GrantedScopes, require_member, resolve_scopes


def check_and_resolve_scopes(
    authorization: Authorization,
    context: Context,
    *,
    organization: Organization | None = None,
    error: type[OAuthError] = AccessDenied,
) -> GrantedScopes:
    """What is granted to a person who belongs to the organization, if one is required, and may use the application.

    Raises the error, or InvalidScope.
    """
    if authorization.subject is not None:
        require_member(authorization.subject, organization)
    refuse_without_role(authorization.subject, authorization.client, context, error=error)
    return resolve_scopes(authorization, context)
