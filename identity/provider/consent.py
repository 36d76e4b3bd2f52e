"""Consent: what a user must agree to before an application gets it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from identity.crypto.secrets import new_id
from identity.domain.applications import ApplicationClient, ConsentRule
from identity.domain.audiences import AudienceScope
from identity.domain.authentication import acr_claim, proof_methods
from identity.domain.policies import ConsentDefault
from identity.domain.sessions import Session, SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.claims_request import ClaimsRequest
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant, OAuthError
from identity.provider.grant_type import Authorization
from identity.provider.interaction import ConsentSummary, Interaction, SignIn
from identity.provider.response_type import Artifact
from identity.provider.scope import GrantedScopes, Scope
from identity.provider.step_up import list_proofs, requested_acr

_NO_CLAIMS = ClaimsRequest()


def lacks_consent(authorization: Authorization, granted: GrantedScopes, context: Context) -> bool:
    """True if the tokens are about a user who must consent and has not, or has withdrawn it."""
    subject, client = authorization.subject, authorization.client
    if subject is None or client is None or not isinstance(subject.user, HumanUser):
        return False
    return _has_to_agree(subject, client, granted, context) and not context.services.consents.covers_scopes(
        subject, client, _find_consent_scopes(authorization, granted, context)
    )


def summarize_consent(authorization: Authorization, granted: GrantedScopes, context: Context) -> ConsentSummary:
    """What the application of the authorization would get, and what its user has to agree to for that."""
    consent = GrantedScopes(_find_consent_scopes(authorization, granted, context), granted.audience)
    return ConsentSummary(authorization, granted, consent, lacks_consent(authorization, granted, context))


def refuse_without_consent(authorization: Authorization, granted: GrantedScopes, context: Context) -> None:
    """Raise InvalidGrant without the user's consent: it may have been withdrawn since the code was issued."""
    if lacks_consent(authorization, granted, context):
        raise InvalidGrant("the user has not agreed to this, or does no longer")


def find_missing_consent(sign_in: SignIn, context: Context) -> GrantedScopes | None:
    """The scopes that the user of this sign-in must still consent to, including those that open single claims or stand
    for named resources; None if there are none, or no user yet. An authorization that is refused for another reason
    needs no consent: the response says why."""
    authorization, subject = sign_in.request, sign_in.subject
    if authorization is None or subject is None or sign_in.has_completed(Interaction.CONSENT):
        return None
    try:
        offer = sign_in.consent_summary
    except OAuthError:
        return None
    if not requires_consent_page(sign_in) and not offer.needs_consent:
        return None
    return offer.consent


def requires_consent_page(sign_in: SignIn) -> bool:
    """True if the page has to be displayed whatever the user consented to before: the application requests it, or it
    is dynamic, and anyone may pretend to be it. False once it was displayed."""
    is_dynamic = sign_in.client is not None and sign_in.client.application.is_dynamic
    return (is_dynamic or Interaction.CONSENT in sign_in.prompts) and not sign_in.has_completed(Interaction.CONSENT)


def build_consent_summary(sign_in: SignIn, account: SignedInAccount | None, context: Context) -> ConsentSummary:
    """What the application would receive from this session, or from the user who is about to sign in. Raises
    OAuthError if the authorization would be refused."""
    authorization_request, subject = sign_in.request, sign_in.subject if account is None else account.subject
    if authorization_request is None or subject is None:
        raise ValueError("nobody is there, or nothing was asked for")
    methods = proof_methods(list_proofs(sign_in)) if account is None else account.session.amr_methods
    impersonated = None if account is None or not account.session.is_impersonated else account.session
    authorization = authorization_from_sign_in(
        subject,
        authorization_request.client,
        authorization_request.scope,
        authorization_request.response_type.artifacts,
        authenticated_at=context.now if account is None else account.session.authenticated_at,
        session_id="" if account is None else account.session.id,
        nonce=authorization_request.nonce,
        methods=methods,
        acr=acr_claim(methods, requested_acr(sign_in)[0]) if impersonated is None else "",
        claims=_limit_claims(authorization_request.claims, authorization_request.client, context),
        impersonated=impersonated,
        confirmation=authorization_request.confirmation,
        resources=authorization_request.resources,
    )
    granted = check_and_resolve_scopes(authorization, context, organization=sign_in.required_organization)
    return summarize_consent(authorization, granted, context)


