"""Texts of mails, of the instance and of an organization."""

from collections.abc import Mapping

from identity.domain import mail_texts
from identity.domain.instance import Instance
from identity.domain.organizations import Organization
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE, ORGANIZATION
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation
from identity.services.commands.mail_texts import ChangeMailTexts, OwnMailText
from identity.services.mail_texts import mail_texts_to_json

_Call = OperationCall[Organization] | OperationCall[Instance]


class MailTextsRepresentation(Representation):
    """Own texts of mails by mail and language. What is missing is the service's own, or, for an organization, that of
    the instance. Link, code and warnings of a mail always stay the service's."""

    texts: Mapping[str, Mapping[str, OwnMailText]]
    version: int


def _represent(call: _Call) -> MailTextsRepresentation:
    return _representation(call.services.mail_texts.get(_owner(call)))


def _change(call: _Call, command: ChangeMailTexts) -> MailTextsRepresentation:
    service = call.services.mail_texts
    changed = service.change(_owner(call), command, principal=call.principal, expected_version=call.expected_version)
    return _representation(changed)


def _owner(call: _Call) -> Organization | None:
    return call.entity if isinstance(call.entity, Organization) else None


def _representation(texts: mail_texts.MailTexts) -> MailTextsRepresentation:
    return MailTextsRepresentation(texts=mail_texts_to_json(texts), version=texts.version)


_PLACEHOLDERS = (
    "Texts are plain, with placeholders such as `{name}`, `{login_name}`, `{organization}` and `{service}`. An empty "
    "text, or null, brings the service's own back; texts that are left out stay."
)
_INSTANCE = ApiResource[mail_texts.MailTexts]("instance_mail_texts", MailTextsRepresentation)
_ORGANIZATION = ApiResource[mail_texts.MailTexts](
    "organization_mail_texts", MailTextsRepresentation, permission_subject="organization"
)

OPERATIONS = (
    _INSTANCE.get(
        INSTANCE / "instance/mail-texts",
        "Shows the instance's own texts of mails.",
        _represent,
        permission="instance.write",
    ),
    _INSTANCE.change(
        INSTANCE / "instance/mail-texts",
        "Changes the instance's own texts of mails.",
        ChangeMailTexts,
        _change,
        permission="instance.write",
        description=_PLACEHOLDERS,
    ),
    _ORGANIZATION.get(ORGANIZATION / "mail-texts", "Shows an organization's own texts of mails.", _represent),
    _ORGANIZATION.change(
        ORGANIZATION / "mail-texts",
        "Changes an organization's own texts of mails.",
        ChangeMailTexts,
        _change,
        description=_PLACEHOLDERS + " They cannot contain addresses of web pages or mailboxes.",
    ),
)
