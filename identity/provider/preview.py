"""Preview: which tokens and claims a user and an application would get, and why; nothing is issued or recorded.

It goes the way of real tokens (``authorizations``, ``scope.resolve``, ``issuing.mint``) up to the point where they are
recorded, with a key to sign that nobody publishes. So it cannot tell anything else than what is issued.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from identity.crypto.jwt import inspect
from identity.crypto.keys import PrivateKey, generate_private_key
from identity.crypto.secrets import new_id
from identity.domain.applications import Client
from identity.domain.authentication import BY_PASSWORD
from identity.domain.authorization_codes import PresentedCode
from identity.domain.projects import Project
from identity.domain.tokens import IssuedToken, TokenFamily
from identity.domain.users import ServiceUser, Subject, TokenFormat
from identity.domain.words import say
from identity.provider.authorization_request import enabled_response_type
from identity.provider.authorizations import by_assertion, by_code, by_sign_in
from identity.provider.claims import claims_about
from identity.provider.claims_request import ClaimsRequest
from identity.provider.endpoints import introspect, userinfo
from identity.provider.endpoints.token import require_registered
from identity.provider.errors import (
    InsufficientScope,
    InvalidGrant,
    InvalidRequest,
    OAuthError,
    UnknownApplication,
    UnsupportedGrantType,
)
from identity.provider.grant import Authorization
from identity.provider.issuing import Minted, mint, new_code, new_family
from identity.provider.request import Context
from identity.provider.response_type import Artifact, ResponseType
from identity.provider.roles import is_role_scope, refuse_without_role, role_claims
from identity.provider.scope import (
    OFFLINE_ACCESS,
    OPENID,
    GrantedScopes,
    check_words,
    require_member,
    required_organization,
    resolve,
)

_CODE_GRANT = "authorization_code"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"

#: Claims whose value is another one in each token: the preview does not show what it drew for itself.
NEW_EACH_TIME = frozenset({"jti", "at_hash", "c_hash", "sid", "nonce"})

_LONGEST = 1024 * 1024

_OF_THE_PROTOCOL = {
    "iss": say("the issuer of this service"),
    "sub": say("the id of the user"),
    "aud": say("whom it is for: the application, its project, and what scopes add"),
    "azp": say("the client that it is issued to"),
    "client_id": say("the client that it is issued to"),
    "scope": say("what was granted"),
    "iat": say("when it is issued"),
    "exp": say("when it expires"),
    "auth_time": say("when the user last proved who they are"),
    "nonce": say("as the application sends it"),
    "jti": say("a new id for each token"),
    "sid": say("the id of the session"),
    "at_hash": say("ties the ID token to the access token"),
    "c_hash": say("ties the ID token to the code"),
    "active": say("the token is live, and the asking application is in its audience"),
    "token_type": say("how the token is sent"),
    "username": say("the login name"),
}


class Carrier(StrEnum):
    """What carries claims, or leads to some that do."""

    CODE = "code"
    ACCESS_TOKEN = "access_token"  # noqa: S105 - a word of the protocol
    ID_TOKEN = "id_token"  # noqa: S105
    REFRESH_TOKEN = "refresh_token"  # noqa: S105
    USERINFO = "userinfo"
    INTROSPECTION = "introspection"


_NO_ROLES = {
    Carrier.ACCESS_TOKEN: (
        say("Role claims in the access token"),
        say("The application does not assert roles in access tokens."),
    ),
    Carrier.ID_TOKEN: (say("Role claims in the ID token"), say("The application does not assert roles in ID tokens.")),
}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with the reason for which it is there; ``value`` is None where it is a new one each time."""

    name: str
    value: object
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A token, or an answer about the access token. ``format`` is that of an access token."""

    carrier: Carrier
    claims: tuple[Claim, ...] = ()
    format: TokenFormat | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was asked for or could be expected, and why it is not there."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What would come out. With ``refusal`` the client is told that error, and nothing after it is issued."""

    granted: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    carried: tuple[Carried, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    refusal: OAuthError | None = None


def preview(
    subject: Subject, client: Client | None, asked: tuple[str, ...], response_type: str, context: Context
) -> Preview:
    """The tokens that a person brings an application, or (without one) a service user gets for an assertion.

    ``response_type`` is that of the authorization request; ``asked`` are the scopes.
    """
    if client is None:
        return _Assertion(subject, None, asked, context).run()
    return _SignIn(subject, client, asked, context, response_type=response_type).run()


@cache
def _nobodys_key() -> tuple[str, PrivateKey]:
    """A key that is never published: what it signs is worth nothing."""
    return "preview", generate_private_key()


@dataclass
class _Run:
    """One preview in the making."""

    subject: Subject
    client: Client | None
    asked: tuple[str, ...]
    context: Context
    granted: GrantedScopes = field(default=GrantedScopes((), ()), init=False)
    carried: list[Carried] = field(default_factory=list, init=False)
    left_out: list[LeftOut] = field(default_factory=list, init=False)

    def run(self) -> Preview:
        refusal: OAuthError | None = None
        try:
            self.go()
        except OAuthError as error:
            refusal = error
        return Preview(
            granted=self.granted.words,
            audience=self.granted.audience,
            carried=tuple(self.carried),
            left_out=tuple(self.left_out),
            refusal=refusal,
        )

    def go(self) -> None:
        """Go the way, as far as it leads. Raises OAuthError."""
        raise NotImplementedError

    def resolve(self, authorization: Authorization) -> None:
        self.granted = resolve(authorization, self.context)
        self._reasons = _Reasons(self.subject, self.client, self.granted, self.context)

    def mint(self, authorization: Authorization, *, access_token: bool = True, code: str | None = None) -> Minted:
        """What is issued at this point."""
        minted = mint(authorization, self.granted, self.context, key=_nobodys_key, access_token=access_token, code=code)
        if minted.access_token is not None:
            self._carry_access_token(minted)
        if minted.tokens.id_token is not None:
            self._carry_id_token(minted)
        if minted.refresh_token is not None:
            self.carried.append(Carried(carrier=Carrier.REFRESH_TOKEN, expires_at=minted.refresh_token.expires_at))
        if minted.access_token is not None:
            self._carry_answers(IssuedToken(minted.access_token, self.subject, self.client))
        return minted

    def _carry_access_token(self, minted: Minted) -> None:
        token, text = minted.access_token, minted.tokens.access_token
        if token is None or text is None:
            return
        claims = _claims_in(text) if token.format is TokenFormat.JWT else {}
        self.carried.append(
            Carried(
                carrier=Carrier.ACCESS_TOKEN,
                claims=self._reasons.of(Carrier.ACCESS_TOKEN, claims),
                format=token.format,
                expires_at=token.expires_at,
            )
        )
        if token.format is TokenFormat.JWT:
            self._tell_missing_roles(Carrier.ACCESS_TOKEN, claims)

    def _carry_id_token(self, minted: Minted) -> None:
        claims = _claims_in(minted.tokens.id_token or "")
        fronted = minted.access_token is None
        self.carried.append(
            Carried(
                carrier=Carrier.ID_TOKEN,
                claims=self._reasons.of(Carrier.ID_TOKEN, claims, alone=fronted),
                expires_at=datetime.fromtimestamp(claims["exp"], self.context.now.tzinfo),
            )
        )
        self._tell_missing_roles(Carrier.ID_TOKEN, claims)
        about = claims_about(self.subject.user, self.granted.words, self.context)
        missing = [name for name in about if name not in claims]
        if missing:
            asks_itself = say("The client has an access token and can ask userinfo for them.")
            switched_off = say(
                "The application has an access token and can ask userinfo for them; “User Info inside ID Token” is off."
            )
            self._leave_out(
                say("{claims} in the ID token", claims=", ".join(missing)),
                asks_itself if self.client is None else switched_off,
            )

    def _carry_answers(self, issued: IssuedToken) -> None:
        """What the access token opens."""
        try:
            members = userinfo.members_of(issued, self.context)
            self.carried.append(Carried(carrier=Carrier.USERINFO, claims=self._reasons.of(Carrier.USERINFO, members)))
        except InsufficientScope:
            self._leave_out("userinfo", say("The scope openid is missing."))
        members = introspect.members_of(issued, self.context)
        self.carried.append(
            Carried(carrier=Carrier.INTROSPECTION, claims=self._reasons.of(Carrier.INTROSPECTION, members))
        )

    def tell_scopes(self) -> None:
        """Which of the asked scopes were dropped, and which of the granted ones bring nothing."""
        for word in dict.fromkeys(self.asked):
            if word not in self.granted:
                self._leave_out(say("scope {scope}", scope=word), self._why_dropped(word))
        scopes = self.context.protocol.scopes
        known = claims_about(self.subject.user, self.granted.words, self.context)
        for word in self.granted.words if not isinstance(self.subject.user, ServiceUser) else ():
            unknown = sorted(scopes.opened((word,)) - known.keys())
            if unknown:
                self._leave_out(
                    say("{claims} of the scope {scope}", claims=", ".join(unknown), scope=word),
                    say("Nothing is known of it."),
                )
        if self._reasons.role_scopes and not role_claims(self.subject, self.client, self.granted, self.context):
            self._leave_out(say("Role claims"), say("The user has no such role in a project of the audience."))

    def _why_dropped(self, word: str) -> str:
        if self.context.protocol.scopes.find(word) is None:
            return say("There is no such scope.")
        if word != OFFLINE_ACCESS:
            return say("Its namespace is not one of this service.")
        if self.client is None:
            return say("A service user gets no refresh token: it can ask again at any time.")
        if "refresh_token" not in self.client.application.grant_types:
            return say("The application may not use refresh tokens.")
        return say("Without a code there is no refresh token.")

    def _tell_missing_roles(self, carrier: Carrier, claims: Mapping[str, Any]) -> None:
        expected = role_claims(self.subject, self.client, self.granted, self.context)
        if self.client is not None and expected and not expected.keys() & claims.keys():
            self._leave_out(*_NO_ROLES[carrier])

    def _leave_out(self, what: str, why: str) -> None:
        self.left_out.append(LeftOut(what, why))


@dataclass
class _Assertion(_Run):
    """A service user shows a signed assertion."""

    def go(self) -> None:
        if _JWT_BEARER not in self.context.protocol.grants:
            raise UnsupportedGrantType(f"grant_type {_JWT_BEARER} is not offered")
        if not self.subject.active:
            raise InvalidGrant("the service user is deactivated")
        self.asked = self.asked or (OPENID,)
        check_words(self.asked)
        authorization = by_assertion(self.subject, self.asked, self.context.now, key_id=None)
        self.resolve(authorization)
        self.mint(authorization)
        self.tell_scopes()


@dataclass(kw_only=True)
class _SignIn(_Run):
    """A person signs in to an application, which redeems the code if it gets one."""

    response_type: str

    def go(self) -> None:
        client, context = self.client, self.context
        if client is None or not client.active:
            raise UnknownApplication("client_id names no active application")
        response_type = enabled_response_type(self.response_type, client, context)
        if not self.asked:
            raise InvalidRequest("parameter scope is missing")
        check_words(self.asked)
        organization = required_organization(self.asked, context)
        if not self.subject.active:
            raise InvalidGrant("the user is deactivated")
        require_member(self.subject, organization)
        refuse_without_role(self.subject, client, context)
        authorization = by_sign_in(
            self.subject,
            client,
            self.asked,
            response_type.issues,
            authenticated_at=context.now,
            session_id=new_id(),
            nonce="nonce",
            methods=(BY_PASSWORD,),
            claims=ClaimsRequest(),
        )
        self.resolve(authorization)
        family = new_family(authorization, self.granted, context)
        authorization = replace(authorization, family_id=family.id)
        self._answer(authorization, family, response_type, client)
        self.tell_scopes()

    def _answer(
        self, authorization: Authorization, family: TokenFamily, response_type: ResponseType, client: Client
    ) -> None:
        issues, context = response_type.issues, self.context
        text, code = None, None
        if Artifact.CODE in issues:
            text, code = new_code(authorization, self.granted, context, redirect_uri="", code_challenge=None)
            self.carried.append(Carried(carrier=Carrier.CODE, expires_at=code.expires_at))
        if response_type.fronts_tokens:
            self.mint(authorization, access_token=Artifact.ACCESS_TOKEN in issues, code=text)
        if code is None:
            return
        if _CODE_GRANT not in context.protocol.grants:
            raise UnsupportedGrantType(f"grant_type {_CODE_GRANT} is not offered")
        require_registered(_CODE_GRANT, client)
        redeemed = by_code(PresentedCode(code, family, self.subject), client, context)
        self.resolve(redeemed)
        self.mint(redeemed)


class _Reasons:
    """Why claims are there."""

    def __init__(self, subject: Subject, client: Client | None, granted: GrantedScopes, context: Context) -> None:
        self._subject = subject
        self._client = client
        self._words = granted.words
        self._context = context
        namespaces = context.settings.urn_namespaces
        self._role_names = tuple(f"{namespace}:org:project" for namespace in namespaces)
        self.role_scopes = [word for word in granted.words if is_role_scope(word, namespaces)]
        with context.services.look() as storage:
            self._projects: Mapping[str, Project] = storage.projects.find_many(granted.audience)

    def of(self, carrier: Carrier, claims: Mapping[str, Any], *, alone: bool = False) -> tuple[Claim, ...]:
        """The claims of a carrier with their reasons; ``alone`` if no access token comes with an ID token."""
        return tuple(
            Claim(name, None if name in NEW_EACH_TIME else value, self._why(carrier, name, alone=alone))
            for name, value in claims.items()
        )

    def _why(self, carrier: Carrier, name: str, *, alone: bool) -> str:
        if name in _OF_THE_PROTOCOL:
            return _OF_THE_PROTOCOL[name]
        if name.startswith(self._role_names):
            return self._why_roles(carrier, name)
        opened_by = self._context.protocol.scopes.opening(name, self._words)
        if carrier is not Carrier.ID_TOKEN or opened_by is None:
            return self._why_told(name, opened_by)
        if alone:
            return say("scope {scope}, and no access token comes with it", scope=opened_by)
        return say("scope {scope}, and “User Info inside ID Token” is on", scope=opened_by)

    def _why_told(self, name: str, opened_by: str | None) -> str:
        if isinstance(self._subject.user, ServiceUser) and name in ("name", "preferred_username", "updated_at"):
            return say("always told of a service user")
        word = opened_by or next((one for one in self._words if name.startswith(f"{one}:")), None)
        return say("a plugin adds it") if word is None else say("scope {scope}", scope=word)

    def _why_roles(self, carrier: Carrier, name: str) -> str:
        if carrier is Carrier.ACCESS_TOKEN:
            return say("the application asserts roles in access tokens")
        if carrier is Carrier.ID_TOKEN:
            return say("the application asserts roles in ID tokens")
        if self.role_scopes and self._asserted(name):
            return say("scope {scope}, and role assertion of the project", scope=" ".join(self.role_scopes))
        if self.role_scopes:
            return say("scope {scope}", scope=" ".join(self.role_scopes))
        return say("role assertion of the project")

    def _asserted(self, name: str) -> bool:
        """True if a project that the claim is about asserts roles by itself."""
        about = [one for one in self._projects.values() if f":{one.id}:" in name]
        if not about:
            own = None if self._client is None else self._client.project.id
            about = [one for one in self._projects.values() if own in (None, one.id)]
        return any(one.assert_roles for one in about)


def _claims_in(text: str) -> dict[str, Any]:
    return inspect(text, max_length=_LONGEST).claims
