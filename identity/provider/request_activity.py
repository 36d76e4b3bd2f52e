"""What a protocol request was about, for figures and the log of its application."""

from dataclasses import dataclass

from identity.domain.applications import ApplicationClient
from identity.domain.users import Subject
from identity.provider.errors import OAuthError


@dataclass(slots=True)
class RequestActivity:
    """Filled while the request is handled. It holds ids and our own words, never what a parameter contained.

    ``application_id`` is the client's, ``is_verified`` False while the request only names it. ``token_owner`` is the
    application or service user that got tokens, ``organization_id`` the one of the application or service user.
    ``error`` is the OAuth error code."""

    application_id: str = ""
    is_verified: bool = False
    organization_id: str = ""
    user_id: str | None = None
    token_owner: str = ""
    error: str = ""
    reason: str = ""
    is_recorded: bool = False

    def name_client(self, client_id: str) -> None:
        """The request names this client."""
        self.application_id = client_id

    def set_client(self, client: ApplicationClient) -> None:
        """The request is of this application."""
        self.application_id, self.is_verified = client.id, True
        self.organization_id = client.organization.id

    def forget_client(self) -> None:
        """The request is a step within another one: it is not logged."""
        self.application_id = ""

    def refuse(self, error: OAuthError) -> None:
        self.error, self.reason = error.error, error.audit_reason

    def issue_tokens(self, client: ApplicationClient | None, subject: Subject | None) -> None:
        """Tokens were issued to the application, or else to the service user."""
        if client is not None:
            self.set_client(client)
            self.token_owner = client.id
        elif subject is not None:
            self.token_owner, self.organization_id = subject.user.id, subject.organization.id
        self.user_id = None if subject is None else subject.user.id
