"""Sign-in preview: the steps of a user's sign-in. It runs the real sign-in code and stores nothing."""

from dataclasses import dataclass

from identity.domain.applications import ApplicationClient
from identity.domain.authentication import Proof
from identity.domain.policies import Policy
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.provider.authorization_checks import check_and_resolve_scopes
from identity.provider.consent import authorization_from_sign_in, lacks_consent
from identity.provider.context import Context
from identity.provider.errors import OAuthError
from identity.provider.interaction import SignIn, StepUpRequirement
from identity.provider.response_type import Artifact
from identity.provider.scope import Scope
from identity.provider.step_up import allowed_factors, find_step_up_requirement


@dataclass(frozen=True, slots=True)
class SignInPreview:
    """How a sign-in would proceed. ``sign_in_methods`` are the names of those with which the person can begin.
    ``step_up_requirement`` follows the password; without any factors the person cannot meet it. ``needs_consent`` is
    None without an application; ``error`` is what the application would get instead."""

    policy: Policy
    sign_in_methods: tuple[str, ...]
    step_up_requirement: StepUpRequirement | None
    requires_new_password: bool
    needs_consent: bool | None = None
    error: OAuthError | None = None


def preview_sign_in(subject: Subject, client: ApplicationClient | None, context: Context) -> SignInPreview:
    """Preview a sign-in of the person to an application, or to the service's own pages."""
    services, now = context.services, context.now
    policy = services.policies.subject_policy(subject)
    proof = Proof(Proof.PASSWORD_FACTOR, (Proof.PASSWORD_METHOD,), now)
    by_password = bool(services.policies.filter_valid_proofs(subject, (proof,)))
    enrolled = {enrolment.factor for enrolment in services.factors.list_enrolments(subject.user.id)}
    usable = allowed_factors(context, policy)
    alone = (name for name, factor in usable.items() if factor.is_passwordless and name in enrolled)
    pending = PendingAuthorization(
        id="", digest=b"", created_at=now, expires_at=now, proofs=(proof,), done=frozenset({"login"})
    )
    after_password = SignIn(
        request=None,
        accounts=(),
        now=now,
        is_live=services.sessions.is_live,
        pending=pending,
        authenticated_subject=subject,
    )
    need = find_step_up_requirement(after_password, context)
    needs_consent, error = None, None
    if client is not None:
        scope, artifacts = (Scope.OPENID,), frozenset({Artifact.CODE})
        authorization = authorization_from_sign_in(subject, client, scope, artifacts, authenticated_at=now)
        try:
            needs_consent = lacks_consent(authorization, check_and_resolve_scopes(authorization, context), context)
        except OAuthError as refused:
            error = refused
    must_change = services.passwords.must_change(subject.user.id)
    return SignInPreview(
        policy, (*([Proof.PASSWORD_FACTOR] if by_password else []), *alone), need, must_change, needs_consent, error
    )
