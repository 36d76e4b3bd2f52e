"""CodeGrantType: grants that redeem a code, which stands for what a signed-in person allowed an application."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

from identity.domain.applications import ApplicationClient
from identity.domain.authorization_codes import AuthorizationCode, PresentedCode
from identity.domain.sessions import SignedInAccount
from identity.domain.tokens import AccessToken, RefreshToken
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.consent import authorization_from_sign_in, summarize_consent
from identity.provider.context import Context
from identity.provider.errors import AccessDenied, InvalidGrant
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, RefreshTokenTerms
from identity.provider.interaction import ConsentSummary
from identity.provider.response_type import Artifact
from identity.provider.scope import Scope, required_organization
from identity.provider.single_use import SingleUseCredential
from identity.provider.token_issuance import new_code, new_family


@dataclass(frozen=True, slots=True)
class CodeCredential(SingleUseCredential):
    """A valid code, redeemed when its tokens are stored."""

    code: AuthorizationCode
    client: ApplicationClient

    def consume(self, access: AccessToken | None, refresh: RefreshToken | None, context: Context) -> None:
        """Redeem the code and store its tokens. Raises InvalidGrant; a replay revokes its family."""
        with SingleUseCredential.translate_errors():
            context.services.tokens.redeem_code(self.code, self.client, access=access, refresh=refresh)


class CodeGrantType(GrantType):
    """Only the client of a code can redeem it, once. The code comes from the authorization endpoint, or from a page on
    which a signed-in person allows what an application requested without a redirect: see ``summarize_request`` and
    ``store_code``."""

    client_requirement = ClientRequirement.REQUIRED
    issues_refresh_tokens = True

    @staticmethod
    def require_scopes(scope: tuple[str, ...], context: Context) -> None:
        """Raise InvalidScope for scopes that an authorization request could not have either."""
        Scope.require_openid(scope)
        required_organization(scope, context)

    @staticmethod
    def summarize_request(
        account: SignedInAccount,
        client: ApplicationClient,
        scope: tuple[str, ...],
        context: Context,
        *,
        resources: tuple[str, ...] = (),
    ) -> ConsentSummary:
        """What the application would receive from this session, by the rules of the authorization endpoint, for the
        ``resources`` that it named (RFC 8707). Raises OAuthError if that is refused, as it is to a manager who is
        signed in as the person."""
        if account.session.is_impersonated:
            raise AccessDenied("Someone who is signed in as another person cannot do this for that person.")
        authorization = authorization_from_sign_in(
            account.subject,
            client,
            scope,
            frozenset({Artifact.CODE}),
            authenticated_at=account.session.authenticated_at,
            session_id=account.session.id,
            methods=account.session.amr_methods,
            resources=resources,
        )
        granted = check_and_resolve_scopes(authorization, context, organization=required_organization(scope, context))
        return summarize_consent(authorization, granted, context)

    @staticmethod
    def store_code(
        summary: ConsentSummary,
        digest: bytes,
        expires_at: datetime,
        context: Context,
        *,
        device_address: str | None = None,
    ) -> None:
        """Store the code with this digest, of a device with this network address. No redirect URI fits it, so the grant
        ``authorization_code`` refuses it."""
        authorization, granted = summary.authorization, summary.granted
        _, code = new_code(authorization, granted, context, redirect_uri="", code_challenge=None)
        family = new_family(authorization, granted, context)
        context.services.tokens.store_family(
            replace(family, ends_at=family.ends_at + (expires_at - context.now), device_address=device_address),
            replace(code, digest=digest, expires_at=expires_at),
        )

    @staticmethod
    def find_problem(presented: PresentedCode, context: Context) -> str | None:
        """Why the code of the right client is refused; None if it is valid."""
        code = presented.code
        if code.redeemed_at is not None or context.now >= code.expires_at:
            return "the code was used or has expired"
        if presented.family.revoked_at is not None or presented.session_ended or presented.subject is None:
            return "the sign-in that brought the code has ended"
        return None if presented.subject.is_active else "the user is deactivated"

    @staticmethod
    def refuse_code(presented: PresentedCode, client: ApplicationClient, problem: str, context: Context) -> NoReturn:
        """Raise InvalidGrant, and invalidate the code: a client with the right code and credentials that fails
        otherwise gets no second attempt. A replay revokes the family."""
        with SingleUseCredential.translate_errors():
            context.services.tokens.redeem_code(presented.code, client)
        raise InvalidGrant(problem, keep_changes=True)

    @staticmethod
    def build_authorization(presented: PresentedCode, client: ApplicationClient, context: Context) -> Authorization:
        """The authorization of a valid code."""
        code, family = presented.code, presented.family
        refreshing = None
        if Scope.OFFLINE_ACCESS in code.scope and family.impersonator_id is None:
            ends_at = code.issued_at + context.settings.refresh_token_max_age
            refreshing = RefreshTokenTerms(ends_at=ends_at, scope=code.scope)
        return Authorization(
            subject=presented.subject,
            client=client,
            client_id=client.id,
            requested_scopes=code.scope,
            authenticated_at=code.authenticated_at,
            session_id=code.session_id,
            nonce=code.nonce,
            family_id=code.family_id,
            refresh_token_terms=refreshing,
            single_use_credential=CodeCredential(code, client),
            methods=family.methods,
            acr=family.acr,
            userinfo_claims=family.userinfo_claims,
            id_token_claims=family.id_token_claims,
            impersonator_id=family.impersonator_id,
            ends_at=None if family.impersonator_id is None else family.ends_at,
            confirmation=code.confirmation,
            resources=family.resources or (),
        )
