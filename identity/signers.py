"""Signers: what creates signing keys and signs. The service's own keeps them sealed in the storage; those of plugins
keep them outside, such as in a hardware security module, which never reveals a private key.
"""

import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, ClassVar, Generic, TypeVar

from identity import instrumentation
from identity.concurrency import Event
from identity.crypto.signature_keys import ExternalKey, PrivateKey, PublicKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.log_formatters import RepeatedMessageFilter
from identity.password_hashing import PasswordHasher
from identity.storage.errors import StorageUnavailable

log = logging.getLogger(__name__)
log.addFilter(RepeatedMessageFilter())

Result = TypeVar("Result")

SOFTWARE = "software"


class SignerUnavailable(StorageUnavailable):
    """The signer does not respond, or cannot do this; the message tells operators why. What needs a signature fails
    with 503 and may be tried again."""


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """What the signer needs to find a new key again, which is stored encrypted, and the key's public half."""

    reference: bytes
    public_key: PublicKey


class Signer(ABC):
    """Creates keys and opens them; ``name`` is what operators write in ``identity.signer``."""

    name: str

    @abstractmethod
    def create_key(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        """A new key, never one that was returned before. ``key_id`` is the ``kid`` that tokens will have, ``bits`` is
        for RSA. Raises SignerUnavailable."""

    @abstractmethod
    def open_key(self, reference: bytes, public_key: PublicKey) -> PrivateKey | ExternalKey:
        """The key of a reference from ``create_key``. Raises InvalidKey if it is none."""

    def find_problem(self) -> str | None:
        """What operators have to fix; None if the signer works."""
        return None

    def failing_for(self) -> timedelta | None:
        """For how long every call has failed; None if the last one succeeded."""
        return None

    def close(self) -> None:  # noqa: B027 - optional
        """Called when the process ends."""


class SoftwareSigner(Signer):
    """Keys in the memory of the process. Their reference is the private key."""

    name = SOFTWARE

    def create_key(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        private_key = PrivateKey.generate(bits, algorithm)
        return CreatedKey(private_key.to_der(), private_key.public_key())

    def open_key(self, reference: bytes, public_key: PublicKey) -> PrivateKey:
        return PrivateKey.from_der(reference, public_key.algorithm)


class ExternalSigner(Signer):
    """Base class of signers outside the process.

    ``generate``, ``sign`` and ``check`` may block: they run in one thread per process, one call at a time, never before
    a fork and never in an event loop. Nobody waits longer than the timeouts, and while a call exceeds its own, others
    are refused at once.
    """

    #: In seconds, with the wait for earlier calls. Some modules take long to create RSA keys.
    signing_timeout: float = 5
    creation_timeout: ClassVar[float] = 60

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: _SignerThread | None = None
        #: When calls began to fail, on the monotonic clock.
        self._failing_since: float | None = None

    @abstractmethod
    def generate(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        """As ``create_key``."""

    @abstractmethod
    def sign(self, reference: bytes, algorithm: SignatureAlgorithm, data: bytes) -> bytes:
        """The signature in the form of JWS (RFC 7518 §3, RFC 8037 §3.1). Raises SignerUnavailable, also if there is no
        such key."""

    @abstractmethod
    def check(self) -> None:
        """Raises SignerUnavailable unless the signer can be reached."""

    def create_key(self, key_id: str, algorithm: SignatureAlgorithm, bits: int) -> CreatedKey:
        return self._run(lambda: self.generate(key_id, algorithm, bits), self.creation_timeout)

    def open_key(self, reference: bytes, public_key: PublicKey) -> ExternalKey:
        algorithm = SignatureAlgorithm(public_key.algorithm)

        def sign(data: bytes) -> bytes:
            return self._run(lambda: self.sign(reference, algorithm, data), self.signing_timeout)

        return ExternalKey(public_key, self.name, sign)

    def find_problem(self) -> str | None:
        try:
            self._run(self.check, self.signing_timeout)
        except SignerUnavailable as problem:
            return str(problem)
        return None

    def failing_for(self) -> timedelta | None:
        since = self._failing_since
        return None if since is None else timedelta(seconds=time.monotonic() - since)

    def close(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def _run(self, function: Callable[[], Result], timeout: float) -> Result:
        """Call the function in the signer's thread. Raises SignerUnavailable."""
        outcome = instrumentation.Outcome.FAILED
        try:
            result = self._current_thread().run(function, timeout)
            outcome = instrumentation.Outcome.SUCCEEDED
        except SignerUnavailable as problem:
            log.error("the signer %s failed: %s", self.name, problem)
            raise
        except Exception as failure:
            log.error("the signer %s failed", self.name, exc_info=failure)
            raise SignerUnavailable(f"The signer {self.name} failed: {type(failure).__name__}.") from failure
        else:
            return result
        finally:
            if outcome is instrumentation.Outcome.SUCCEEDED:
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = time.monotonic()
            instrumentation.record_outcome(instrumentation.Measurement.SIGNER, self.name, outcome)

    def _current_thread(self) -> "_SignerThread":
        """Started with the first call, and again after a fork, which no thread survives."""
        with self._lock:
            if self._thread is None or self._thread.process_id != os.getpid():
                self._thread = _SignerThread(self.name)
            return self._thread


class _SignerThread:
    def __init__(self, name: str) -> None:
        self.process_id = os.getpid()
        self._name = name
        self._calls: SimpleQueue[_SignerCall[Any] | None] = SimpleQueue()
        self._running: _SignerCall[Any] | None = None
        # A daemon, so that a module that never returns does not keep the process from ending.
        threading.Thread(target=self._work, name=f"identity-signer-{name}", daemon=True).start()

    def run(self, function: Callable[[], Result], timeout: float) -> Result:
        running = self._running
        if running is not None and running.deadline < time.monotonic():
            raise SignerUnavailable(f"The signer {self._name} has not responded to an earlier request.")
        call = _SignerCall(function, time.monotonic() + timeout)
        self._calls.put(call)
        with PasswordHasher.released_slot():
            has_ended = call.ended.wait(timeout)
        if not has_ended:
            raise SignerUnavailable(f"The signer {self._name} did not respond within {timeout:g} seconds.")
        return call.outcome()

    def stop(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            # Nobody waits for it any more.
            if call.deadline < time.monotonic():
                continue
            self._running = call
            call.execute()
            self._running = None
            call.ended.set()


class _SignerCall(Generic[Result]):
    __slots__ = ("_error", "_function", "_result", "deadline", "ended")

    def __init__(self, function: Callable[[], Result], deadline: float) -> None:
        self._function = function
        self._result: Result | None = None
        self._error: Exception | None = None
        self.deadline = deadline
        self.ended = Event()

    def execute(self) -> None:
        try:
            self._result = self._function()
        except Exception as error:
            self._error = error

    def outcome(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]
