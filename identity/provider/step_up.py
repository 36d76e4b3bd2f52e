"""Step-up authentication: whether a person proved enough, and by which factors they could prove more.

Requirements come from the policy of the person's organization, from the factors they have set up, and from the
client: ``acr_values`` and an essential ``acr`` claim (OpenID Connect Core §3.1.2.1, §5.5.1.1; RFC 9470).
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from identity.domain.authentication import ACR_VALUES, Acr, Proof, proof_methods, satisfies_acr
from identity.domain.policies import SIGN_IN_ONLY_RULES, Policy, SecondFactorRule
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import HumanUser, Subject
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant, LoginRequired, UnmetAuthenticationRequirements
from identity.provider.factor import Factor
from identity.provider.grant_type import Authorization
from identity.provider.interaction import SignIn, StepUpRequirement


def list_proofs(sign_in: SignIn) -> tuple[Proof, ...]:
    """Proofs of the answering account: those of its session, and those of this sign-in."""
    proofs = () if sign_in.pending is None else sign_in.pending.proofs
    account = sign_in.selected_account
    return proofs if account is None else (*account.session.proofs, *proofs)


def requested_acr(sign_in: SignIn) -> tuple[tuple[str, ...], bool]:
    """The classes of ACR_VALUES that the client requests, in its order, and whether it requires them. An essential
    claim takes precedence over ``acr_values``, in which unknown values are ignored."""
    authorization = sign_in.request
    if authorization is None or not (authorization.acr_values or authorization.claims.acr_values):
        return (), authorization is not None and authorization.claims.acr_values is not None
    values = authorization.acr_values if authorization.claims.acr_values is None else authorization.claims.acr_values
    known = tuple(value for value in values if value in ACR_VALUES)
    return known, bool(known) or authorization.claims.acr_values is not None


def find_step_up_requirement(sign_in: SignIn, context: Context) -> StepUpRequirement | None:
    """What the user must still prove; None if nothing, or no account is selected. Raises
    UnmetAuthenticationRequirements if a client requires what cannot be proved; LoginRequired if the time of
    authentication at an upstream provider is unknown and the user has no local factor."""
    subject = sign_in.subject
    if subject is None or not isinstance(subject.user, HumanUser):
        return None
    if (
        sign_in.requires_dated_proof
        and sign_in.authenticated_subject is not None
        and not any(proof.is_dated for proof in list_proofs(sign_in))
    ):
        return _proof_here(sign_in, context)
    policies = context.services.policies
    policy = policies.subject_policy(subject)
    acr_values, is_requested = requested_acr(sign_in)
    if (
        not is_requested
        and policy.second_factor in SIGN_IN_ONLY_RULES
        and sign_in.authenticated_subject is None
        and not sign_in.own_page_requirements
    ):
        # An existing session is not asked for a factor that was set up later, until the next sign-in.
        return None
    proved = proof_methods(list_proofs(sign_in))
    if is_requested and not any(satisfies_acr(proved, item) for item in acr_values):
        return _find_missing_factors(sign_in, context, proved, acr_values, by_client=True)
    if sign_in.impersonated_account is not None:
        # The manager's own session satisfies the person's policy (services/impersonation_rules.py).
        return None
    if satisfies_acr(proved, Acr.TWO_FACTORS):
        return None
    if sign_in.own_page_requirements.get("acr") == PendingAuthorization.STRONGEST_PROOF_STEP or sign_in.has_completed(
        PendingAuthorization.STRONGEST_PROOF_STEP
    ):
        need = _find_missing_factors(sign_in, context, proved, (Acr.TWO_FACTORS,), by_client=False)
        if need.factors:
            return need
    if policy.second_factor is SecondFactorRule.OFF or remembered_proof(sign_in, policy, context):
        return None
    if sign_in.authenticated_subject is None and not policies.lacks_factor(subject, proved):
        return None
    need = _find_missing_factors(sign_in, context, proved, (Acr.TWO_FACTORS,), by_client=False)
    if policies.requires_second_factor(subject):
        return need
    return need if need.factors and not _has_optional_factors_only(subject, context) else None


def _proof_here(sign_in: SignIn, context: Context) -> StepUpRequirement:
    """Require a local factor, since the time of the upstream authentication is unknown (OpenID Connect Core
    §3.1.2.1)."""
    need = _find_missing_factors(
        sign_in, context, proof_methods(list_proofs(sign_in)), (Acr.TWO_FACTORS,), by_client=False
    )
    if not need.factors:
        raise LoginRequired("It is not known when the user was authenticated.")
    return replace(need, enrollable_factors=())


def remembered_proof(sign_in: SignIn, policy: Policy, context: Context) -> Proof | None:
    """The proof of a remembered browser, which counts as a second factor if the policy allows it; not if the client
    requires two factors."""
    subject = sign_in.subject
    if subject is None or not policy.remember_browser:
        return None
    proof = next((item for item in list_proofs(sign_in) if item.factor == Proof.REMEMBERED_FACTOR), None)
    if proof is not None or sign_in.authenticated_subject is None or not sign_in.browser_state.remembered_browsers:
        return proof
    known = context.services.remembered_browsers
    since = known.remembered_since(
        subject.user.id, sign_in.browser_state.remembered_browsers, policy.remember_browser_lifetime
    )
    return None if since is None else Proof(Proof.REMEMBERED_FACTOR, (Proof.REMEMBERED_FACTOR,), since)


def can_step_up(subject: Subject, proved: Collection[str], context: Context) -> bool:
    """True if a person authenticated by these methods has set up a factor that would prove more."""
    if satisfies_acr(proved, Acr.TWO_FACTORS):
        return False
    policy = context.services.policies.subject_policy(subject)
    had = _sort_enrolled_factors(subject, allowed_factors(context, policy), context)
    return any(satisfies_acr((*proved, *factor.methods), Acr.TWO_FACTORS) for factor in had)


def is_fully_authenticated(sign_in: SignIn, context: Context) -> bool:
    """``SignIn.is_fully_authenticated``."""
    subject = sign_in.authenticated_subject
    if subject is None or sign_in.step_up_requirement is not None:
        return False
    return not can_step_up(subject, proof_methods(list_proofs(sign_in)), context)


def initial_session_proofs(sign_in: SignIn, context: Context) -> tuple[Proof, ...]:
    """Proofs of a session that starts with this sign-in."""
    proofs, subject = list_proofs(sign_in), sign_in.subject
    if subject is None or satisfies_acr(proof_methods(proofs), Acr.TWO_FACTORS):
        return proofs
    proof = remembered_proof(sign_in, context.services.policies.subject_policy(subject), context)
    return proofs if proof is None else (*proofs, proof)


def allowed_factors(context: Context, policy: Policy) -> dict[str, Factor]:
    """The factors besides the password that the policy allows, by name."""
    if policy.second_factor is SecondFactorRule.OFF:
        return {}
    offered, allowed = context.protocol.factors, policy.factors
    return {name: factor for name, factor in offered.items() if allowed is None or name in allowed}


def refuse_without_factor(authorization: Authorization, context: Context) -> None:
    """Raise InvalidGrant if the policy requires more than the person proved when the grant began."""
    subject = authorization.subject
    if authorization.impersonator_id is not None:
        # Judged at the authorization endpoint, by the manager's own session.
        return
    if subject is not None and context.services.policies.lacks_factor(subject, authorization.methods):
        raise InvalidGrant("the user has to sign in again, with a second factor")


def _find_missing_factors(
    sign_in: SignIn, context: Context, proved: Collection[str], acr_values: tuple[str, ...], *, by_client: bool
) -> StepUpRequirement:
    subject = sign_in.subject
    if subject is None:
        raise ValueError("somebody is there")
    services = context.services
    usable = allowed_factors(context, services.policies.subject_policy(subject))
    enrolled = _sort_enrolled_factors(subject, usable, context)
    for acr in acr_values:
        usable_names = tuple(factor.name for factor in enrolled if satisfies_acr((*proved, *factor.methods), acr))
        if usable_names:
            return StepUpRequirement(acr, by_client, usable_names)
    possible = [factor for factor in usable.values() if not factor.is_backup and factor.can_enrol(subject, services)]
    for acr in acr_values:
        to_enrol = tuple(factor.name for factor in possible if satisfies_acr((*proved, *factor.methods), acr))
        if to_enrol and enrolled and not satisfies_acr(proved, Acr.TWO_FACTORS):
            # Who has a factor must use it before setting up another.
            return StepUpRequirement(acr, by_client, tuple(factor.name for factor in enrolled), to_enrol)
        if to_enrol:
            return StepUpRequirement(acr, by_client, (), to_enrol)
    if by_client:
        raise UnmetAuthenticationRequirements("The user cannot be authenticated in the way that acr asks for.")
    return StepUpRequirement(Acr.TWO_FACTORS, by_client)


def _has_optional_factors_only(subject: Subject, context: Context) -> bool:
    """True if the person has asked for none of their factors: they may not have it at hand."""
    factors = context.protocol.factors
    return all(
        factor is None or factor.is_backup or factor.is_optional(enrolment)
        for enrolment in context.services.factors.list_enrolments(subject.user.id)
        for factor in (factors.get(enrolment.factor),)
    )


def _sort_enrolled_factors(subject: Subject, usable: Mapping[str, Factor], context: Context) -> tuple[Factor, ...]:
    """The factors that the person has set up, last used first and spare ones last; empty if there are only spare
    ones."""
    used: dict[str, datetime] = {}
    for enrolment in context.services.factors.list_enrolments(subject.user.id) if usable else ():
        used[enrolment.factor] = max(
            used.get(enrolment.factor, enrolment.added_at), enrolment.last_used_at or enrolment.added_at
        )
    enrolled = tuple(
        sorted(
            (factor for name, factor in usable.items() if name in used),
            key=lambda factor: (not factor.is_backup, used[factor.name]),
            reverse=True,
        )
    )
    return enrolled if any(not factor.is_backup for factor in enrolled) else ()
