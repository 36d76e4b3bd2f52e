"""How badges are stored: one record for each user."""

from dataclasses import dataclass

from identity.api.services import RecordNamespace, Services

KIND = "badge"


@dataclass(frozen=True)
class Badges:
    namespace: RecordNamespace
    prefix: str

    def give(self, services: Services, user_id: str, text: str) -> str:
        """Replace the user's badge; returns the new one."""
        records = services.record_service(self.namespace)
        badge = {"text": self.prefix + text}
        existing = records.add(KIND, user_id, badge, user_id=user_id)
        if existing is not None:
            records.replace(existing, badge)
        return badge["text"]

    def find(self, services: Services, user_id: str) -> str | None:
        """The user's badge; None without one."""
        record = services.record_service(self.namespace).find(KIND, user_id)
        return None if record is None else str(record.value["text"])
