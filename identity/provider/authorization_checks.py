"""Checks on the user, their organization and the application before anything is granted.

All grants and the authorization endpoint share them, so that none bypasses a policy.
"""

from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, OAuthError, UnauthorizedClient
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
    """The granted scopes, if the user may use the application and belongs to the required organization, if any. Raises
    the error, InvalidScope, or UnauthorizedClient for a dynamic client without a person."""
    _refuse_dynamic_client_without_person(authorization)
    if authorization.subject is not None:
        require_member(authorization.subject, organization)
        if not context.services.agent_rules.has_active_owner(authorization.subject):
            raise error("the owner of this agent cannot use their account")
    refuse_without_role(authorization.subject, authorization.client, context, error=error)
    granted = resolve_scopes(authorization, context)
    if authorization.impersonator_id is not None and any(
        context.services.projects.is_own_project(item) for item in granted.audience
    ):
        raise error("Someone who is signed in as another person cannot manage this service as that person.")
    return granted


def _refuse_dynamic_client_without_person(authorization: Authorization) -> None:
    """Raise UnauthorizedClient: without a person nobody can consent."""
    client, subject = authorization.client, authorization.subject
    if client is None or not client.application.is_dynamic:
        return
    if subject is None or not isinstance(subject.user, HumanUser):
        raise UnauthorizedClient("an application that no manager created gets tokens only for people who consent")
