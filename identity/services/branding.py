"""How the pages of a sign-in and mails look for an organization or an application, and what they say."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from identity.crypto.secrets import digest
from identity.domain.applications import Application
from identity.domain.branding import LOGOS, PLAIN, TEXTS, Branding, over
from identity.domain.errors import Denied, Invalid
from identity.domain.organizations import Organization
from identity.domain.records import CORE, Record
from identity.domain.words import say
from identity.services.access import Principal
from identity.services.applications import OF_INSTANCE, Applications
from identity.services.audit import differences
from identity.services.changes import TransactionState, UseCases, refuse_stale, told
from identity.services.commands.branding import ChangeBranding
from identity.services.pictures import Picture, decoded
from identity.storage.stores.records import RecordStore

#: Whose a branding is.
Owner = Organization | Application

_BRANDING = "branding"


class Brandings(UseCases):
    """One for each organization and each application; what an application has counts before what its organization has.

    Nothing is looked for where none was set.
    """

    def __init__(self, state: TransactionState, applications: Applications) -> None:
        super().__init__(state)
        self._applications = applications

    def of(self, owner: Owner) -> Branding:
        """The owner's own, with nothing of what it is above."""
        if not owner.branded:
            return PLAIN
        with self._look() as storage:
            found = storage.records.find(CORE, _BRANDING, _key(owner))
        return PLAIN if found is None else _read(found.value)

    def shown(self, organization: Organization | None, application: Application | None = None) -> Branding:
        """What people see who sign in to the application, or have to do with the organization alone."""
        lower = PLAIN if organization is None else self.of(organization)
        return lower if application is None else over(self.of(application), lower)

    def name_of(self, organization: Organization) -> str:
        """What people know the organization by: the name that its pages show, else its own."""
        return self.of(organization).display_name or organization.name

    def logo(self, owner_id: str, name: str) -> Picture | None:
        """The picture of this name that the organization or application has now."""
        with self._look() as storage:
            found = [storage.records.find(CORE, kind, digest(owner_id)) for kind in LOGOS]
        for one in found:
            if one is not None and one.value.get("name") == name:
                return Picture.kept(name, str(one.value.get("content", "")))
        return None

    def logo_texts(self, owner: Owner) -> dict[str, str]:
        """The owner's own logos in base64; empty where there is none."""
        held = self.of(owner)
        pictures = {name: self.logo(owner.id, getattr(held, name)) for name in LOGOS}
        return {name: "" if picture is None else picture.text for name, picture in pictures.items()}

    def preview(self, owner: Owner, command: ChangeBranding) -> Branding:
        """What would be without the picture, if this was changed."""
        given = {name: _tidied(value) for name, value in command if value is not None and name not in LOGOS}
        return replace(self.of(owner), **given)

    def change(
        self, owner: Owner, command: ChangeBranding, *, by: Principal, expected_version: int | None = None
    ) -> Branding:
        """The changed branding; it belongs to the owner, whose version counts.

        Raises NotFound, Denied, Conflict; Invalid for a picture that cannot be made harmless.
        """
        if isinstance(owner, Application) and not self._applications.may_change(owner, by=by):
            sentence = say("Only who manages the instance can change applications of its own project.")
            raise Denied(sentence, permission=OF_INSTANCE)
        kind = "application" if isinstance(owner, Application) else "organization"
        owner = self._found(getattr(self._storage, f"{kind}s").find(owner.id), kind, owner.id)
        refuse_stale(owner.version, expected_version)
        before, after = self.of(owner), self.preview(owner, command)
        pictures = {name: self._picture(name, getattr(command, name)) for name in LOGOS}
        given = {name: picture for name, picture in pictures.items() if getattr(command, name) is not None}
        named: dict[str, Any] = {name: "" if one is None else one.name for name, one in given.items()}
        after = replace(after, **named)
        detail = differences(before, after)
        if not detail:
            return before
        changed = replace(owner, branded=after != PLAIN, version=owner.version + 1, changed_at=self._now)
        with told(kind, owner.id):
            getattr(self._storage, f"{kind}s").update(changed)
        self._keep(_BRANDING, owner, {} if after == PLAIN else _written(after))
        for name, picture in given.items():
            if getattr(after, name) != getattr(before, name):
                self._keep(name, owner, {} if picture is None else {"name": picture.name, "content": picture.text})
        self._audit.record(
            "branding.changed", kind=kind, id=owner.id, organization_id=self._organization_id(owner), detail=detail
        )
        return after

    def _picture(self, name: str, sent: str | None) -> Picture | None:
        """What was sent as this picture, made harmless; None for nothing. Raises Invalid."""
        try:
            return decoded(sent) if sent else None
        except Invalid as refused:
            raise Invalid(dict.fromkeys((name,), *refused.fields.values())) from None

    def _keep(self, kind: str, owner: Owner, value: Mapping[str, Any]) -> None:
        """Put a value in the place of what was kept; nothing for an empty one. The owner's row is written already, so
        that nobody else is about it."""
        self._storage.records.drop(CORE, kind, _key(owner))
        if not value:
            return
        record = Record(
            plugin=CORE,
            kind=kind,
            key=_key(owner),
            application_id=owner.id if isinstance(owner, Application) else None,
            value=value,
            created_at=self._now,
        )
        with told("application", owner.id):
            self._storage.records.add(record, replacing_expired=True)

    def _organization_id(self, owner: Owner) -> str | None:
        if isinstance(owner, Organization):
            return owner.id
        project = self._storage.projects.find(owner.project_id)
        return None if project is None else project.organization_id


def forget(records: RecordStore, organization_id: str) -> None:
    """Let go of what an organization had that is removed; what applications had goes with these."""
    for kind in (_BRANDING, *LOGOS):
        records.drop(CORE, kind, digest(organization_id))


def _key(owner: Owner) -> bytes:
    return digest(owner.id)


def _tidied(value: Any) -> Any:
    """Texts without those that are empty; colours in small letters."""
    if isinstance(value, Mapping):
        stripped = {language: text.replace("\r\n", "\n").strip() for language, text in value.items()}
        return {language: text for language, text in sorted(stripped.items()) if text}
    return value.lower() if isinstance(value, str) and value.startswith("#") else value


def _written(branding: Branding) -> dict[str, Any]:
    """What is not empty."""
    values = {one.name: getattr(branding, one.name) for one in fields(branding)}
    return json.loads(json.dumps({name: value for name, value in values.items() if value}))  # type: ignore[no-any-return]


def _read(stored: Mapping[str, Any]) -> Branding:
    """What a version of the service wrote that may have known more."""
    values: dict[str, Any] = {name: stored[name] for name in TEXTS if isinstance(stored.get(name), Mapping)}
    others = {one.name for one in fields(Branding)} - {*TEXTS}
    return Branding(**values, **{name: stored[name] for name in others if isinstance(stored.get(name), str)})
