"""Own texts of mails, of the instance and of organizations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from identity.crypto.secrets import token_digest
from identity.domain.errors import Conflict, Invalid
from identity.domain.mail_texts import (
    INSTANCE_ONLY_KINDS,
    NO_MAIL_TEXT,
    MailKind,
    MailText,
    MailTexts,
    mail_text_errors,
    normalize_mail_text,
)
from identity.domain.messages import LANGUAGES, gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE, Resource
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.access_control import AccessControl, Principal
from identity.services.base import CHANGED_MEANWHILE, Service, refuse_stale, translate_storage_errors
from identity.services.commands.mail_texts import ChangeMailTexts
from identity.storage.backend import Storage
from identity.storage.stores.records import RecordStore

_KIND = "mail_texts"
_INSTANCE_KEY = "instance"
#: All texts of one owner as JSON.
_MAX_BYTES = 256 * 1024
_TEXT_FIELDS = tuple(item.name for item in fields(MailText))


@dataclass(eq=False, repr=False)
class MailTextService(Service):
    """The text of an organization replaces that of the instance for the same mail and language. Reading needs no
    permission; views check it."""

    _access: AccessControl

    def get(self, organization: Organization | None) -> MailTexts:
        """The texts that the organization itself, or the instance, has set."""
        with self._look() as storage:
            return _read(_find(storage, organization))

    def effective(self, organization: Organization | None, template: str, language: str) -> MailText:
        """The text of a mail, by its template, to a user of this organization."""
        with self._look() as storage:
            for owner in (organization, None) if organization is not None else (None,):
                text = _read(_find(storage, owner)).find(template, language)
                if text is not None:
                    return text
        return NO_MAIL_TEXT

    def change(
        self,
        organization: Organization | None,
        command: ChangeMailTexts,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> MailTexts:
        """Raises Denied, Conflict; Invalid with a message at ``texts.{mail}.{language}.{field}``."""
        self._require_permission(organization, principal)
        if organization is not None:
            found = self._storage.organizations.find(organization.id)
            organization = self._require_found(found, "organization", organization.id)
        record = _find(self._storage, organization)
        before = _read(record)
        refuse_stale(before.version, expected_version)
        texts = {kind: dict(by_language) for kind, by_language in before.texts.items()}
        detail: dict[str, object] = {}
        for kind, language, text in checked_texts(command, is_instance=organization is None):
            previous = before.find(kind, language) or NO_MAIL_TEXT
            texts.setdefault(kind, {})[language] = text
            if text != previous:
                detail[f"{kind}.{language}"] = {"before": _to_json(previous), "after": _to_json(text)}
        if not detail:
            return before
        after = replace(before, texts=_without_empty(texts), changed_at=self._now)
        self._store(organization, record, after)
        self._record_event("mail_text.changed", organization, detail)
        return replace(after, version=before.version + 1)

    def record_test(self, organization: Organization | None, kind: MailKind, *, principal: Principal) -> None:
        """Record that a mail is sent to try a text. Raises Denied."""
        self._require_permission(organization, principal)
        self._record_event("mail_text.tested", organization, {"mail": kind.value})

    def _require_permission(self, organization: Organization | None, principal: Principal) -> None:
        if organization is None:
            self._access.require(principal, INSTANCE_WRITE, Resource.INSTANCE)
        else:
            self._access.require(principal, "organization.write", Resource.of_organization(organization.id))

    def _record_event(self, event: str, organization: Organization | None, detail: Mapping[str, object]) -> None:
        if organization is None:
            self._audit.record(event, kind="instance", id="instance", organization_id=None, detail=detail)
        else:
            self._audit.record(
                event, kind="organization", id=organization.id, organization_id=organization.id, detail=detail
            )

    def _store(self, organization: Organization | None, record: Record | None, texts: MailTexts) -> None:
        value = {
            "texts": {
                kind: {language: _to_json(text) for language, text in by_language.items()}
                for kind, by_language in texts.texts.items()
            },
            "changed_at": None if texts.changed_at is None else int(texts.changed_at.timestamp()),
        }
        if len(json.dumps(value)) > _MAX_BYTES:
            raise Invalid({"texts": gettext_lazy("All texts together are too long.")})
        if record is not None:
            with translate_storage_errors("mail_text", _KIND):
                self._storage.records.replace(replace(record, value=value, version=record.version + 1))
            return
        new = Record(plugin=CORE_NAMESPACE, kind=_KIND, key=_key(organization), value=value, created_at=self._now)
        if self._storage.records.add(new) is not None:
            raise Conflict(CHANGED_MEANWHILE)


def checked_texts(command: ChangeMailTexts, *, is_instance: bool) -> list[tuple[MailKind, str, MailText]]:
    """The normalized texts of the command. Raises Invalid."""
    texts: list[tuple[MailKind, str, MailText]] = []
    problems: dict[str, str] = {}
    for kind, by_language in command.texts.items():
        if not is_instance and kind in INSTANCE_ONLY_KINDS:
            problems[f"texts.{kind}"] = gettext_lazy("Only the instance has a text for this mail.")
            continue
        for language, custom in by_language.items():
            sent = NO_MAIL_TEXT if custom is None else MailText(**custom.model_dump())
            text = normalize_mail_text(sent)
            texts.append((kind, language, text))
            found = mail_text_errors(kind, text, allows_links=is_instance)
            problems |= {f"texts.{kind}.{language}.{name}": problem for name, problem in found.items()}
    if problems:
        raise Invalid(problems)
    return texts


def delete_mail_texts(records: RecordStore, organization_id: str) -> None:
    """Delete the texts of a removed organization."""
    records.delete(CORE_NAMESPACE, _KIND, token_digest(organization_id))


def mail_texts_to_json(texts: MailTexts) -> dict[str, Any]:
    """The texts as ``ChangeMailTexts`` takes them."""
    return {
        str(kind): {language: _to_json(text) for language, text in sorted(by_language.items())}
        for kind, by_language in sorted(texts.texts.items())
    }


def _find(storage: Storage, organization: Organization | None) -> Record | None:
    return storage.records.find(CORE_NAMESPACE, _KIND, _key(organization))


def _key(organization: Organization | None) -> bytes:
    return token_digest(_INSTANCE_KEY if organization is None else organization.id)


def _without_empty(texts: Mapping[str, Mapping[str, MailText]]) -> dict[str, dict[str, MailText]]:
    present = {
        kind: {language: text for language, text in by_language.items() if not text.is_empty}
        for kind, by_language in texts.items()
    }
    return {kind: by_language for kind, by_language in present.items() if by_language}


def _to_json(text: MailText) -> dict[str, str]:
    return {name: value for name in _TEXT_FIELDS if (value := getattr(text, name))}


def _read(record: Record | None) -> MailTexts:
    """Ignores what this version does not know."""
    if record is None:
        return MailTexts()
    stored = record.value.get("texts")
    texts: dict[str, dict[str, MailText]] = {}
    for kind in MailKind:
        by_language = stored.get(kind.value) if isinstance(stored, Mapping) else None
        if isinstance(by_language, Mapping):
            texts[kind] = {
                language: _read_text(by_language[language]) for language in LANGUAGES if language in by_language
            }
    at = record.value.get("changed_at")
    changed_at = datetime.fromtimestamp(at, UTC) if isinstance(at, int) else None
    return MailTexts(texts=_without_empty(texts), changed_at=changed_at, version=record.version)


def _read_text(stored: object) -> MailText:
    members = stored if isinstance(stored, Mapping) else {}
    return MailText(**{name: members[name] for name in _TEXT_FIELDS if isinstance(members.get(name), str)})
