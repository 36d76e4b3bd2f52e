"""Sign-in preview: what a person would have to do. It runs the real sign-in code and stores nothing."""

from dataclasses import dataclass, replace

from identity.domain.applications import ApplicationClient
from identity.domain.authentication import Proof
from identity.domain.policies import Policy
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.claims_request import ClaimsRequest
from identity.provider.consent import lacks_consent
from identity.provider.context import Context
from identity.provider.errors import OAuthError
from identity.provider.interaction import SignIn, StepUpRequirement
from identity.provider.response_type import Artifact
from identity.provider.scope import Scope
from identity.provider.sign_in_authorization import authorization_from_sign_in
from identity.provider.step_up import allowed_factors, find_step_up_requirement


@dataclass(frozen=True, slots=True)
class SignInPreview:
    """How a sign-in would proceed.

    ``sign_in_methods`` are the names of those with which the person can begin. ``step_up_requirement`` follows the
    password, and with ``is_unsatisfiable`` the person cannot meet it. ``needs_consent`` is None without an
    application; ``error`` is what the application would get instead.
    """

    policy: Policy
    sign_in_methods: tuple[str, ...]
    step_up_requirement: StepUpRequirement | None
    is_unsatisfiable: bool
    requires_new_password: bool
    needs_consent: bool | None = None
    error: OAuthError | None = None


def preview_sign_in(subject: Subject, client: ApplicationClient | None, context: Context) -> SignInPreview:
    """Preview a sign-in of the person to an application, or to the service's own pages."""
    services = context.services
    policy = services.policies.subject_policy(subject)
    proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), context.now)
    by_password = bool(services.policies.filter_valid_proofs(subject, (proof,)))
    enrolled = {enrolment.factor for enrolment in services.factors.list_enrolments(subject.user.id)}
    alone = tuple(
        factor.name for factor in allowed_factors(context, policy) if factor.is_passwordless and factor.name in enrolled
    )
    need = find_step_up_requirement(_after(proof, subject, context), context)
    sign_in_preview = SignInPreview(
        policy,
        (*([Proof.PASSWORD_FACTOR] if by_password else []), *alone),
        need,
        need is not None and not need.factors and not need.enrollable_factors,
        services.passwords.must_change(subject.user.id),
    )
    return sign_in_preview if client is None else _at(client, sign_in_preview, subject, context)


def _at(client: ApplicationClient, sign_in_preview: SignInPreview, subject: Subject, context: Context) -> SignInPreview:
    authorization = authorization_from_sign_in(
        subject,
        client,
        (Scope.OPENID,),
        frozenset({Artifact.CODE}),
        authenticated_at=context.now,
        session_id="",
        nonce=None,
        methods=(),
        claims=ClaimsRequest(),
    )
    try:
        granted = check_and_resolve_scopes(authorization, context)
    except OAuthError as refused:
        return replace(sign_in_preview, error=refused)
    return replace(sign_in_preview, needs_consent=lacks_consent(authorization, granted, context))


def _after(proof: Proof, subject: Subject, context: Context) -> SignIn:
    """A sign-in after the password was accepted."""
    now = context.now
    pending = PendingAuthorization(
        id="",
        digest=b"",
        created_at=now,
        expires_at=now,
        user_id=subject.user.id,
        authenticated_at=now,
        proofs=(proof,),
        done=frozenset({"login"}),
    )
    return SignIn(
        request=None,
        accounts=(),
        now=now,
        is_live_session=context.services.sessions.is_live,
        pending=pending,
        authenticated_subject=subject,
    )
