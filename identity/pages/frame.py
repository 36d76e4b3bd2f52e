"""What the frame of account and console shows: navigation, organization switcher, the person. Labels are translated."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Item:
    """A link in navigation or menu; ``current`` if the page lies in its section."""

    label: str
    href: str
    icon: str = ""
    current: bool = False


@dataclass(frozen=True)
class MenuEntry:
    """A place that the account menu leads to; with ``for_managers`` only for people who hold a manager role."""

    label: str
    href: str
    for_managers: bool = False


@dataclass(frozen=True, kw_only=True)
class Group:
    """Links under one heading; the first group has none."""

    items: tuple[Item, ...]
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Switcher:
    """The menu that changes the organization: what it is (said before ``label``), its head, and where one can go."""

    meaning: str
    label: str
    head: str
    items: tuple[Item, ...]


@dataclass(frozen=True, kw_only=True)
class Person:
    """Who is signed in."""

    name: str
    login_name: str

    @property
    def initials(self) -> str:
        """Two letters for the avatar."""
        return initials(self.name)


@dataclass(frozen=True, kw_only=True)
class OtherAccount:
    """Somebody else who is signed in at this browser; ``reference`` authorises nothing without its cookies."""

    reference: str
    login_name: str


@dataclass(frozen=True, kw_only=True)
class Frame:
    """``home`` is where the mark leads, ``sign_out`` where the form that signs out is posted.

    ``switch`` is where the choice of another account is posted, ``others`` are those to choose among.
    """

    home: str
    groups: tuple[Group, ...]
    person: Person
    sign_out: str
    account_items: tuple[Item, ...] = ()
    switcher: Switcher | None = None
    switch: str = ""
    others: tuple[OtherAccount, ...] = ()

    @property
    def here(self) -> str:
        """The label of the present section, for the phone's menu."""
        return next((item.label for group in self.groups for item in group.items if item.current), "")


def initials(name: str) -> str:
    """The first letters of the first and the last word of a name; of a single word, its first one."""
    words = [word for word in name.split() if word[0].isalnum()]
    letters = [words[0][0], words[-1][0]] if len(words) > 1 else [word[0] for word in words]
    return "".join(letters).upper()
