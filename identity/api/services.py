"""Services: users, records, events and messages in a transaction."""

from identity.domain.audit import ActorKind, AuditEvent, AuditFilter, Result
from identity.domain.records import Record, RecordNamespace
from identity.services.access_control import Principal
from identity.services.audit import event_to_dict
from identity.services.client_metadata import ClientMetadataSource
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.users import ChangeAddress, ChangeProfile, RegisterUser
from identity.services.container import Services
from identity.services.lookup import Lookup
from identity.services.one_time_links import InvalidOneTimeLink
from identity.services.outbox import Delivery, DeliveryFailed
from identity.services.personal_data_export import export_personal_data
from identity.services.records import RecordService
from identity.services.registration import PendingRegistration

__all__ = [
    "ActorKind",
    "AuditEvent",
    "AuditFilter",
    "ChangeAddress",
    "ChangeApplication",
    "ChangeProfile",
    "ClientMetadataSource",
    "Delivery",
    "DeliveryFailed",
    "InvalidOneTimeLink",
    "Lookup",
    "PendingRegistration",
    "Principal",
    "Record",
    "RecordNamespace",
    "RecordService",
    "RegisterApplication",
    "RegisterUser",
    "Result",
    "Services",
    "event_to_dict",
    "export_personal_data",
]
