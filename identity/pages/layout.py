"""What the frame of account and console shows: navigation, organization switcher, the person. Labels are translated."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NavigationItem:
    """A link in navigation or menu; ``is_current`` if the page lies in its section."""

    label: str
    href: str
    icon: str = ""
    is_current: bool = False


@dataclass(frozen=True)
class AccountMenuEntry:
    """A place that the account menu leads to; with ``requires_manager_role`` only for people who hold a manager
    role."""

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
    """The menu that changes the organization: what it is (said before ``label``), its head, and where one can go."""

    prefix: str
    label: str
    heading: str
    items: tuple[NavigationItem, ...]


@dataclass(frozen=True, kw_only=True)
class SignedInUser:
    """Who is signed in."""

    name: str
    login_name: str

    @property
    def initials(self) -> str:
        """Two letters for the avatar."""
        return name_initials(self.name)


@dataclass(frozen=True, kw_only=True)
class SwitchableAccount:
    """Somebody else who is signed in at this browser; ``reference`` authorises nothing without its cookies."""

    reference: str
    login_name: str


@dataclass(frozen=True, kw_only=True)
class PageLayout:
    """``home_path`` is where the mark leads, ``sign_out_path`` where the form that signs out is posted.

    ``switch_path`` is where the choice of another account is posted, ``other_accounts`` are those to choose among.
    """

    home_path: str
    groups: tuple[NavigationGroup, ...]
    user: SignedInUser
    sign_out_path: str
    account_items: tuple[NavigationItem, ...] = ()
    switcher: OrganizationSwitcher | None = None
    switch_path: str = ""
    other_accounts: tuple[SwitchableAccount, ...] = ()

    @property
    def current_label(self) -> str:
        """The label of the present section, for the phone's menu."""
        return next((item.label for group in self.groups for item in group.items if item.is_current), "")


def name_initials(name: str) -> str:
    """The first letters of the first and the last word of a name; of a single word, its first one."""
    name_parts = [part for part in name.split() if part[0].isalnum()]
    letters = [name_parts[0][0], name_parts[-1][0]] if len(name_parts) > 1 else [part[0] for part in name_parts]
    return "".join(letters).upper()
