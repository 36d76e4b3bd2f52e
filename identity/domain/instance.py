"""Instance: the installation itself, fixed at bootstrap."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The installation itself, fixed at bootstrap: its own organization and its own project (the one of the management
    audience scope)."""

    organization_id: str
    project_id: str
    created_at: datetime
