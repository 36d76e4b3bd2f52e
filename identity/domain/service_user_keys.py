"""Service user keys: the stored public key, and the key file that is downloaded once."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from identity.domain.entity import entity, internal, read_only, versioned
from identity.domain.errors import Invalid
from identity.domain.expirations import Expiring
from identity.domain.signature_algorithms import SignatureAlgorithm


@entity
class ServiceUserKey(Expiring):
    """The public key of a service user; ``public_key`` is DER (SubjectPublicKeyInfo). Assertions must name exactly its
    ``algorithm``."""

    id: str = read_only()
    user_id: str = read_only()
    public_key: bytes = internal()
    created_at: datetime = versioned()
    expires_at: datetime = read_only()
    last_used_at: datetime | None = read_only(default=None)
    algorithm: SignatureAlgorithm = read_only(default=SignatureAlgorithm.RS256)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySummary:
    """Summary of a service user's keys. ``next_expires_at`` is the earliest expiration of a live key or, without live
    keys, the latest past one."""

    live_count: int
    next_expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """The downloadable key file (service description §2.2); the only copy of the private key."""

    TYPE: ClassVar[str] = "serviceaccount"

    key_id: str
    key: str
    user_id: str

    def __repr__(self) -> str:
        return f"KeyFile(key_id={self.key_id!r}, user_id={self.user_id!r})"

    def to_json(self) -> str:
        """Exactly the members type, keyId, key, userId."""
        members = {"type": self.TYPE, "keyId": self.key_id, "key": self.key, "userId": self.user_id}
        return json.dumps(members)

    @classmethod
    def from_json(cls, text: str) -> "KeyFile":
        """Raises Invalid if the text is not a key file."""
        try:
            members = json.loads(text)
        except ValueError:
            raise Invalid({"key_file": "This is not a JSON file."}) from None
        if not isinstance(members, dict) or members.get("type") != cls.TYPE:
            raise Invalid({"key_file": f'This is not a key file: "type" must be "{cls.TYPE}".'})
        for name in ("keyId", "key", "userId"):
            if not isinstance(members.get(name), str) or not members[name]:
                raise Invalid({"key_file": f'This key file lacks "{name}".'})
        return cls(key_id=members["keyId"], key=members["key"], user_id=members["userId"])
