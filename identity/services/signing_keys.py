"""The service's signing keys: current, published, rotated, resealed."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from identity.crypto.jwt import InvalidTokenSignature, MalformedToken, UnverifiedToken, sign
from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import new_id
from identity.crypto.signature_keys import ExternalKey, InvalidKey, PrivateKey, PublicKey
from identity.domain.deletion_impact import MAX_COUNTED_OBJECTS
from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.signing_keys import KeySchedules, KeyState, SigningKey, WithdrawalImpact
from identity.log_formatters import RepeatedMessageFilter
from identity.services.base import ReadSessionFactory, Service
from identity.signers import SOFTWARE, Signer, SignerUnavailable, SoftwareSigner
from identity.storage.backend import Storage
from identity.storage.errors import DuplicateValue, RowNotFound, StorageUnavailable

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

_ID_TOKEN_TYPES = frozenset({None, "JWT", "jwt"})

#: How long a process trusts its copy of the key list: a withdrawn key disappears everywhere within this time. Well
#: below EMERGENCY_DELAY, so that every node publishes an emergency key before it signs.
CACHE_AGE = timedelta(seconds=5)
EMERGENCY_DELAY = timedelta(seconds=30)
#: While a changed setting reaches all nodes, those with the old list leave the first key of a new algorithm alone.
ROLLOUT_PERIOD = timedelta(hours=1)
#: Maximum age of the copy that is served while the storage is unavailable.
LAST_KNOWN_AGE = timedelta(minutes=5)


#: What is sealed begins with it, the signer's name and a colon, unless it is the private key itself, in DER.
_EXTERNAL = b"signer:"

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
    """A signing key and its state; ``retires_at`` and ``published_until`` are None until it has a successor. ``signer``
    is the name of the signer that has it, None if it cannot be opened."""

    key: SigningKey
    state: KeyState
    retires_at: datetime | None
    published_until: datetime | None
    signer: str | None

    @property
    def external_signer(self) -> str:
        """The name of a signer outside the process; empty for others."""
        return "" if self.signer in (None, SOFTWARE) else str(self.signer)


@dataclass(frozen=True, slots=True)
class _Copy:
    schedule: KeySchedules
    at: datetime


class KeyRing:
    """Per process: a fresh copy of the key list, and each key parsed once. ``signers`` are those of plugins by name;
    ``signer`` creates new keys."""

    def __init__(
        self,
        sealer: Sealer,
        *,
        published_age: timedelta,
        signers: Mapping[str, Signer] = MappingProxyType({}),
        signer: str = SOFTWARE,
    ) -> None:
        self.sealer = sealer
        self.published_age = published_age
        software = SoftwareSigner()
        self.signers = {software.name: software, **signers}
        self.signer = self.signers[signer]
        self._copy: _Copy | None = None
        self._private: dict[str, PrivateKey | ExternalKey] = {}
        self._public: dict[str, PublicKey] = {}
        #: The last published key list, with its source copy and time.
        self._published: tuple[KeySchedules, datetime, Published] | None = None

    def cached_schedule(self, look: ReadSessionFactory, now: datetime) -> KeySchedules:
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

    def fresh(self, now: datetime) -> KeySchedules | None:
        """The copy of the key list, unless it has expired."""
        copy = self._copy
        return copy.schedule if copy is not None and abs(now - copy.at) < CACHE_AGE else None

    def load_schedule(self, storage: Storage, now: datetime) -> KeySchedules:
        """Read the key list and cache it."""
        schedule = KeySchedules.from_keys(storage.signing_keys.list_all(), self.published_age)
        if schedule.keys:
            self._copy = _Copy(schedule, now)
            stored = {key.id for key in schedule.keys}
            self._private = {key_id: parsed for key_id, parsed in self._private.items() if key_id in stored}
            self._public = {key_id: parsed for key_id, parsed in self._public.items() if key_id in stored}
            oldest = schedule.keys[0].active_at
            if oldest > now:
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

    def without_copy(self) -> "KeyRing":
        """Another ring with the same settings, for another storage."""
        return KeyRing(self.sealer, published_age=self.published_age, signers=self.signers, signer=self.signer.name)

    def private_key(self, key: SigningKey) -> PrivateKey | ExternalKey:
        """Unsealed and parsed once per process; nothing is asked of the signer. Raises UnsealingError, InvalidKey."""
        parsed = self._private.get(key.id)
        if parsed is None:
            name, reference = SOFTWARE, self.sealer.open(key.sealed_private_key, associated_data=key.id)
            if reference.startswith(_EXTERNAL):
                prefix, _, reference = reference.removeprefix(_EXTERNAL).partition(b":")
                name = prefix.decode()
            signer = self.signers.get(name)
            if signer is None:
                raise InvalidKey(f"it is in the signer {name}, which no listed plugin offers")
            parsed = signer.open_key(reference, PublicKey.from_der(key.public_key, key.algorithm))
            self._private[key.id] = parsed
        return parsed

    def create_key(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> tuple[bytes, bytes]:
        """The sealed private key, or its sealed reference, and the public key in DER. Raises SignerUnavailable, also if
        the two do not belong together."""
        name = self.signer.name
        created = self.signer.create_key(key_id, algorithm, bits)
        if name != SOFTWARE:
            require_signature(self.signer.open_key(created.reference, created.public_key))
        reference = created.reference if name == SOFTWARE else _EXTERNAL + name.encode() + b":" + created.reference
        return self.sealer.seal(reference, associated_data=key_id), created.public_key.to_der()

    def signer_name(self, key: SigningKey) -> str | None:
        """The name of the signer that has the key; None if it cannot be opened."""
        try:
            private_key = self.private_key(key)
        except (UnsealingError, InvalidKey):
            return None
        return SOFTWARE if isinstance(private_key, PrivateKey) else private_key.signer

    def failing_signers(self) -> Mapping[str, timedelta]:
        """The signers whose calls in this process fail, and for how long they have."""
        ages = ((name, signer.failing_for()) for name, signer in self.signers.items())
        return {name: age for name, age in ages if age is not None}

    def close(self) -> None:
        for signer in self.signers.values():
            signer.close()

    def public_key(self, key: SigningKey) -> PublicKey | None:
        """Parsed once per process; None if it is damaged, which is logged."""
        parsed = self._public.get(key.id)
        if parsed is None:
            try:
                parsed = self._public[key.id] = PublicKey.from_der(key.public_key, key.algorithm)
            except InvalidKey as problem:
                log.error("the signing key %s is not published: %s", key.id, problem)
        return parsed

    def published(self, schedule: KeySchedules, now: datetime) -> Published:
        """The keys in the JWKS, newest first; the same tuple as long as schedule and moment are the same."""
        last = self._published
        if last is not None and last[0] is schedule and last[1] == now:
            return last[2]
        halves = ((key, self.public_key(key)) for key in schedule.published_keys(now))
        keys = tuple((key, public) for key, public in halves if public is not None)
        self._published = schedule, now, keys
        return keys

    def select_signing_key(self, keys: Iterable[SigningKey]) -> tuple[str, PrivateKey | ExternalKey]:
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


def require_signature(key: PrivateKey | ExternalKey) -> None:
    """Raises SignerUnavailable unless the key signs, and the signature fits its public half."""
    try:
        UnverifiedToken.parse(sign({}, key, key_id="check")).verify(key.public_key())
    except (MalformedToken, InvalidTokenSignature) as problem:
        raise SignerUnavailable(f"The signature of {key!r} is not valid: {problem.reason}.") from None


@dataclass(eq=False, repr=False)
class SigningKeyService(Service):
    """Signing keys within one request or job."""

    _ring: KeyRing

    def schedule(self) -> KeySchedules:
        """All keys and the schedules derived from them, at most CACHE_AGE old. Raises StorageUnavailable."""
        return self._ring.cached_schedule(self._look, self._now)

    def current_signing_key(self, algorithm: SignatureAlgorithm | None = None) -> tuple[str, PrivateKey | ExternalKey]:
        """Key id and private key to sign with: the active key of the algorithm, or another published one if that is
        damaged. Without ``algorithm``, the first of the settings that has a key. Raises NoSigningKey, also if the
        algorithm has no active key: clients that chose it reject every other; StorageUnavailable."""
        algorithms = self._settings.signing_algorithms if algorithm is None else (algorithm,)
        return self._ring.select_signing_key(self.schedule().signing_candidates(algorithms, self._now))

    def find_signer_problem(self) -> str | None:
        """What keeps the signer of new keys, or an active key outside the process, from signing; None without a
        problem. Keys that cannot be opened are for the check of signing keys."""
        problem = self._ring.signer.find_problem()
        if problem is not None:
            return problem
        for algorithm in self.active_algorithms():
            try:
                _, key = self.current_signing_key(algorithm)
                if isinstance(key, ExternalKey):
                    require_signature(key)
            except SignerUnavailable as failure:
                return str(failure)
            except StorageUnavailable:
                # It cannot be opened.
                continue
        return None

    def active_algorithms(self) -> tuple[SignatureAlgorithm, ...]:
        """The switched-on algorithms that have an active key. Raises StorageUnavailable."""
        schedule = self.schedule()
        return tuple(
            SignatureAlgorithm(name)
            for name in self._settings.signing_algorithms
            if schedule.active_key(name, self._now) is not None
        )

    def require_active(self, before: object, after: object, fields: Collection[str]) -> None:
        """Refuse a newly chosen algorithm without an active key: the client would reject every other. Raises
        Invalid."""
        changed = [
            name
            for name in fields
            if (chosen := getattr(after, name)) is not None and chosen is not getattr(before, name, None)
        ]
        if not changed:
            return
        active = self.active_algorithms()
        sentence = gettext_lazy("The service does not sign with it now. Choose from {names}.", names=", ".join(active))
        problems = {name: sentence for name in changed if getattr(after, name) not in active}
        if problems:
            raise Invalid(problems)

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
            SigningKeyState(
                key,
                alike.key_state(key, at),
                alike.retires_at(key),
                alike.published_until(key),
                self._ring.signer_name(key),
            )
            for key in reversed(schedule.keys)
            for alike in (schedule.by_algorithm[key.algorithm],)
        )

    def add_first(self) -> SigningKey:
        """Create the first key of each algorithm, active at once: no client can have cached a list without it. An
        existing one is returned."""
        keys = self._ring.load_schedule(self._storage, self._now).keys
        if keys:
            return keys[0]
        first, *_ = [
            self._add(algorithm, generation, self._now)
            for generation, algorithm in enumerate(self._settings.signing_algorithms, start=1)
        ]
        return first

    def rotate(self, algorithm: SignatureAlgorithm | None = None, *, emergency: bool = False) -> SigningKey:
        """Create the next key of the algorithm, by default the service's; it signs after the announcement period. A key
        already announced is returned instead. ``emergency`` skips the announcement: the new key signs after
        EMERGENCY_DELAY, when every node publishes it. Raises NoSigningKey before the first key; Invalid for an
        algorithm that is switched off."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        if not schedule.keys:
            raise NoSigningKey("There is no signing key. Run `identity bootstrap`.")
        enabled = self._settings.signing_algorithms
        if algorithm is not None and algorithm not in enabled:
            names = ", ".join(enabled)
            raise Invalid({"algorithm": gettext_lazy("It is not switched on. Choose from {names}.", names=names)})
        name = enabled[0] if algorithm is None else algorithm
        waiting = schedule.next_key(name, self._now)
        if not self._ring.can_open(waiting):
            waiting = None
        delay = EMERGENCY_DELAY if emergency else self._settings.key_announcement_period
        if waiting is not None and (not emergency or waiting.active_at <= self._now + EMERGENCY_DELAY):
            return waiting
        return self._add(name, schedule.next_generation, self._now + delay)

    def withdraw(self, key_ids: Collection[str]) -> tuple[SigningKey, ...]:
        """Withdraw compromised keys permanently; returns the keys that sign from now on, as far as they had to be
        created. The JWKS no longer contains them, and the service rejects what they signed: other processes follow
        within CACHE_AGE. Clients that cache the JWKS follow when they fetch it again. If the signer of new keys is
        unavailable, the keys are withdrawn all the same, and nothing is signed until ``rotate_due`` finds it back.
        Raises NotFound."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        withdrawn = [self._delete_unpublished(schedule, key_id) for key_id in key_ids]
        self._ring.invalidate()
        new = []
        for algorithm in dict.fromkeys(key.algorithm for key in withdrawn):
            active = schedule.active_key(algorithm, self._now)
            if algorithm not in self._settings.signing_algorithms:
                continue
            if active is None:
                # It never signed: the background job announces its first key again.
                continue
            if active in withdrawn or not self._ring.can_open(active):
                try:
                    new.append(self._replace(algorithm, schedule.next_generation))
                except SignerUnavailable as problem:
                    # A compromised key must go, even if nothing is signed until the signer is back.
                    log.error("no key replaces the withdrawn one for %s yet: %s", algorithm, problem)
        for key in withdrawn:
            self._record("signing_key.withdrawn", key)
        return tuple(new)

    def _replace(self, algorithm: str, generation: int) -> SigningKey:
        """A key that signs from now on. Raises SignerUnavailable."""
        # The next generation may belong to a key that another node has just announced and that signs later.
        key = self._add(algorithm, generation, self._now)
        while key.active_at > self._now:
            key = self._add(algorithm, key.generation + 1, self._now)
        return key

    def withdrawal_impact(self, key_id: str) -> WithdrawalImpact:
        """What would end if the key were withdrawn now. Raises NotFound."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        key = self._require_found(schedule.find(key_id), "signing key", key_id)
        retires_at = schedule.by_algorithm[key.algorithm].retires_at(key)
        until = self._now + timedelta(seconds=1) if retires_at is None else retires_at
        count = self._storage.tokens.count_live_jwts(key.active_at, until, self._now, MAX_COUNTED_OBJECTS + 1)
        return WithdrawalImpact(
            key=key,
            live_tokens=min(count, MAX_COUNTED_OBJECTS),
            is_exact=count <= MAX_COUNTED_OBJECTS,
            accepted_until=self._now + self._settings.jwks_max_age,
        )

    def _delete_unpublished(self, schedule: KeySchedules, key_id: str) -> SigningKey:
        key = self._require_found(schedule.find(key_id), "signing key", key_id)
        try:
            self._storage.signing_keys.delete(key_id)
        except RowNotFound:
            raise NotFound("signing key", key_id) from None
        return key

    def rotation_due(self) -> bool:
        """True if ``rotate_due`` has something to do."""
        schedule = self.schedule()
        return bool(schedule.keys) and bool(self._due_algorithms(schedule) or self._switched_off_keys(schedule))

    def rotate_due(self) -> None:
        """Announce the next key of each algorithm whose active key is old enough or damaged, and the first one of an
        algorithm that was switched on. Retire the keys of those that were switched off: they stay published until
        the last token that they signed has ended."""
        schedule = self._ring.load_schedule(self._storage, self._now)
        for algorithm in self._due_algorithms(schedule):
            self.rotate(algorithm)
        for key in self._switched_off_keys(schedule):
            if self._storage.signing_keys.retire(key.id, self._now):
                self._record("signing_key.retired", key)
        self._ring.invalidate()

    def _due_algorithms(self, schedule: KeySchedules) -> list[SignatureAlgorithm]:
        return [
            SignatureAlgorithm(name)
            for name in self._settings.signing_algorithms
            if (due_at := self._due_at(schedule, name)) is not None
            and (self._now >= due_at or not self._ring.can_open(schedule.active_key(name, self._now)))
        ]

    def _switched_off_keys(self, schedule: KeySchedules) -> list[SigningKey]:
        enabled = self._settings.signing_algorithms
        return [
            key
            for key in schedule.keys
            if key.algorithm not in enabled and key.retired_at is None and key.created_at + ROLLOUT_PERIOD <= self._now
        ]

    def _due_at(self, schedule: KeySchedules, algorithm: str) -> datetime | None:
        """When the next key of the algorithm must be announced; None if it is announced."""
        if self._ring.can_open(schedule.next_key(algorithm, self._now)):
            return None
        active = schedule.active_key(algorithm, self._now)
        if active is None:
            return self._now
        return active.active_at + self._settings.signing_key_active_age - self._settings.key_announcement_period

    def rotation_due_at(self) -> datetime | None:
        """When the first active key is old enough to announce the next one; None if all are announced, or without
        keys."""
        schedule = self.schedule()
        if not schedule.keys:
            return None
        moments = (self._due_at(schedule, name) for name in self._settings.signing_algorithms)
        return min((moment for moment in moments if moment is not None), default=None)

    def remove_unpublished(self) -> int:
        """Delete the keys whose tokens have all expired; returns the number deleted."""
        storage = self._storage
        schedule = self._ring.load_schedule(storage, self._now)
        published = schedule.published_keys(self._now)
        signing_keys = [key for key in schedule.keys if key not in published]
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

    def _add(self, algorithm: str, generation: int, active_at: datetime) -> SigningKey:
        key_id = new_id()
        sealed, public_key = self._ring.create_key(
            key_id, SignatureAlgorithm(algorithm), self._settings.signing_key_bits
        )
        key = SigningKey(
            id=key_id,
            generation=generation,
            algorithm=algorithm,
            public_key=public_key,
            sealed_private_key=sealed,
            created_at=self._now,
            active_at=active_at,
        )
        storage = self._storage
        try:
            storage.signing_keys.add(key)
        except DuplicateValue:
            # Another node was faster and its key, missing from the copy, serves as well; or it is an unreadable key, or
            # one of another algorithm.
            self._ring.invalidate()
            newer = (item for item in storage.signing_keys.list_all() if item.generation >= generation)
            signing_key = next((item for item in newer if item.algorithm == algorithm), None)
            return self._add(algorithm, generation + 1, active_at) if signing_key is None else signing_key
        self._record("signing_key.added", key)
        self._ring.invalidate()
        return key

    def _record(self, event: str, key: SigningKey) -> None:
        self._audit.record(
            event,
            kind="signing_key",
            id=key.id,
            organization_id=None,
            detail={
                "generation": key.generation,
                "algorithm": key.algorithm,
                "active_at": key.active_at.isoformat(),
                "signer": self._ring.signer_name(key),
            },
        )