def authorization_from_sign_in(
    subject: Subject,
    client: ApplicationClient,
    requested_scopes: Iterable[str],
    artifacts: frozenset[Artifact],
    *,
    authenticated_at: datetime,
    session_id: str = "",
    nonce: str | None = None,
    methods: tuple[str, ...] = (),
    acr: str = "",
    claims: ClaimsRequest = _NO_CLAIMS,
    impersonated: Session | None = None,
    confirmation: str | None = None,
    resources: tuple[str, ...] = (),
) -> Authorization:
    """The authorization of a signed-in person for these artifacts, in a new family. ``impersonated`` is the session in
    which a manager is signed in as the person: no token outlives it, and none can be renewed."""
    # Without a code there is no refresh token (OpenID Connect Core §11).
    is_renewable = Artifact.CODE in artifacts and impersonated is None
    return Authorization(
        subject=subject,
        client=client,
        client_id=client.id,
        requested_scopes=tuple(scope for scope in requested_scopes if scope != Scope.OFFLINE_ACCESS or is_renewable),
        authenticated_at=authenticated_at,
        session_id=session_id,
        family_id=new_id(),
        nonce=nonce,
        includes_id_token=Artifact.ID_TOKEN in artifacts,
        methods=methods,
        acr=acr,
        userinfo_claims=claims.userinfo,
        id_token_claims=claims.id_token,
        impersonator_id=None if impersonated is None else impersonated.impersonator_id,
        ends_at=None if impersonated is None else impersonated.ends_at,
        confirmation=confirmation,
        resources=resources,
    )


def _limit_claims(claims: ClaimsRequest, client: ApplicationClient, context: Context) -> ClaimsRequest:
    """The requested claims that the client may get: a dynamic one those of scopes that are open to it."""
    if not client.application.is_dynamic:
        return claims
    known = context.protocol.scopes.dynamic_client_claims
    return replace(
        claims,
        userinfo=tuple(name for name in claims.userinfo if name in known),
        id_token=tuple(name for name in claims.id_token if name in known),
    )


def _find_consent_scopes(authorization: Authorization, granted: GrantedScopes, context: Context) -> tuple[str, ...]:
    """The granted scopes, those that open the requested single claims, and the audience scopes of the projects that
    the named resources add: a resource must not open what its scope would have to be agreed to for."""
    claims = (*authorization.userinfo_claims, *authorization.id_token_claims)
    added = [AudienceScope.build(item) for item in _find_added_projects(authorization, granted, context)]
    return tuple(dict.fromkeys((*granted.values, *context.protocol.scopes.scopes_for_claims(claims), *added)))


def _find_added_projects(authorization: Authorization, granted: GrantedScopes, context: Context) -> Iterable[str]:
    if not authorization.resources or authorization.client is None:
        return ()
    # Ids have no colon, unlike the URIs of the resources.
    usual = {authorization.client.id, authorization.client.project.id}
    is_own_project = context.services.projects.is_own_project
    return (item for item in granted.audience if ":" not in item and (item not in usual or is_own_project(item)))


def _has_to_agree(subject: Subject, client: ApplicationClient, granted: GrantedScopes, context: Context) -> bool:
    """True unless the application belongs to the user's organization or one that has accepted its project, or its
    settings or the policy say otherwise. Managing on a user's behalf and dynamic clients always need consent."""
    if client.application.is_dynamic:
        return True
    projects, rule = context.services.projects, client.application.consent
    if any(projects.is_own_project(item) for item in granted.audience):
        return True
    if rule is ConsentRule.WHEN_FOREIGN:
        if context.services.policies.subject_policy(subject).consent is ConsentDefault.ALWAYS:
            return True
        at_home = subject.organization.id == client.organization.id
        return not at_home and not projects.is_granted_to(client.project.id, subject.organization.id)
    return rule is ConsentRule.ALWAYS
