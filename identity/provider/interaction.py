"""Interaction: a page that can stand between an authorization request and its answer; SignIn, what it decides by."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from identity.domain.applications import Client
from identity.domain.email_addresses import is_same_mailbox
from identity.domain.login_names import LoginName
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.sessions import PendingAuthorization, SignedIn
from identity.domain.users import HumanUser, Subject
from identity.domain.verdicts import misfit
from identity.lazily import lazily
from identity.provider.authorization_request import AuthorizationRequest
from identity.provider.context import Context
from identity.provider.errors import InteractionRequired, OAuthError
from identity.provider.grant import Authorization
from identity.provider.request import NO_BROWSER, Browser
from identity.provider.scope import GrantedScopes

#: The demand of a page of the service's own that somebody sets up a factor, and the interaction that it asks for.
ENROL = "enrol"


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody has yet to prove: a class of ACR_VALUES, because the client asks for it, or by the policy.

    ``by`` names the factors that the person has set up and can prove it by. Where there is none, ``to_enrol`` names
    those that they can set up to reach it.
    """

    acr: str
    by_client: bool
    by: tuple[str, ...] = ()
    to_enrol: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """What the application would get of whoever is to answer; ``unagreed`` if they have yet to agree, for all that is
    stored."""

    authorization: Authorization
    granted: GrantedScopes
    unagreed: bool


def _no_offer(sign_in: "SignIn") -> Offer:
    raise ValueError("nobody is there, or nothing was asked for")


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """A sign-in under way: what was asked, what this browser has, and how far it has come.

    ``request`` is None for the service's own pages. ``accounts`` are the browser's sessions, last selected first,
    expired ones among them. ``pending`` is the row that waits, None as long as no page was needed. ``proved`` is who
    proved to be it here and is not signed in yet. ``organization`` is the one whose members alone will do.
    """

    request: AuthorizationRequest | None
    accounts: tuple[SignedIn, ...]
    now: datetime
    #: True for a session that lives right now.
    lives: Callable[[SignedIn], bool]
    pending: PendingAuthorization | None = None
    proved: Subject | None = None
    organization: Organization | None = None
    browser: Browser = NO_BROWSER
    assess: Callable[["SignIn"], Need | None] = lambda sign_in: None
    #: True for a session that began by a factor which may be used.
    counts: Callable[[SignedIn], bool] = lambda account: True
    offering: Callable[["SignIn"], Offer] = _no_offer

    @property
    def demands(self) -> Mapping[str, str]:
        """What the service's own pages ask for: ``max_age`` in seconds, ``acr``, and a factor to ``enrol``."""
        own = self.pending is not None and self.pending.target is not None
        return self.pending.parameters if own and self.pending is not None else {}

    @property
    def client(self) -> Client | None:
        """The application that asks; None for the service's own pages."""
        return None if self.request is None else self.request.client

    @property
    def organization_in_question(self) -> Organization | None:
        """The organization of the scope, else of the application; None on the service's own pages."""
        return self.organization or (None if self.client is None else self.client.organization)

    @property
    def login_name(self) -> LoginName | None:
        """What was typed, or hinted at, as login name."""
        typed = "" if self.pending is None else self.pending.login_name
        return LoginName.of(typed, self.organization_in_question) if typed else None

    @property
    def prompts(self) -> frozenset[str]:
        """What the client wants to happen (OpenID Connect Core §3.1.2.1, and create)."""
        return frozenset() if self.request is None else self.request.prompts

    @property
    def max_age(self) -> timedelta | None:
        """How long ago they may have proved who they are; None for any time."""
        if self.request is not None:
            return self.request.max_age
        seconds = self.demands.get("max_age")
        return None if seconds is None else timedelta(seconds=int(seconds))

    @property
    def subject(self) -> Subject | None:
        """Who will answer: the person who has just proved it, or whose session was chosen."""
        if self.proved is not None or self.chosen is None:
            return self.proved
        return self.chosen.subject

    def done(self, interaction: str) -> bool:
        """True if this interaction was finished in this very sign-in."""
        return self.pending is not None and interaction in self.pending.done

    def live(self, account: SignedIn) -> bool:
        """True if the account is signed in right now."""
        return self.lives(account)

    def fits(self, account: SignedIn) -> bool:
        """True if the account belongs to the required organization, if one is required."""
        return self.organization is None or account.subject.organization.id == self.organization.id

    @lazily
    def choices(self) -> tuple[SignedIn, ...]:
        """The live sessions that could answer, after what the client's hints leave over."""
        live = tuple(one for one in self.accounts if self.live(one) and self.fits(one))
        if self.request is None:
            return live
        if self.request.subject is not None:
            return tuple(one for one in live if one.subject.user.id == self.request.subject)
        hinted = tuple(one for one in live if is_named(one.subject, self.request.login_hint))
        # A hint that fits nobody here means somebody who has yet to sign in.
        return hinted if self.request.login_hint and "select_account" not in self.prompts else live

    @lazily
    def chosen(self) -> SignedIn | None:
        """The session that will answer: the one chosen on a page, or the only one there is."""
        if self.proved is not None:
            return None
        if self.pending is not None and self.pending.session_id is not None:
            return next(
                (one for one in self.accounts if one.session.id == self.pending.session_id and self.live(one)), None
            )
        if self.done("select_account") or self.done("create"):
            return None
        return self.choices[0] if len(self.choices) == 1 else None

    @lazily
    def need(self) -> Need | None:
        """What the person has yet to prove, beside who they are. Raises UnmetAuthenticationRequirements."""
        return self.assess(self)

    @lazily
    def offer(self) -> Offer:
        """What the answer would bring, once somebody is there. Raises OAuthError for what stands against it."""
        return self.offering(self)

    def fresh(self, account: SignedIn) -> bool:
        """True unless who they are is to be proved again (prompt=login, max_age), or was proved by what may not be used
        any more."""
        if not self.counts(account):
            return False
        if self.done("login"):
            return True
        if "login" in self.prompts:
            return False
        max_age, proved_at = self.max_age, account.session.proved_at
        return max_age is None or (proved_at is not None and self.now - proved_at < max_age)

    @property
    def wants_proof(self) -> bool:
        """True if a proof counts alone of which it is known when it was given (prompt=login, max_age)."""
        return self.max_age is not None or "login" in self.prompts


