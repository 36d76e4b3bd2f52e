"""/leaving: what is said to whoever has asked for their account to be deleted."""

from identity.plugins.account.links.link_page import LinkPage


class Leaving(LinkPage):
    """The end, from which there is a way back."""

    template = "account/leaving.html"
