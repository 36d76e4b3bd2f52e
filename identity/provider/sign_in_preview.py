"""Sign-in preview: what a person would have to do, told by the functions that decide it; nothing is stored."""

from dataclasses import dataclass, replace

from identity.domain.applications import Client
from identity.domain.authentication import BY_PASSWORD, PASSWORD, Proof
from identity.domain.policies import Policy
from identity.domain.sessions import PendingAuthorization
from identity.domain.users import Subject
from identity.provider.admission import admitted
from identity.provider.assurance import missing, offered
from identity.provider.authorizations import by_sign_in
from identity.provider.claims_request import ClaimsRequest
from identity.provider.consent import lacks_consent
from identity.provider.context import Context
from identity.provider.errors import OAuthError
from identity.provider.interaction import Need, SignIn
from identity.provider.response_type import Artifact
from identity.provider.scope import OPENID


@dataclass(frozen=True, slots=True)
class Foreseen:
    """How a sign-in would go.

    ``ways`` are those by which the person can begin, by name. ``need`` is what follows the password, and with ``stuck``
    nothing could prove it. ``agrees`` says whether they are asked to agree; None if no application is in question, and
    ``refusal`` is what that would be told instead.
    """

    policy: Policy
    ways: tuple[str, ...]
    need: Need | None
    stuck: bool
    new_password: bool
    agrees: bool | None = None
    refusal: OAuthError | None = None


def foresee(subject: Subject, client: Client | None, context: Context) -> Foreseen:
    """What the person would have to do who now signs in, at an application or at pages of the service."""
    services = context.services
    policy = services.policies.of_subject(subject)
    proof = Proof(PASSWORD, (BY_PASSWORD,), context.now)
    by_password = bool(services.policies.counting(subject, (proof,)))
    enrolled = {one.factor for one in services.factors.of(subject.user.id)}
    alone = tuple(one.name for one in offered(context, policy) if one.alone and one.name in enrolled)
    need = missing(_after(proof, subject, context), context)
    told = Foreseen(
        policy,
        (*([PASSWORD] if by_password else []), *alone),
        need,
        need is not None and not need.by and not need.to_enrol,
        services.passwords.must_change(subject.user.id),
    )
    return told if client is None else _at(client, told, subject, context)


def _at(client: Client, told: Foreseen, subject: Subject, context: Context) -> Foreseen:
    authorization = by_sign_in(
        subject,
        client,
        (OPENID,),
        frozenset({Artifact.CODE}),
        authenticated_at=context.now,
        session_id="",
        nonce=None,
        methods=(),
        claims=ClaimsRequest(),
    )
    try:
        granted = admitted(authorization, context)
    except OAuthError as refused:
        return replace(told, refusal=refused)
    return replace(told, agrees=lacks_consent(authorization, granted, context))


def _after(proof: Proof, subject: Subject, context: Context) -> SignIn:
    """A sign-in in which the password was given."""
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
        lives=context.services.sessions.live,
        pending=pending,
        proved=subject,
    )
