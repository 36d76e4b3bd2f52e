"""Contract of the log of sent mails."""

import pytest

from identity.domain.sent_mails import MailOutcome
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, SECOND, make_id
from identity.storage.contract.harness import ContractBase, StorageHarness
from identity.storage.errors import RowNotFound
from identity.storage.paging import PageRequest


class SentMailContract(ContractBase):
    """Mails come back newest first, of one user or all, until they are old or their user is deleted."""

    def test_sent_mails_come_back_newest_first(self, on: StorageHarness) -> None:
        first = make.sent_mail(created_at=NOW - SECOND, outcome=MailOutcome.REFUSED, reply="550 …", message_id="<1@x>")
        second = make.sent_mail(user_id=on.human_user.id, organization_id=on.organization.id, language="de", attempts=3)
        for mail in (second, first):
            on.write.sent_mails.add(mail)
        assert on.read.sent_mails.page(None).items == (second, first)
        assert on.read.sent_mails.page(on.human_user.id).items == (second,)
        page = on.read.sent_mails.page(None, PageRequest(limit=1))
        assert on.read.sent_mails.page(None, PageRequest(cursor=page.next_cursor)).items == (first,)

    def test_sent_mails_go_with_their_user_and_when_they_are_old(self, on: StorageHarness) -> None:
        old, new, personal = (
            make.sent_mail(created_at=NOW - SECOND),
            make.sent_mail(),
            make.sent_mail(user_id=on.human_user.id),
        )
        for mail in (old, new, personal):
            on.write.sent_mails.add(mail)
        assert on.write.sent_mails.delete_before(NOW) == 1
        on.write.users.delete(on.human_user.id)
        assert on.read.sent_mails.page(None).items == (new,)

    def test_sent_mails_refuse_unknown_users(self, on: StorageHarness) -> None:
        with pytest.raises(RowNotFound):
            on.write.sent_mails.add(make.sent_mail(user_id=make_id()))
