"""Branding: appearance and texts of sign-in pages and mails, for an organization or an application."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from identity.crypto.secrets import token_digest
from identity.domain.applications import Application
from identity.domain.branding import DEFAULT_BRANDING, LOGO_FIELDS, TEXT_FIELDS, Branding, merge_branding
from identity.domain.errors import Denied, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE_WRITE
from identity.domain.records import CORE_NAMESPACE, Record
from identity.services.access_control import Principal
from identity.services.applications import ApplicationService
from identity.services.audit import diff_fields
from identity.services.base import Service, refuse_stale, translate_storage_errors
from identity.services.commands.branding import ChangeBranding
from identity.services.images import SanitizedImage, sanitize_base64_image
from identity.storage.stores.records import RecordStore

BrandingOwner = Organization | Application

_BRANDING = "branding"


@dataclass(eq=False, repr=False)
class BrandingService(Service):
    """One for each organization and each application; an application's values override its organization's."""

    _applications: ApplicationService

    def own_branding(self, owner: BrandingOwner) -> Branding:
        """The owner's own values, without inherited ones."""
        if not owner.branded:
            return DEFAULT_BRANDING
        with self._look() as storage:
            record = storage.records.find(CORE_NAMESPACE, _BRANDING, _key(owner))
        return DEFAULT_BRANDING if record is None else _read(record.value)

    def effective_branding(self, organization: Organization | None, application: Application | None = None) -> Branding:
        """The values that apply to sign-in at the application, or to pages of the organization."""
        lower = DEFAULT_BRANDING if organization is None else self.own_branding(organization)
        return lower if application is None else merge_branding(self.own_branding(application), lower)

    def organization_display_name(self, organization: Organization) -> str:
        """The name that pages of the organization show, else its own name."""
        return self.own_branding(organization).display_name or organization.name

    def find_logo(self, owner_id: str, name: str) -> SanitizedImage | None:
        """The current logo of this file name of the organization or application."""
        with self._look() as storage:
            records = [storage.records.find(CORE_NAMESPACE, kind, token_digest(owner_id)) for kind in LOGO_FIELDS]
        for record in records:
            if record is not None and record.value.get("name") == name:
                return SanitizedImage.from_base64(name, str(record.value.get("content", "")))
        return None

    def own_logos_base64(self, owner: BrandingOwner) -> dict[str, str]:
        """The owner's own logos in base64; empty if there is none."""
        branding = self.own_branding(owner)
        pictures = {name: self.find_logo(owner.id, getattr(branding, name)) for name in LOGO_FIELDS}
        return {name: "" if picture is None else picture.base64_text for name, picture in pictures.items()}

    def preview_change(self, owner: BrandingOwner, command: ChangeBranding) -> Branding:
        """The branding after this change, without its pictures."""
        values = {
            name: _normalize_value(value) for name, value in command if value is not None and name not in LOGO_FIELDS
        }
        return replace(self.own_branding(owner), **values)

    def change(
        self,
        owner: BrandingOwner,
        command: ChangeBranding,
        *,
        principal: Principal,
        expected_version: int | None = None,
    ) -> Branding:
        """Change the branding; it shares the version of its owner. Raises NotFound, Denied, Conflict; Invalid for a
        picture that cannot be sanitized."""
        if isinstance(owner, Application) and not self._applications.can_change(owner, principal=principal):
            sentence = gettext_lazy("Only instance managers can change applications of the instance's own project.")
            raise Denied(sentence, permission=INSTANCE_WRITE)
        kind = "application" if isinstance(owner, Application) else "organization"
        owner = self._require_found(getattr(self._storage, f"{kind}s").find(owner.id), kind, owner.id)
        refuse_stale(owner.version, expected_version)
        before, after = self.own_branding(owner), self.preview_change(owner, command)
        pictures = {name: self._sanitize_image(name, getattr(command, name)) for name in LOGO_FIELDS}
        sent_pictures = {name: picture for name, picture in pictures.items() if getattr(command, name) is not None}
        named: dict[str, Any] = {
            name: "" if image is None else image.file_name for name, image in sent_pictures.items()
        }
        after = replace(after, **named)
        detail = diff_fields(before, after)
        if not detail:
            return before
        changed = replace(owner, branded=after != DEFAULT_BRANDING, version=owner.version + 1, changed_at=self._now)
        with translate_storage_errors(kind, owner.id):
            getattr(self._storage, f"{kind}s").update(changed)
        self._keep(_BRANDING, owner, {} if after == DEFAULT_BRANDING else _written(after))
        for name, picture in sent_pictures.items():
            if getattr(after, name) != getattr(before, name):
                self._keep(
                    name, owner, {} if picture is None else {"name": picture.file_name, "content": picture.base64_text}
                )
        self._audit.record(
            "branding.changed", kind=kind, id=owner.id, organization_id=self._organization_id(owner), detail=detail
        )
        return after

    def _sanitize_image(self, name: str, sent: str | None) -> SanitizedImage | None:
        """The sanitized picture; None for an empty value. Raises Invalid."""
        try:
            return sanitize_base64_image(sent) if sent else None
        except Invalid as refused:
            raise Invalid(dict.fromkeys((name,), *refused.fields.values())) from None

    def _keep(self, kind: str, owner: BrandingOwner, value: Mapping[str, Any]) -> None:
        """Replace the stored value; an empty one deletes it. The owner's row is already written, which serializes
        writers."""
        self._storage.records.delete(CORE_NAMESPACE, kind, _key(owner))
        if not value:
            return
        record = Record(
            plugin=CORE_NAMESPACE,
            kind=kind,
            key=_key(owner),
            application_id=owner.id if isinstance(owner, Application) else None,
            value=value,
            created_at=self._now,
        )
        with translate_storage_errors("application", owner.id):
            self._storage.records.add(record, replacing_expired=True)

    def _organization_id(self, owner: BrandingOwner) -> str | None:
        if isinstance(owner, Organization):
            return owner.id
        project = self._storage.projects.find(owner.project_id)
        return None if project is None else project.organization_id


def delete_branding(records: RecordStore, organization_id: str) -> None:
    """Delete the branding of a removed organization. Its applications' brandings are deleted with them."""
    for kind in (_BRANDING, *LOGO_FIELDS):
        records.delete(CORE_NAMESPACE, kind, token_digest(organization_id))


def _key(owner: BrandingOwner) -> bytes:
    return token_digest(owner.id)


def _normalize_value(value: Any) -> Any:
    """Without empty texts; colours in lower case."""
    if isinstance(value, Mapping):
        stripped = {language: text.replace("\r\n", "\n").strip() for language, text in value.items()}
        return {language: text for language, text in sorted(stripped.items()) if text}
    return value.lower() if isinstance(value, str) and value.startswith("#") else value


def _written(branding: Branding) -> dict[str, Any]:
    values = {field.name: getattr(branding, field.name) for field in fields(branding)}
    return json.loads(json.dumps({name: value for name, value in values.items() if value}))  # type: ignore[no-any-return]


def _read(stored: Mapping[str, Any]) -> Branding:
    """Ignores unknown members, which a newer version may have written."""
    values: dict[str, Any] = {name: stored[name] for name in TEXT_FIELDS if isinstance(stored.get(name), Mapping)}
    logo_fields = {field.name for field in fields(Branding)} - {*TEXT_FIELDS}
    return Branding(**values, **{name: stored[name] for name in logo_fields if isinstance(stored.get(name), str)})
