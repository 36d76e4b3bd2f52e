"""Contract of the audit store."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from identity.domain.audit import ERASED, SYSTEM, Actor, ActorKind, AuditEvent, AuditFilter, Result
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.contract.page_checks import check_order, walk_pages
from identity.storage.errors import DuplicateValue
from identity.storage.paging import PageRequest, RowTotal
from identity.storage.stores.purges import PurgeKind


class AuditContract(ContractBase):
    """Events are appended in sequence, found by many filters, and outlive their subjects."""

    def append(self, on: StorageHarness, *events: AuditEvent) -> None:
        with on.transaction() as storage:
            for event in events:
                assert storage.audit.append(event)

    def test_audit_find_returns_what_was_appended(self, on: StorageHarness) -> None:
        event = make.audit_event(
            event="authentication.refused",
            actor=Actor(
                kind=ActorKind.USER,
                id="user",
                client_id="client",
                session_id="session",
                client_address="2001:db8::1",
                request_id="request",
            ),
            object_kind="service_user",
            object_id=None,
            group_id=make_id(),
            organization_id=make_id(),
            result=Result.REFUSED,
            reason="Schlüssel unbekannt 株",
            detail={"text": "ü\n😀", "big": 2**62, "negative": -1, "yes": True, "none": None, "list": [1, {"a": "b"}]},
            once="stranger/unknown key/2026-03-01T12:00",
        )
        self.append(on, event)
        audit_event = on.read.audit.find(event.id)
        assert on.read.audit.find(make_id()) is None
        assert audit_event is not None
        assert replace(audit_event, sequence=None) == event
        assert audit_event.sequence is not None

    def test_audit_events_that_are_old_enough_go_oldest_first(self, on: StorageHarness) -> None:
        old = [make.audit_event(at=NOW - step * SECOND) for step in (5, 4, 3, 2, 1)]
        new = [make.audit_event(at=NOW), make.audit_event(at=NOW + SECOND)]
        self.append(on, *old, *new)
        assert [on.purge(PurgeKind.AUDIT_EVENTS, NOW, 2) for _ in range(4)] == [2, 2, 1, 0]
        assert self.remaining_ids(on) == [event.id for event in new]
        later = make.audit_event()
        self.append(on, later)
        assert self.remaining_ids(on) == [*(event.id for event in new), later.id]
        assert [event.sequence for event in on.read.audit.list_after(0, 10)] == [6, 7, 8]
        assert [event.id for event in on.read.audit.list_after(7, 10)] == [later.id]

    def test_audit_events_that_are_held_stay(self, on: StorageHarness) -> None:
        held_organization_id, other = make_id(), make_id()
        events = [
            make.audit_event(at=NOW - SECOND, organization_id=item)
            for item in (held_organization_id, other, None, held_organization_id)
        ]
        self.append(on, *events, make.audit_event(at=NOW))
        assert on.purge(PurgeKind.AUDIT_EVENTS, NOW, 10, legal_holds={held_organization_id}) == 2
        assert self.remaining_ids(on)[:2] == [events[0].id, events[3].id]
        assert on.purge(PurgeKind.AUDIT_EVENTS, NOW, 10) == 2

    def test_audit_events_that_are_held_are_looked_at_only_so_many_at_a_time(self, on: StorageHarness) -> None:
        held_organization_id, other = make_id(), make_id()
        events = [make.audit_event(at=NOW - 2 * SECOND, organization_id=held_organization_id) for _ in range(4)]
        self.append(on, *events, make.audit_event(at=NOW - SECOND, organization_id=other), make.audit_event(at=NOW))
        first = on.read.purges.find_candidates(PurgeKind.AUDIT_EVENTS, NOW, 4, legal_holds={held_organization_id})
        assert list(first.keys) == []
        then = on.read.purges.find_candidates(
            PurgeKind.AUDIT_EVENTS, NOW, 4, legal_holds={held_organization_id}, cursor=first.cursor
        )
        assert (len(then.keys), then.cursor) == (1, None)
        assert on.write.purges.delete(PurgeKind.AUDIT_EVENTS, then.keys, NOW, legal_holds={held_organization_id}) == 1
        assert self.remaining_ids(on)[:4] == [event.id for event in events[:4]]

    def test_audit_events_stay_of_who_is_held_whether_they_acted_or_it_is_about_them(self, on: StorageHarness) -> None:
        held_organization_id, other = make_id(), make_id()
        events = [
            make.audit_event(at=NOW - SECOND, organization_id=organization, object_id=about, actor=actor)
            for organization, about, actor in (
                (other, held_organization_id, SYSTEM),
                (None, None, Actor(kind=ActorKind.USER, id=held_organization_id)),
                (other, other, Actor(kind=ActorKind.USER, id=other)),
                (None, None, SYSTEM),
            )
        ]
        self.append(on, *events, make.audit_event(at=NOW))
        assert on.read.purges.count_expired(PurgeKind.AUDIT_EVENTS, NOW, 10, legal_holds={held_organization_id}) == 2
        assert on.purge(PurgeKind.AUDIT_EVENTS, NOW, 10, legal_holds={held_organization_id}) == 2
        assert self.remaining_ids(on)[:2] == [events[0].id, events[1].id]

    def test_audit_the_newest_event_keeps_its_number(self, on: StorageHarness) -> None:
        self.append(on, make.audit_event(at=NOW - SECOND), make.audit_event(at=NOW - SECOND))
        on.purge(PurgeKind.AUDIT_EVENTS, NOW, 10)
        self.append(on, make.audit_event())
        assert on.read.audit.page(PageRequest()).items[0].sequence == 3

    def remaining_ids(self, on: StorageHarness) -> list[str]:
        """Ids of the stored events, in order."""
        return [event.id for event in on.read.audit.list_after(0, 100)]

    def matching_ids(self, on: StorageHarness, **filters: Any) -> list[str]:
        """Ids of the events that match, newest first, whatever the page size."""
        fetch = partial(on.read.audit.page, filter=AuditFilter(**filters))
        events = walk_pages(fetch, limit=1000)
        check_order(fetch, events)
        return [event.id for event in events]

    def test_audit_events_forget_what_they_tell_of_people_who_are_gone(self, on: StorageHarness) -> None:
        """Only personal details of the deleted people are erased."""
        deleted_id, stays, acme = make_id(), on.human_user.id, make_id()
        detail_of_person = {"profile": {"given_name": "Ada"}, "reason": "ü"}

        def about(person: str, kind: str = "user", detail: Mapping[str, object] = detail_of_person) -> AuditEvent:
            actor = Actor(kind=ActorKind.USER, id=deleted_id, client_address="192.0.2.1")
            return make.audit_event(
                object_kind=kind, object_id=person, organization_id=acme, detail=detail, actor=actor, once=make_id()
            )

        erased = [about(deleted_id), about(deleted_id)]
        events = [about(stays), about(deleted_id, kind="user_grant"), about(deleted_id, detail={}), about(make_id())]
        self.append(on, *erased, *events)
        assert on.write.audit.erase_personal_details(deleted_id) == 2
        assert on.write.audit.erase_personal_details(deleted_id) == 0
        assert on.write.audit.erase_personal_details(stays) == 0, "who is there still"
        found = {event.id: replace(event, sequence=None) for event in on.read.audit.list_after(0, 10)}
        assert [found[event.id] for event in erased] == [replace(event, detail=ERASED) for event in erased]
        assert [found[event.id] for event in events] == events

    def test_audit_events_forget_what_they_tell_of_the_people_of_an_organization(self, on: StorageHarness) -> None:
        acme, detail = make_id(), {"user_name": "ada"}
        events = [
            make.audit_event(object_kind=kind, object_id=id_, organization_id=organization, detail=detail)
            for kind, id_, organization in (
                ("user", make_id(), acme),
                ("user", make_id(), acme),
                ("user", on.human_user.id, acme),
                ("user", make_id(), make_id()),
                ("project", make_id(), acme),
            )
        ]
        self.append(on, *events)
        assert on.write.audit.erase_personal_details(acme) == 2
        assert [event.detail for event in on.read.audit.list_after(0, 10)] == [ERASED, ERASED, detail, detail, detail]

    def test_audit_a_taken_id_is_refused(self, on: StorageHarness) -> None:
        event = make.audit_event(object_id="first")
        self.append(on, event)
        with pytest.raises(DuplicateValue):
            on.write.audit.append(replace(event, object_id="forged"))
        assert [event.object_id for event in on.read.audit.page(PageRequest()).items] == ["first"]

    def test_audit_many_are_appended_in_their_order(self, on: StorageHarness) -> None:
        first, last, some = make.audit_event(), make.audit_event(), [make.audit_event() for _ in range(5)]
        with on.transaction() as storage:
            storage.audit.append(first)
            storage.audit.append_many(some)
            storage.audit.append_many([])
            storage.audit.append(last)
        events = [replace(event, sequence=None) for event in on.read.audit.page(PageRequest()).items]
        assert events == [last, *reversed(some), first]

    def test_audit_sequence_rises(self, on: StorageHarness) -> None:
        events = [make.audit_event(at=NOW - timedelta(hours=hours)) for hours in range(4)]
        self.append(on, *events[:2])
        for event in events[2:]:
            self.append(on, event)
        audit_events = list(reversed(walk_pages(on.read.audit.page, limit=10)))
        assert [event.id for event in audit_events] == [event.id for event in events], (
            "the order is that of the appending"
        )
        sequences = [event.sequence for event in audit_events if event.sequence is not None]
        assert len(set(sequences)) == 4
        assert sequences == sorted(sequences)

    def test_audit_a_second_event_with_the_same_once_is_not_written(self, on: StorageHarness) -> None:
        assert on.write.audit.append(make.audit_event(object_id="first", once="key")) is True
        with on.transaction() as storage:
            assert storage.audit.append(make.audit_event(object_id="second", once="key")) is False
            assert storage.audit.append(make.audit_event(object_id="third", once="other key")) is True
            assert storage.audit.append(make.audit_event(object_id="fourth", once="other key")) is False
            assert storage.audit.append(make.audit_event(object_id="fifth")) is True
            assert storage.audit.append(make.audit_event(object_id="sixth")) is True
        written = [event.object_id for event in walk_pages(on.read.audit.page, limit=2)]
        assert written == ["sixth", "fifth", "third", "first"]

    def test_audit_a_once_that_was_rolled_back_is_free(self, on: StorageHarness) -> None:
        with on.aborted_transaction() as storage:
            assert storage.audit.append(make.audit_event(once="key"))
        self.append(on, make.audit_event(once="key"))
        assert len(on.read.audit.page(PageRequest())) == 1

    def test_audit_events_outlive_what_they_tell_of(self, on: StorageHarness) -> None:
        event = make.audit_event(object_id=on.organization.id, organization_id=on.organization.id)
        self.append(on, event)
        on.write.organizations.delete(on.organization.id)
        assert on.read.audit.find(event.id) is not None
        assert len(on.read.audit.page(filter=AuditFilter(organization_id=on.organization.id))) == 1

    def test_audit_page_is_newest_first(self, on: StorageHarness) -> None:
        check_order(on.read.audit.page, [])
        self.append(on, *(make.audit_event() for _ in range(12)))
        events = walk_pages(on.read.audit.page, limit=1000)
        assert len(events) == 12
        check_order(on.read.audit.page, events)

    def test_audit_page_while_rows_come(self, on: StorageHarness) -> None:
        self.append(on, *(make.audit_event() for _ in range(5)))
        before = walk_pages(on.read.audit.page, limit=10)
        first = on.read.audit.page(PageRequest(limit=2))
        self.append(on, *(make.audit_event() for _ in range(3)))
        assert [*first.items, *walk_pages(on.read.audit.page, limit=2, cursor=first.next_cursor)] == before

    @pytest.mark.parametrize(
        "filters",
        [
            {"organization_id": "acme"},
            {"event": "token.revoked"},
            {"actor_id": "ada"},
            {"object_id": "thing"},
            {"result": Result.REFUSED},
            {"organization_id": "acme", "event": "token.revoked", "actor_id": "ada", "result": Result.REFUSED},
            {"organization_id": "acme", "result": Result.REFUSED},
        ],
    )
    def test_audit_page_holds_events_that_fit_every_filter(self, on: StorageHarness, filters: dict[str, Any]) -> None:
        fitting = {
            "organization_id": "acme",
            "event": "token.revoked",
            "actor": Actor(kind=ActorKind.USER, id="ada"),
            "object_id": "thing",
            "result": Result.REFUSED,
        }
        other = {
            "organization_id": "bolt",
            "event": "token.replayed",
            "actor": Actor(kind=ActorKind.USER, id="bob"),
            "object_id": "other",
            "result": Result.SUCCESS,
        }
        matches = [make.audit_event(**fitting) for _ in range(3)]
        misses = [make.audit_event(**other), make.audit_event()]
        for name in filters:
            field = "actor" if name == "actor_id" else name
            misses.append(make.audit_event(**(fitting | {field: other[field]})))
        self.append(on, misses[0], *matches, *misses[1:])
        assert self.matching_ids(on, **filters) == [event.id for event in reversed(matches)]

    def test_audit_a_party_has_acted_or_is_what_it_is_about(self, on: StorageHarness) -> None:
        ada = Actor(kind=ActorKind.USER, id="ada")
        events = [
            make.audit_event(actor=ada, object_id="thing"),
            make.audit_event(object_id="ada"),
            make.audit_event(object_id="bob"),
            make.audit_event(actor=ada, object_id="ada", event="user.changed"),
            make.audit_event(object_id="ada", result=Result.REFUSED),
        ]
        self.append(on, *events)
        assert self.matching_ids(on, involved_id="ada") == [events[index].id for index in (4, 3, 1, 0)]
        counted = on.read.audit.page(PageRequest(limit=1, with_total=True), AuditFilter(involved_id="ada"))
        assert counted.total == RowTotal(4)
        assert self.matching_ids(on, involved_id="ada", event="user") == [events[3].id]

    def test_audit_object_and_party_find_events_about_a_user(self, on: StorageHarness) -> None:
        grant, ada = make_id(), make_id()
        events = [
            make.audit_event(event="user_grant.added", object_kind="user_grant", object_id=grant, user_id=ada),
            make.audit_event(object_id=make_id(), user_id=make_id()),
            make.audit_event(event="user.changed", object_kind="user", object_id=ada),
            make.audit_event(event="user_grant.removed", object_kind="user_grant", object_id=grant, user_id=ada),
        ]
        self.append(on, *events)
        expected = [events[index].id for index in (3, 2, 0)]
        assert self.matching_ids(on, object_id=ada) == expected
        assert self.matching_ids(on, involved_id=ada) == expected
        assert self.matching_ids(on, object_id=ada, event="user_grant") == [events[3].id, events[0].id]
        event = on.read.audit.find(events[0].id)
        assert event is not None
        assert event.user_id == ada

    def test_audit_object_and_party_find_events_of_a_group(self, on: StorageHarness) -> None:
        group = make_id()
        events = [
            make.audit_event(event="group_member.added", object_kind="group_member", group_id=group, user_id=make_id()),
            make.audit_event(event="group_member.added", object_kind="group_member", group_id=make_id()),
            make.audit_event(event="group.changed", object_kind="group", object_id=group),
        ]
        self.append(on, *events)
        expected = [events[2].id, events[0].id]
        assert self.matching_ids(on, object_id=group) == expected
        assert self.matching_ids(on, involved_id=group) == expected

    def test_audit_page_of_a_request(self, on: StorageHarness) -> None:
        requests = ("one", "other", "one", None)
        events = [make.audit_event(actor=replace(SYSTEM, request_id=request)) for request in requests]
        self.append(on, *events)
        assert self.matching_ids(on, request_id="one") == [events[2].id, events[0].id]

    def test_audit_page_of_a_span_includes_its_start_and_excludes_its_end(self, on: StorageHarness) -> None:
        until = NOW + timedelta(hours=1)
        moments = (NOW - SECOND, NOW, until - SECOND, until)
        self.append(on, *(make.audit_event(at=moment) for moment in moments))
        spans = (AuditFilter(since=NOW, until=until), AuditFilter(since=until), AuditFilter(until=NOW))
        found = [[event.at for event in on.read.audit.page(filter=span)] for span in spans]
        assert found == [[until - SECOND, NOW], [until], [NOW - SECOND]]

    def test_audit_a_subject_stands_for_all_its_events(self, on: StorageHarness) -> None:
        names = ("project.created", "project_role.added", "project.removed", "user.created", "project.created")
        events = [make.audit_event(event=name, organization_id="acme") for name in names]
        self.append(on, *events, make.audit_event(event="project.changed", organization_id="bolt"))
        of_project = [events[index].id for index in (4, 2, 0)]
        assert self.matching_ids(on, event="project", organization_id="acme") == of_project
        assert len(self.matching_ids(on, event="project")) == 4
        for nothing in ("pro", "project.", "created", "%", "project.create"):
            assert not on.read.audit.page(filter=AuditFilter(event=nothing)).items, nothing

    def test_audit_of_no_organization_is_nobodys(self, on: StorageHarness) -> None:
        self.append(on, make.audit_event(organization_id="acme"), make.audit_event())
        assert on.read.audit.page(filter=AuditFilter(organization_id="")).items == ()
        assert on.read.audit.list_after(0, 10, AuditFilter(organization_id="")) == ()

    def test_audit_after_is_oldest_first(self, on: StorageHarness) -> None:
        assert on.read.audit.list_after(0, 10) == ()
        events = [make.audit_event(event=f"user.{verb}") for verb in ("created", "changed", "recovered")]
        self.append(on, *events, make.audit_event(event="project.created", organization_id="acme"))
        audit_events = on.read.audit.list_after(0, 10)
        assert [event.id for event in audit_events[:3]] == [event.id for event in events]
        assert on.read.audit.list_after(0, 2) == audit_events[:2], "never more than the limit"
        assert on.read.audit.list_after(audit_events[1].sequence or 0, 10) == audit_events[2:]
        assert on.read.audit.list_after(audit_events[-1].sequence or 0, 10) == ()
        assert on.read.audit.list_after(0, 10, AuditFilter(event="user")) == audit_events[:3]
        assert on.read.audit.list_after(0, 2, AuditFilter(event="user")) == audit_events[:2]
        assert on.read.audit.list_after(0, 10, AuditFilter(organization_id="acme")) == audit_events[3:]
        assert on.read.audit.list_after(audit_events[0].sequence or 0, 10, AuditFilter(event="user.created")) == ()
