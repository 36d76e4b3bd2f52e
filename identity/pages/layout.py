"""What the frame of account and console shows: navigation, organization switcher, user. Labels are translated."""

from dataclasses import dataclass

from identity.domain.sessions import SignedInAccount


@dataclass(frozen=True, kw_only=True)
class NavigationItem:
    """A link in a navigation or menu; ``is_current`` if the page is in its section."""

    label: str
    href: str
    icon: str = ""
    is_current: bool = False


@dataclass(frozen=True)
class AccountMenuEntry:
    """A link in the account menu; with ``requires_manager_role`` only for users with a manager role."""

    label: str
    href: str
    requires_manager_role: bool = False


@dataclass(frozen=True, kw_only=True)
class NavigationGroup:
    """Links under one heading; the first group has none."""

    items: tuple[NavigationItem, ...]
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class OrganizationSwitcher:
    """The menu that switches the organization: its kind (before ``label``), its heading, and its links."""

    prefix: str
    label: str
    heading: str
    items: tuple[NavigationItem, ...]


@dataclass(frozen=True, kw_only=True)
class SignedInUser:
    name: str
    login_name: str

    @property
    def initials(self) -> str:
        """Two letters for the avatar."""
        return name_initials(self.name)


@dataclass(frozen=True, kw_only=True)
class PageLayout:
    """``home_path`` is the logo's link; the sign-out form posts to ``sign_out_path``, the account switcher to
    ``switch_path``.
    """

    home_path: str
    groups: tuple[NavigationGroup, ...]
    user: SignedInUser
    sign_out_path: str
    account_items: tuple[NavigationItem, ...] = ()
    switcher: OrganizationSwitcher | None = None
    switch_path: str = ""
    other_accounts: tuple[SignedInAccount, ...] = ()

    @property
    def current_label(self) -> str:
        return next((item.label for group in self.groups for item in group.items if item.is_current), "")


def name_initials(name: str) -> str:
    name_parts = [part for part in name.split() if part[0].isalnum()]
    letters = [name_parts[0][0], name_parts[-1][0]] if len(name_parts) > 1 else [part[0] for part in name_parts]
    return "".join(letters).upper()
