"""Explains in previews why each claim is included."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.domain.projects import Project
from identity.domain.users import ServiceUser
from identity.provider.context import Context
from identity.provider.grant_type import Authorization
from identity.provider.role_claims import RoleScope
from identity.provider.scope import GrantedScopes

#: Claims whose value differs in each token: the preview does not show its own.
VOLATILE_CLAIMS = frozenset({"jti", "at_hash", "c_hash", "sid", "nonce"})

_OF_THE_PROTOCOL = {
    "iss": gettext_lazy("the issuer of this service"),
    "sub": gettext_lazy("the id of the user"),
    "aud": gettext_lazy("whom it is for: the application, its project, and what scopes add"),
    "azp": gettext_lazy("the client that it is issued to"),
    "client_id": gettext_lazy("the client that it is issued to"),
    "scope": gettext_lazy("what was granted"),
    "iat": gettext_lazy("when it is issued"),
    "exp": gettext_lazy("when it expires"),
    "auth_time": gettext_lazy("when the user last proved who they are"),
    "acr": gettext_lazy("how the user proved who they are"),
    "amr": gettext_lazy("how the user proved who they are"),
    "nonce": gettext_lazy("as the application sends it"),
    "jti": gettext_lazy("a new id for each token"),
    "sid": gettext_lazy("the id of the session"),
    "at_hash": gettext_lazy("ties the ID token to the access token"),
    "c_hash": gettext_lazy("ties the ID token to the code"),
    "active": gettext_lazy("the token is live, and the asking application is in its audience"),
    "token_type": gettext_lazy("how the token is sent"),
    "username": gettext_lazy("the login name"),
}


class ClaimsCarrier(StrEnum):
    """What contains claims or leads to them."""

    CODE = "code"
    ACCESS_TOKEN = "access_token"  # noqa: S105 - a word of the protocol
    ID_TOKEN = "id_token"  # noqa: S105
    REFRESH_TOKEN = "refresh_token"  # noqa: S105
    USERINFO = "userinfo"
    INTROSPECTION = "introspection"


@dataclass(frozen=True, slots=True)
class ExplainedClaim:
    """A claim with the reason why it is included; ``value`` is None if it differs each time."""

    name: str
    value: object
    reason: str


class ClaimReasons:
    """Explains the claims in the tokens of one authorization."""

    def __init__(self, authorization: Authorization, granted: GrantedScopes, context: Context) -> None:
        self._subject = authorization.subject
        self._client = authorization.client
        self._granted_scopes = granted.values
        self._context = context
        namespaces = context.settings.urn_namespaces
        self._role_names = tuple(f"{namespace}:org:project" for namespace in namespaces)
        self.role_scopes = [value for value in granted.values if RoleScope.is_valid(value, namespaces)]
        with context.services.read_session() as storage:
            self._projects: Mapping[str, Project] = storage.projects.find_many(granted.audience)

    def explain(
        self, carrier: ClaimsCarrier, claims: Mapping[str, Any], *, without_access_token: bool = False
    ) -> tuple[ExplainedClaim, ...]:
        """The claims of a carrier with their reasons; ``without_access_token`` for an ID token issued without one."""
        return tuple(
            ExplainedClaim(
                name, None if name in VOLATILE_CLAIMS else value, self._why(carrier, name, alone=without_access_token)
            )
            for name, value in claims.items()
        )

    def _why(self, carrier: ClaimsCarrier, name: str, *, alone: bool) -> str:
        if name == "sub" and self._subject is None:
            return _OF_THE_PROTOCOL["client_id"]
        if name in _OF_THE_PROTOCOL:
            return _OF_THE_PROTOCOL[name]
        if name.startswith(self._role_names):
            return self._why_roles(carrier, name)
        opened_by = self._context.protocol.scopes.find_opening_scope(name, self._granted_scopes)
        if carrier is not ClaimsCarrier.ID_TOKEN or opened_by is None:
            return self._user_claim_reason(name, opened_by)
        if alone:
            return gettext_lazy("scope {scope}, and no access token comes with it", scope=opened_by)
        return gettext_lazy("scope {scope}, and “User Info inside ID Token” is on", scope=opened_by)

    def _user_claim_reason(self, name: str, opened_by: str | None) -> str:
        of_service_user = self._subject is not None and isinstance(self._subject.user, ServiceUser)
        if of_service_user and name in ("name", "preferred_username", "updated_at"):
            return gettext_lazy("always told of a service user")
        scope_name = opened_by or next((item for item in self._granted_scopes if name.startswith(f"{item}:")), None)
        return (
            gettext_lazy("a plugin adds it") if scope_name is None else gettext_lazy("scope {scope}", scope=scope_name)
        )

    def _why_roles(self, carrier: ClaimsCarrier, name: str) -> str:
        if carrier is ClaimsCarrier.ACCESS_TOKEN:
            return gettext_lazy("the application asserts roles in access tokens")
        if carrier is ClaimsCarrier.ID_TOKEN:
            return gettext_lazy("the application asserts roles in ID tokens")
        if self.role_scopes and self._always_asserts_roles(name):
            return gettext_lazy("scope {scope}, and role assertion of the project", scope=" ".join(self.role_scopes))
        if self.role_scopes:
            return gettext_lazy("scope {scope}", scope=" ".join(self.role_scopes))
        return gettext_lazy("role assertion of the project")

    def _always_asserts_roles(self, name: str) -> bool:
        """True if the claim's project always asserts roles."""
        about = [project for project in self._projects.values() if f":{project.id}:" in name]
        if not about:
            own_project_id = None if self._client is None else self._client.project.id
            about = [project for project in self._projects.values() if own_project_id in (None, project.id)]
        return any(project.assert_roles for project in about)
