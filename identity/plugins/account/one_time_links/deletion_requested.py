"""/leaving: confirms a deletion request."""

from identity.plugins.account.one_time_links.link_page import OneTimeLinkPage


class DeletionRequestedPage(OneTimeLinkPage):
    """Confirms the request and says how to cancel it."""

    template = "account/deletion_requested.html"
