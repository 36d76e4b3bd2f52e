"""The interaction of the policy rule passkey_upgrade: a browser may save a passkey after a sign-in with a password."""

from identity.api.endpoints import Context
from identity.api.sign_in import Interaction, Proof, SignIn, allowed_factors
from identity.plugins.passkeys.factor import PasskeyFactor


class PasskeyUpgrade(Interaction):
    """Once per sign-in with a password; its page goes on by itself."""

    name = "passkey_upgrade"
    runs_after_authentication = True
    error_description = "The user has to act on a page: the browser may save a passkey."

    def __init__(self, *, requires_attestation: bool) -> None:
        self._requires_attestation = requires_attestation

    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True if the policy says so, and the password was entered here with all that the account has besides it."""
        subject, pending = sign_in.authenticated_subject, sign_in.pending
        if self._requires_attestation or subject is None or pending is None or sign_in.has_completed(self.name):
            return False
        if sign_in.impersonated_account is not None:
            return False
        factors = {proof.factor for proof in pending.proofs}
        if Proof.PASSWORD_FACTOR not in factors or PasskeyFactor.name in factors:
            return False
        if SignIn.ENROL_PARAMETER in sign_in.own_page_requirements:
            return False
        services = context.services
        policy = services.policies.subject_policy(subject)
        if not policy.passkey_upgrade or PasskeyFactor.name not in allowed_factors(context, policy):
            return False
        # Users who must first change a password that a manager set come back here.
        return sign_in.is_fully_authenticated and not services.passwords.must_change(subject.user.id)

    def path(self, sign_in: SignIn) -> str:
        return f"{PasskeyFactor.name}/upgrade"
