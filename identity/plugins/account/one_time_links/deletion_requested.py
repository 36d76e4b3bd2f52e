"""/leaving: what is said to whoever has asked for their account to be deleted."""

from identity.plugins.account.one_time_links.link_page import OneTimeLinkPage


class DeletionRequestedPage(OneTimeLinkPage):
    """The end, from which there is a way back."""

    template = "account/deletion_requested.html"
