"""User and application of a token preview, for console and API."""

from identity.domain.applications import ApplicationClient
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import Resource, project_resource
from identity.domain.users import ServiceUser, Subject
from identity.provider.context import Context
from identity.provider.token_preview import TokenPreviewResult, preview_tokens
from identity.services.access_control import Principal

USER_PARAM, APPLICATION_PARAM = "user_id", "application_id"


def build_token_preview(
    context: Context,
    principal: Principal,
    *,
    user: str,
    application: str,
    scope: str,
    response_type: str,
    resource: str = "",
) -> TokenPreviewResult:
    """Preview tokens for the user, by id or login name, and the application, by client id. ``scope`` and ``resource``
    are separated by spaces. Either may be empty: a
    service user can act for itself, and so can an application. Raises Invalid for what does not exist or the principal
    may not read, and for a pair that no grant type supports."""
    problems: dict[str, str] = {}
    subject, client = find_user(context, principal, user), find_application(context, principal, application)
    if user and subject is None:
        problems[USER_PARAM] = gettext_lazy("There is no such user.")
    if application and client is None:
        problems[APPLICATION_PARAM] = gettext_lazy("There is no such application.")
    if not user and not application:
        problems[USER_PARAM] = gettext_lazy("Choose a user, an application or both.")
    if problems:
        raise Invalid(problems)
    scopes = tuple(dict.fromkeys(scope.split()))
    preview = preview_tokens(subject, client, scopes, response_type, context, resource=" ".join(resource.split()))
    if not preview.grant_previews and not preview.unsupported_grant_types:
        raise Invalid(_unsupported_reason(subject, client))
    return preview


def _unsupported_reason(subject: Subject | None, client: ApplicationClient | None) -> dict[str, str]:
    if subject is None:
        return {
            USER_PARAM: gettext_lazy(
                "This preview does not apply to applications that act for themselves. Choose a user."
            )
        }
    if client is None:
        return {APPLICATION_PARAM: gettext_lazy("Choose the application that the user signs in to.")}
    return {APPLICATION_PARAM: gettext_lazy("A service user signs in without an application: leave this empty.")}


def find_user(context: Context, principal: Principal, text: str) -> Subject | None:
    """The user with this id or login name, if the principal may read it."""
    users = context.services.storage.users
    subject = (users.find_subject(text) or users.find_by_login_name(text)) if text else None
    if subject is None:
        return None
    permission = "service_user.read" if isinstance(subject.user, ServiceUser) else "user.read"
    resource = Resource.of_organization(subject.organization.id)
    return subject if context.services.access_control.is_permitted(principal, permission, resource) else None


def find_application(context: Context, principal: Principal, text: str) -> ApplicationClient | None:
    """The application with this client id, if the principal may read it."""
    client = context.services.storage.applications.find_client(text) if text else None
    if client is None:
        return None
    if context.services.access_control.is_permitted(principal, "application.read", project_resource(client.project)):
        return client
    return None
