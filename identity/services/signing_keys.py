"""The service's signing keys: current, published, rotated, resealed."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from identity.crypto.jwt import InvalidTokenSignature, MalformedToken, UnverifiedToken
from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import new_id
from identity.crypto.signature_keys import InvalidKey, PrivateKey, PublicKey
from identity.domain.errors import NotFound
from identity.domain.signing_keys import KeySchedule, KeyState, SigningKey
from identity.log_formatters import RepeatedMessageFilter
from identity.services.base import ReadSessionFactory, Service
from identity.storage.backend import Storage
from identity.storage.errors import DuplicateValue, RowNotFound, StorageUnavailable

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

ALGORITHM = "RS256"
_ID_TOKEN_TYPES = frozenset({None, "JWT", "jwt"})

#: How long a process trusts its copy of the key list: a withdrawn key disappears everywhere within this time. Well
#: below EMERGENCY_DELAY, so that every node publishes an emergency key before it signs.
CACHE_AGE = timedelta(seconds=5)
EMERGENCY_DELAY = timedelta(seconds=30)
#: Maximum age of the copy that is served while the storage is unavailable.
LAST_KNOWN_AGE = timedelta(minutes=5)


Published = tuple[tuple[SigningKey, PublicKey], ...]


class NoSigningKey(StorageUnavailable):
    """There is no signing key: the instance was not bootstrapped."""


class IdTokenHint(NamedTuple):
    """What an ID token says that a client sends back (OpenID Connect Core §3.1.2.1)."""

    subject: str
    client_id: str
    session_id: str | None
    expires_at: datetime


class SigningKeyState(NamedTuple):
    """A signing key and its state; ``retires_at`` and ``published_until`` are None until it has a successor."""

    key: SigningKey
    state: KeyState
    retires_at: datetime | None
    published_until: datetime | None


@dataclass(frozen=True, slots=True)
class _Copy:
    schedule: KeySchedule
    at: datetime


class KeyRing:
    """Per process: a fresh copy of the key list, and each key parsed once."""

    def __init__(self, sealer: Sealer, *, published_age: timedelta) -> None:
        self.sealer = sealer
        self.published_age = published_age
        self._copy: _Copy | None = None
        self._private: dict[str, PrivateKey] = {}
        self._public: dict[str, PublicKey] = {}
        #: The last published key list, with its source copy and time.
        self._published: tuple[KeySchedule, datetime, Published] | None = None

    def cached_schedule(self, look: ReadSessionFactory, now: datetime) -> KeySchedule:
        """The key list, at most CACHE_AGE old; an older copy while the storage is unavailable. Raises
        StorageUnavailable."""
        fresh = self.fresh(now)
        if fresh is not None:
            return fresh
        copy = self._copy
        try:
            with look() as storage:
                return self.load_schedule(storage, now)
        except StorageUnavailable:
            if copy is not None and abs(now - copy.at) < LAST_KNOWN_AGE:
                return copy.schedule
            raise

    def fresh(self, now: datetime) -> KeySchedule | None:
        """The copy of the key list, unless it has expired."""
        copy = self._copy
        return copy.schedule if copy is not None and abs(now - copy.at) < CACHE_AGE else None

    def load_schedule(self, storage: Storage, now: datetime) -> KeySchedule:
        """Read the key list and cache it."""
        schedule = KeySchedule.from_keys(storage.signing_keys.list_all(), self.published_age)
        if schedule.keys:
            self._copy = _Copy(schedule, now)
            stored = {key.id for key in schedule.keys}
            self._private = {key_id: parsed for key_id, parsed in self._private.items() if key_id in stored}
            self._public = {key_id: parsed for key_id, parsed in self._public.items() if key_id in stored}
            if schedule.has_no_started_key(now):
                oldest = schedule.keys[0].active_at
                log.warning("set the clock: it says %s, before the first signing key (%s), which signs", now, oldest)
        return schedule

    def invalidate(self) -> None:
        """Drop the copy; the next access reads the storage."""
        self._copy = None

    def stands_behind(self, key_id: str | None, look: ReadSessionFactory, now: datetime) -> bool:
        """True if tokens with this key id are valid: the key was not withdrawn. A key missing from the copy is looked
        up. Raises StorageUnavailable."""
        if self.cached_schedule(look, now).find(key_id) is not None:
            return True
        self.invalidate()
        return self.cached_schedule(look, now).find(key_id) is not None

    def private_key(self, key: SigningKey) -> PrivateKey:
        """Unsealed and parsed once per process."""
        parsed = self._private.get(key.id)
        if parsed is None:
            parsed = PrivateKey.from_der(self.sealer.open(key.sealed_private_key, associated_data=key.id))
            self._private[key.id] = parsed
        return parsed

    def public_key(self, key: SigningKey) -> PublicKey | None:
        """Parsed once per process; None if it is damaged, which is logged."""
        parsed = self._public.get(key.id)
        if parsed is None:
            try:
                parsed = self._public[key.id] = PublicKey.from_der(key.public_key)
            except InvalidKey as problem:
                log.error("the signing key %s is not published: %s", key.id, problem)
        return parsed

    def published(self, schedule: KeySchedule, now: datetime) -> Published:
        """The keys in the JWKS, newest first; the same tuple as long as schedule and moment are the same."""
        last = self._published
        if last is not None and last[0] is schedule and last[1] == now:
            return last[2]
        halves = ((key, self.public_key(key)) for key in schedule.published_keys(now))
        keys = tuple((key, public) for key, public in halves if public is not None)
        self._published = schedule, now, keys
        return keys

    def select_signing_key(self, keys: Iterable[SigningKey]) -> tuple[str, PrivateKey]:
        """The first key that can be unsealed, and its private half; damaged ones are logged. Raises NoSigningKey."""
        problem: Exception | None = None
        for key in keys:
            try:
                return key.id, self.private_key(key)
            except (UnsealingError, InvalidKey) as damage:
                log.error("the signing key %s cannot sign: %s", key.id, damage)
                problem = problem or damage
        raise NoSigningKey(str(problem or "There is no signing key. Run `identity bootstrap`."))

    def can_open(self, key: SigningKey | None) -> bool:
        """True if there is a key and its private half can be unsealed."""
        try:
            return key is not None and self.private_key(key) is not None
        except (UnsealingError, InvalidKey):
            return False


@dataclass(eq=False, repr=False)
class SigningKeyService(Service):
    """Signing keys within one request or job."""

    _ring: KeyRing

    def schedule(self) -> KeySchedule:
        """All keys and the schedule derived from them, at most CACHE_AGE old. Raises StorageUnavailable."""
        return self._ring.cached_schedule(self._look, self._now)

    def current_signing_key(self) -> tuple[str, PrivateKey]:
        """Key id and private key to sign with: the active key, or another published one if that is damaged. Raises
        NoSigningKey, StorageUnavailable."""
        return self._ring.select_signing_key(self.schedule().signing_candidates(self._now))

    def published_keys(self) -> Published:
        """The keys in the JWKS, newest first. Raises NoSigningKey instead of returning none; StorageUnavailable."""
        keys = self._ring.published(self.schedule(), self._now)
        if not keys:
            raise NoSigningKey("There is no signing key. Run `identity bootstrap`.")
        return keys

    def verify_id_token_hint(self, text: str) -> IdTokenHint | None:
        """The user, client and session of one of our ID tokens, which may be expired; None unless a published key has
        signed it, also for access tokens (their ``typ`` is at+jwt)."""
        try:
            token = UnverifiedToken.parse(text)
            key_id, keys = token.header.get("kid"), self.published_keys()
            key = next((public for key, public in keys if key.id == key_id), None)
            if key is None or token.header.get("typ") not in _ID_TOKEN_TYPES:
                return None
            claims = token.verify(key)
        except (MalformedToken, InvalidTokenSignature):
            return None
        subject, client_id, session_id = claims.get("sub"), claims.get("azp"), claims.get("sid")
        expires_at = claims.get("exp")
        if (
            claims.get("iss") != self._settings.issuer_url
            or not isinstance(subject, str)
            or not isinstance(client_id, str)
            or not isinstance(expires_at, int)
        ):
            return None
        return IdTokenHint(
            subject,
            client_id,
            session_id if isinstance(session_id, str) else None,
            datetime.fromtimestamp(expires_at, UTC),
        )

    def is_valid_key_id(self, key_id: str | None) -> bool:
        """True if tokens with this key id are valid. Raises StorageUnavailable."""
        return self._ring.stands_behind(key_id, self._look, self._now)

    def list_key_states(self, now: datetime | None = None) -> tuple[SigningKeyState, ...]:
        """State of every stored key, newest first; bypasses the copy."""
        schedule, at = self._ring.load_schedule(self._storage, self._now), now or self._now
        return tuple(
            SigningKeyState(key, schedule.key_state(key, at), schedule.retires_at(key), schedule.published_until(key))
            for key in reversed(schedule.keys)
        )

    def add_first(self) -> SigningKey:
        """Create the first key, active at once: no client can have cached a list without it. An existing one is
        returned."""
        keys = self._ring.load_schedule(self._storage, self._now).keys
        return keys[0] if keys else self._add(1, self._now)

    def rotate(self, *, emergency: bool = False) -> SigningKey:
        """Create the next key, which signs after the announcement period; a key already announced is returned instead.
        ``emergency`` skips the announcement: the new key signs after EMERGENCY_DELAY, when every node publishes it.
        Raises NoSigningKey before the first key."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        if not schedule.keys:
            raise NoSigningKey("There is no signing key. Run `identity bootstrap`.")
        waiting = schedule.next_key(self._now)
        if not self._ring.can_open(waiting):
            waiting = None
        delay = EMERGENCY_DELAY if emergency else self._settings.key_announcement_period
        if waiting is not None and (not emergency or waiting.active_at <= self._now + EMERGENCY_DELAY):
            return waiting
        return self._add(schedule.keys[-1].generation + 1, self._now + delay)

    def withdraw(self, key_ids: Collection[str]) -> SigningKey | None:
        """Withdraw compromised keys permanently; returns the key that signs from now on if it had to be created. The
        JWKS no longer contains them, and the service rejects what they signed: other processes follow within
        CACHE_AGE. Clients that cache the JWKS follow when they fetch it again. Raises NotFound."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        signing, withdrawn = (
            schedule.active_key(self._now),
            [self._delete_unpublished(schedule, key_id) for key_id in key_ids],
        )
        self._ring.invalidate()
        signing_key = None
        if signing is None or signing in withdrawn or not self._ring.can_open(signing):
            # The next generation may belong to a key that another node has just announced and that signs later.
            signing_key = self._add(schedule.keys[-1].generation + 1, self._now)
            while signing_key.active_at > self._now:
                signing_key = self._add(signing_key.generation + 1, self._now)
        for key in withdrawn:
            self._record("signing_key.withdrawn", key)
        return signing_key

    def _delete_unpublished(self, schedule: KeySchedule, key_id: str) -> SigningKey:
        key = self._require_found(schedule.find(key_id), "signing key", key_id)
        try:
            self._storage.signing_keys.delete(key_id)
        except RowNotFound:
            raise NotFound("signing key", key_id) from None
        return key

    def rotation_due(self) -> bool:
        """True if the active key is old enough to announce the next one, or damaged."""
        due_at = self.rotation_due_at()
        return due_at is not None and (
            self._now >= due_at or not self._ring.can_open(self.schedule().active_key(self._now))
        )

    def rotation_due_at(self) -> datetime | None:
        """When the active key is old enough to announce the next one; None if that is announced, or without keys."""
        schedule = self.schedule()
        active = schedule.active_key(self._now)
        if active is None or self._ring.can_open(schedule.next_key(self._now)):
            return None
        return active.active_at + self._settings.signing_key_active_age - self._settings.key_announcement_period

    def remove_unpublished(self) -> int:
        """Delete the keys whose tokens have all expired; returns the number deleted."""
        storage = self._storage
        schedule = self._ring.load_schedule(storage, self._now)
        signing_keys = [key for key in schedule.keys if schedule.key_state(key, self._now) is KeyState.REMOVED]
        for key in signing_keys:
            storage.signing_keys.delete(key.id)
            self._record("signing_key.removed", key)
        self._ring.invalidate()
        return len(signing_keys)

    def rekey(self) -> tuple[int, list[SigningKey]]:
        """Reseal every private key under the active master key; returns the number resealed, and the keys that cannot
        be unsealed and stay as they are."""
        storage, sealer = self._storage, self._ring.sealer
        count, lost = 0, []
        for key in storage.signing_keys.list_all():
            try:
                if sealer.is_current(key.sealed_private_key):
                    continue
                plain = sealer.open(key.sealed_private_key, associated_data=key.id)
            except UnsealingError:
                lost.append(key)
                continue
            storage.signing_keys.update_sealed_private_key(key.id, sealer.seal(plain, associated_data=key.id))
            self._record("signing_key.rewrapped", key)
            count += 1
        self._ring.invalidate()
        return count, lost

    def _add(self, generation: int, active_at: datetime) -> SigningKey:
        private_key = PrivateKey.generate(self._settings.signing_key_bits)
        key_id = new_id()
        key = SigningKey(
            id=key_id,
            generation=generation,
            algorithm=ALGORITHM,
            public_key=private_key.public_key().to_der(),
            sealed_private_key=self._ring.sealer.seal(private_key.to_der(), associated_data=key_id),
            created_at=self._now,
            active_at=active_at,
        )
        storage = self._storage
        try:
            storage.signing_keys.add(key)
        except DuplicateValue:
            # Another node was faster and its key, missing from the copy, serves as well; or it is an unreadable key.
            self._ring.invalidate()
            signing_key = next(
                (item for item in storage.signing_keys.list_all() if item.generation == generation), None
            )
            return self._add(generation + 1, active_at) if signing_key is None else signing_key
        self._record("signing_key.added", key)
        self._ring.invalidate()
        return key

    def _record(self, event: str, key: SigningKey) -> None:
        self._audit.record(
            event,
            kind="signing_key",
            id=key.id,
            organization_id=None,
            detail={"generation": key.generation, "active_at": key.active_at.isoformat()},
        )
