"""Claims of signed assertions (RFC 7523 §3), checked after the signature: the messages say what to fix."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from identity.provider.context import Context
from identity.provider.errors import OAuthError

MAX_JTI_LENGTH = 256


@dataclass(frozen=True, slots=True)
class AssertionClaims:
    """``error`` creates what the checks raise, from a description and the audit trail's reason, which is constant so
    that repetitions can be counted."""

    claims: Mapping[str, Any]
    context: Context
    error: Callable[[str, str], OAuthError]

    def check_audience(self, accepted: Collection[str]) -> None:
        """Require one of the accepted values, alone or as the only member of a list."""
        audience = self.claims.get("aud")
        only = audience[0] if isinstance(audience, list) and len(audience) == 1 else audience
        if not isinstance(only, str) or only not in accepted:
            self.refuse(f"aud must be {self.context.issuer}")

    def check_audience_contains(self, accepted: str) -> None:
        """Require the value, alone or among others: outside issuers name several."""
        audience = self.claims.get("aud")
        if accepted not in (audience if isinstance(audience, list) else [audience]):
            self.refuse(f"aud must contain {accepted}")

    def check_times(self, *, max_lifetime: timedelta, requires_issued_at: bool = False) -> datetime:
        """``exp`` is required, ``nbf`` and ``iat`` are checked if present. Returns when the assertion has surely
        expired, with the clock skew."""
        now, skew = int(self.context.now.timestamp()), int(self.context.settings.clock_skew.total_seconds())
        longest = int(max_lifetime.total_seconds())
        expires_at = self.read_timestamp("exp")
        if expires_at <= now - skew:
            self.refuse(f"assertion expired {now - expires_at} s ago", "assertion expired")
        if expires_at > now + longest + skew:
            self.refuse(f"exp must be at most {longest} s from now")
        for name in ("iat", "nbf"):
            if (name in self.claims or (requires_issued_at and name == "iat")) and self.read_timestamp(
                name
            ) > now + skew:
                self.refuse(f"{name} is {self.read_timestamp(name) - now} s in the future", f"{name} is in the future")
        if "iat" in self.claims and expires_at <= self.read_timestamp("iat"):
            self.refuse("exp must be later than iat")
        return datetime.fromtimestamp(expires_at, UTC) + self.context.settings.clock_skew

    def read_timestamp(self, name: str) -> int:
        """A claim in whole seconds since 1970."""
        value = self.claims.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 253402300800:
            self.refuse(f"{name} must be a whole number of seconds since 1970 (UTC)")
        return value

    def read_jti(self, *, is_required: bool = True) -> str | None:
        jti = self.claims.get("jti")
        if jti is None and not is_required:
            return None
        if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_LENGTH:
            self.refuse(f"jti must be a text of 1 to {MAX_JTI_LENGTH} characters")
        return jti

    def refuse(self, description: str, reason: str = "") -> NoReturn:
        """Raise the error."""
        raise self.error(description, reason or description)