def is_named(subject: Subject, login_name: str) -> bool:
    """True if the text names the subject, who is signed in here, however spelt: by login name, by bare user name, or by
    an email address of theirs that is verified."""
    if LoginName.of(login_name).key in (LoginName.of(subject.login_name).key, name_key(subject.user.user_name)):
        return True
    user = subject.user
    if not isinstance(user, HumanUser) or not user.profile.email_verified:
        return False
    return is_same_mailbox(login_name, user.profile.email)


class Interaction(ABC):
    """A page by name. Stateless; one object serves all requests.

    ``error`` is what a client is told that allowed no page (prompt=none).
    """

    name: ClassVar[str]
    error: ClassVar[type[OAuthError]] = InteractionRequired
    #: True if it comes after those of other plugins that are not late, whatever the order of plugins.
    late: ClassVar[bool] = False
    #: What that error says.
    description: ClassVar[str] = "The user has to act on a page."

    @abstractmethod
    def required(self, sign_in: SignIn, context: Context) -> bool:
        """True if the page has to be shown before the answer. Raises an OAuthError to end the request with it."""

    @abstractmethod
    def path(self, sign_in: SignIn) -> str:
        """Where the page lies below ``/login/{request}``; empty for that very address."""


def first_required(interactions: Iterable[Interaction], sign_in: SignIn, context: Context) -> Interaction | None:
    """The interaction whose page comes next; None if nothing stands before the answer.

    Raises OAuthError; TypeError for an interaction that says neither True nor False: nobody gets past it.
    """
    for one in interactions:
        required: object = one.required(sign_in, context)
        if not isinstance(required, bool):
            raise TypeError(f"the interaction {one.name} answered with {misfit(required)}")
        if required:
            return one
    return None
