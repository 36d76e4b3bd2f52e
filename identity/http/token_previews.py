"""Which user and application a token preview is about, for console and API alike."""

from identity.domain.applications import Client
from identity.domain.errors import Invalid
from identity.domain.permissions import organization_resource, project_resource
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.domain.words import say
from identity.provider.preview import Preview, preview
from identity.provider.request import Context
from identity.services.access import Principal

USER, APPLICATION = "user_id", "application_id"


def preview_of(
    context: Context, by: Principal, *, user: str, application: str, scope: str, response_type: str
) -> Preview:
    """What would come out for the user, named by id or login name, and the application, by client id.

    ``application`` is empty for a service user, which signs an assertion. Raises Invalid for what does not exist or the
    caller may not read, and for a pair that cannot be.
    """
    problems: dict[str, str] = {}
    subject = _subject(context, by, user)
    if subject is None:
        problems[USER] = say("There is no such user.") if user else say("Choose a user.")
    client = _client(context, by, application) if application else None
    if application and client is None:
        problems[APPLICATION] = say("There is no such application.")
    elif subject is not None and isinstance(subject.user, HumanUser) and client is None:
        problems[APPLICATION] = say("Choose the application that the person signs in to.")
    elif subject is not None and isinstance(subject.user, ServiceUser) and client is not None:
        problems[APPLICATION] = say("A service user signs in by itself: leave the application empty.")
    if problems or subject is None:
        raise Invalid(problems)
    return preview(subject, client, tuple(dict.fromkeys(scope.split())), response_type, context)


def _subject(context: Context, by: Principal, text: str) -> Subject | None:
    users = context.services.storage.users
    found = (users.find_subject(text) or users.find_by_login_name(text)) if text else None
    if found is None:
        return None
    permission = "service_user.read" if isinstance(found.user, ServiceUser) else "user.read"
    resource = organization_resource(found.organization.id)
    return found if context.services.access.may(by, permission, resource) else None


def _client(context: Context, by: Principal, text: str) -> Client | None:
    found = context.services.storage.applications.find_client(text)
    if found is None:
        return None
    return found if context.services.access.may(by, "application.read", project_resource(found.project)) else None
