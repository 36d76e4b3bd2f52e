"""Requests of devices that wait for their person.

A request is three records: one by device code, which the device polls, one by user code, which the person enters, and
one by the id of the confirmation page. The decision consumes the last, so there is exactly one.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from identity.api.crypto import new_token, token_digest
from identity.api.entities import ApplicationClient, Conflict
from identity.api.services import Record, RecordNamespace, RecordService, Services

#: How long a person has to enter the code.
LIFETIME = timedelta(minutes=10)
#: How long a device code is known after that, so that the device hears that it has expired.
_EXPIRED_RETENTION = timedelta(minutes=10)
#: The pause between two polls, and what polling too fast adds to it (RFC 8628 §3.2, §3.5).
INTERVAL, SLOW_DOWN_STEP = timedelta(seconds=5), timedelta(seconds=5)

#: Consonants only: no words, and nothing to confuse with digits (RFC 8628 §6.1). 20^8 codes are 34.6 bits.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
CODE_LENGTH = 8

_DEVICE, _USER_CODE, _REQUEST, _DENIAL = "device", "user_code", "request", "denial"
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What a device requests. ``digest`` is that of its device code, ``address`` the network address it came from."""

    id: str
    client_id: str
    scope: tuple[str, ...]
    #: The APIs that the tokens are limited to (RFC 8707).
    resources: tuple[str, ...]
    user_code: str
    digest: bytes
    address: str
    requested_at: datetime
    expires_at: datetime


def normalize_user_code(text: str) -> str | None:
    """The code as it is stored, whatever its case, spaces and dashes; None if it cannot be a code."""
    code = "".join(text.upper().replace("-", "").split())
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else None


def format_user_code(code: str) -> str:
    """Two groups: ``BCDF-GHJK``."""
    return f"{code[: CODE_LENGTH // 2]}-{code[CODE_LENGTH // 2 :]}"


class DeviceRequestStore:
    """The requests of one transaction."""

    def __init__(self, services: Services, namespace: RecordNamespace) -> None:
        self._records: RecordService = services.record_service(namespace)
        self._now = services.now

    def add(
        self, client: ApplicationClient, scope: tuple[str, ...], resources: tuple[str, ...], address: str
    ) -> tuple[str, str]:
        """Store a request; returns its device code and user code."""
        device_code, id_, ends_at = new_token(), new_token(), self._now + LIFETIME
        user_code = self._reserve_user_code(id_, client, ends_at)
        self._records.add(
            _REQUEST,
            id_,
            {
                "client_id": client.id,
                "scope": list(scope),
                "resources": list(resources),
                "user_code": user_code,
                "digest": token_digest(device_code).hex(),
                "address": address,
            },
            application_id=client.id,
            expires_at=ends_at,
        )
        self._records.add(
            _DEVICE,
            device_code,
            {"client_id": client.id, "interval": INTERVAL.seconds, "polled_at": None, "ends_at": ends_at.isoformat()},
            application_id=client.id,
            expires_at=ends_at + _EXPIRED_RETENTION,
        )
        return device_code, user_code

    def _reserve_user_code(self, id_: str, client: ApplicationClient, ends_at: datetime) -> str:
        for _ in range(_ATTEMPTS):
            code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
            # The id opens the page without any code, so it is sealed.
            value = {"request": id_}
            if (
                self._records.add(_USER_CODE, code, value, application_id=client.id, expires_at=ends_at, seal=True)
                is None
            ):
                return code
        raise Conflict("No code is free just now.")

    def find_id(self, user_code: str) -> str | None:
        """The id of the request with this normalized code; None if it is unknown, has expired or was decided."""
        found = self._records.find(_USER_CODE, user_code)
        id_ = None if found is None else str(found.value["request"])
        return id_ if id_ is not None and self.find(id_) is not None else None

    def find(self, id_: str) -> DeviceRequest | None:
        """The request that waits under this id."""
        found = self._records.find(_REQUEST, id_)
        return None if found is None else _request(id_, found)

    def decide(self, request: DeviceRequest, *, deny: bool) -> bool:
        """Take the request: exactly one of several concurrent decisions counts. False for the others."""
        if self._records.consume(_REQUEST, request.id) is None:
            return False
        if deny:
            self._records.add(
                _DENIAL,
                request.digest.hex(),
                {},
                application_id=request.client_id,
                expires_at=request.expires_at + _EXPIRED_RETENTION,
            )
        return True

    def find_polled(self, device_code: str, client: ApplicationClient) -> Record | None:
        """The record of a device code that was issued to this client."""
        found = self._records.find(_DEVICE, device_code)
        return found if found is not None and found.value["client_id"] == client.id else None

    def is_denied(self, device_code: str) -> bool:
        return self._records.find(_DENIAL, token_digest(device_code).hex()) is not None

    def is_expired(self, polled: Record) -> bool:
        return self._now >= datetime.fromisoformat(polled.value["ends_at"])

    def record_poll(self, polled: Record) -> bool:
        """Record the poll. False if it came too early, and then the pause grows by five seconds; also False, without a
        trace, for one of several polls at once."""
        value: Mapping[str, Any] = polled.value
        pause, last = timedelta(seconds=value["interval"]), value["polled_at"]
        in_time = last is None or self._now >= datetime.fromisoformat(last) + pause
        pause += timedelta() if in_time else SLOW_DOWN_STEP
        try:
            self._records.replace(
                polled, {**value, "interval": int(pause.total_seconds()), "polled_at": self._now.isoformat()}
            )
        except Conflict:
            return False
        return in_time


def _request(id_: str, record: Record) -> DeviceRequest:
    value = record.value
    return DeviceRequest(
        id=id_,
        client_id=value["client_id"],
        scope=tuple(value["scope"]),
        resources=tuple(value.get("resources", ())),
        user_code=value["user_code"],
        digest=bytes.fromhex(value["digest"]),
        address=value["address"],
        requested_at=record.created_at,
        expires_at=record.expires_at or record.created_at,
    )
