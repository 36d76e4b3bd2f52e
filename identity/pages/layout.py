"""What the frame of account and console shows: navigation, organization switcher, user. Labels are translated."""

import zlib
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


@dataclass(frozen=True, kw_only=True)
class PageLayout:
    """``home_path`` is the logo's link; the sign-out form posts to ``sign_out_path``, with ``session_id`` for
    this account alone, the account switcher to ``switch_path``, the choice of a theme to ``theme_path``, which returns
    to ``current_path``. Without ``search_path`` there is no search, without ``help_path`` no link to the documentation.
    """

    home_path: str
    groups: tuple[NavigationGroup, ...]
    user: SignedInUser
    session_id: str
    sign_out_path: str
    account_items: tuple[NavigationItem, ...] = ()
    switcher: OrganizationSwitcher | None = None
    switch_path: str = ""
    other_accounts: tuple[SignedInAccount, ...] = ()
    theme_path: str = ""
    current_path: str = ""
    search_path: str = ""
    help_path: str = ""


#: Suffixes of the style sheet's classes; the first tone has none.
_AVATAR_TONES = ("", "b", "c", "d")


def avatar_tone(name: str) -> str:
    """One of four tones of the avatar, always the same for a name."""
    return _AVATAR_TONES[zlib.crc32(name.encode()) % len(_AVATAR_TONES)]


def name_initials(name: str) -> str:
    name_parts = [part for part in name.split() if part[0].isalnum()]
    letters = [name_parts[0][0], name_parts[-1][0]] if len(name_parts) > 1 else [part[0] for part in name_parts]
    return "".join(letters).upper()
