"""Application: an OIDC client of a project."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import TokenFormat

MAX_LIVE_SECRETS = 2


class ApplicationType(StrEnum):
    """Where an application runs, and so what it can keep secret."""

    WEB = "web"
    NATIVE = "native"
    BROWSER = "browser"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A client secret as it is stored: its SHA-256."""

    id: str
    digest: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An OIDC client. ``id`` is the client id, letters and digits alone."""

    id: str
    project_id: str
    name: str
    type: ApplicationType
    created_at: datetime
    changed_at: datetime
    authentication_method: str = "client_secret_basic"
    response_types: frozenset[str] = frozenset()
    grant_types: frozenset[str] = frozenset()
    redirect_uris: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    access_token_type: TokenFormat = TokenFormat.OPAQUE
    access_token_lifetime: timedelta | None = None
    id_token_lifetime: timedelta | None = None
    id_token_userinfo_assertion: bool = False
    assert_roles_in_access_token: bool = False
    assert_roles_in_id_token: bool = False
    development: bool = False
    active: bool = True
    version: int = 1


@dataclass(frozen=True, slots=True)
class Client:
    """An application with everything that decides whether it may act: secrets, project, organization."""

    application: Application
    secrets: tuple[ClientSecret, ...]
    project: Project
    organization: Organization

    @property
    def id(self) -> str:
        """The client id."""
        return self.application.id

    @property
    def active(self) -> bool:
        """True while neither application, project nor organization is deactivated."""
        return self.application.active and self.project.active and self.organization.active

    def in_audience(self, audience: tuple[str, ...]) -> bool:
        """True if a token with this audience is meant for the client: its id or its project's id is named."""
        return self.application.id in audience or self.project.id in audience
