"""Entities: other packages see exactly what a field declares."""

from datetime import datetime

import pytest

from identity.domain.entity import create_only, entity, entity_fields, internal, mutable, read_only, versioned
from identity.services.audit import dump_fields


@entity
class Lamp:
    """An entity with a field of each kind."""

    id: str = read_only()
    secret: str = internal()
    maker: str = create_only(default="nobody")
    watts: int | None = mutable(default=None)
    changed_at: datetime = versioned()


def named(quality: str) -> set[str]:
    return {name for name, field in entity_fields(Lamp).items() if getattr(field, quality)}


def test_field_visibility_is_respected() -> None:
    assert named("is_visible") == {"id", "maker", "watts", "changed_at"}
    assert named("is_audited") == {"id", "maker", "watts"}
    assert named("is_settable") == {"maker", "watts"}
    assert named("is_mutable") == {"watts"}
    assert named("required") == {"id", "secret", "changed_at"}
    assert named("nullable") == {"watts"}


def test_events_contain_no_internal_fields() -> None:
    lamp = Lamp(id="1", secret="hush", changed_at=datetime(2026, 1, 1))
    assert dump_fields(lamp) == {"id": "1", "maker": "nobody", "watts": None}


def test_every_field_declares_its_visibility() -> None:
    with pytest.raises(TypeError, match=r"nothing is declared of Torch\.battery"):

        @entity
        class Torch:
            """An entity that leaves declarations out."""

            id: str = read_only()
            battery: str = "full"
