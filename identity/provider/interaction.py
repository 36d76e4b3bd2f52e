"""Interaction: a page that can stand between an authorization request and its answer; SignIn, what it decides by."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from identity.cached_property import cached_property
from identity.domain.applications import ApplicationClient
from identity.domain.email_addresses import is_same_mailbox
from identity.domain.hook_results import hook_type_error_text
from identity.domain.login_names import LoginName
from identity.domain.names import name_key
from identity.domain.organizations import Organization
from identity.domain.sessions import PendingAuthorization, SignedInAccount
from identity.domain.users import HumanUser, Subject
from identity.provider.authorization_request import AuthorizationRequest
from identity.provider.context import Context
from identity.provider.errors import InteractionRequired, OAuthError
from identity.provider.grant_type import Authorization
from identity.provider.protocol_request import NO_BROWSER_STATE, BrowserState
from identity.provider.scope import GrantedScopes

#: The demand of a page of the service's own that somebody sets up a factor, and the interaction that it asks for.
ENROL_PARAMETER = "enrol"


@dataclass(frozen=True, slots=True)
class StepUpRequirement:
    """What somebody has yet to prove: a class of ACR_VALUES, because the client asks for it, or by the policy.

    ``factors`` names the factors that the person has set up and can prove it by. Where there is none,
    ``enrollable_factors`` names those that they can set up to reach it.
    """

    acr: str
    is_client_request: bool
    factors: tuple[str, ...] = ()
    enrollable_factors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsentSummary:
    """What the application would get of whoever is to answer; ``needs_consent`` if they have yet to agree, for all that
    is stored.
    """

    authorization: Authorization
    granted: GrantedScopes
    needs_consent: bool


def _no_offer(sign_in: "SignIn") -> ConsentSummary:
    raise ValueError("nobody is there, or nothing was asked for")


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """A sign-in under way: what was asked, what this browser has, and how far it has come.

    ``request`` is None for the service's own pages. ``accounts`` are the browser's sessions, last selected first,
    expired ones among them. ``pending`` is the row that waits, None as long as no page was needed.
    ``authenticated_subject`` is who proved to be it here and is not signed in yet. ``required_organization`` is the one
    whose members alone will do.
    """

    request: AuthorizationRequest | None
    accounts: tuple[SignedInAccount, ...]
    now: datetime
    #: True for a session that lives right now.
    is_live_session: Callable[[SignedInAccount], bool]
    pending: PendingAuthorization | None = None
    authenticated_subject: Subject | None = None
    required_organization: Organization | None = None
    browser_state: BrowserState = NO_BROWSER_STATE
    step_up_checker: Callable[["SignIn"], StepUpRequirement | None] = lambda sign_in: None
    #: True for a session that began by a factor which may be used.
    is_allowed_session: Callable[[SignedInAccount], bool] = lambda account: True
    consent_summary_builder: Callable[["SignIn"], ConsentSummary] = _no_offer

    @property
    def own_page_requirements(self) -> Mapping[str, str]:
        """What the service's own pages ask for: ``max_age`` in seconds, ``acr``, and a factor to ``enrol``."""
        is_own_page = self.pending is not None and self.pending.target is not None
        return self.pending.parameters if is_own_page and self.pending is not None else {}

    @property
    def client(self) -> ApplicationClient | None:
        """The application that asks; None for the service's own pages."""
        return None if self.request is None else self.request.client

    @property
    def effective_organization(self) -> Organization | None:
        """The organization of the scope, else of the application; None on the service's own pages."""
        return self.required_organization or (None if self.client is None else self.client.organization)

    @property
    def login_name(self) -> LoginName | None:
        """What was typed, or hinted at, as login name."""
        typed = "" if self.pending is None else self.pending.login_name
        return LoginName.parse(typed, self.effective_organization) if typed else None

    @property
    def prompts(self) -> frozenset[str]:
        """What the client wants to happen (OpenID Connect Core §3.1.2.1, and create)."""
        return frozenset() if self.request is None else self.request.prompts

    @property
    def max_age(self) -> timedelta | None:
        """How long ago they may have proved who they are; None for any time."""
        if self.request is not None:
            return self.request.max_age
        seconds = self.own_page_requirements.get("max_age")
        return None if seconds is None else timedelta(seconds=int(seconds))

    @property
    def subject(self) -> Subject | None:
        """Who will answer: the person who has just proved it, or whose session was chosen."""
        if self.authenticated_subject is not None or self.selected_account is None:
            return self.authenticated_subject
        return self.selected_account.subject

    def has_completed(self, interaction: str) -> bool:
        """True if this interaction was finished in this very sign-in."""
        return self.pending is not None and interaction in self.pending.done

    def is_live(self, account: SignedInAccount) -> bool:
        """True if the account is signed in right now."""
        return self.is_live_session(account)

    def matches_organization(self, account: SignedInAccount) -> bool:
        """True if the account belongs to the required organization, if one is required."""
        return self.required_organization is None or account.subject.organization.id == self.required_organization.id

    @cached_property
    def selectable_accounts(self) -> tuple[SignedInAccount, ...]:
        """The live sessions that could answer, after what the client's hints leave over."""
        live = tuple(
            account for account in self.accounts if self.is_live(account) and self.matches_organization(account)
        )
        if self.request is None:
            return live
        if self.request.required_subject_id is not None:
            return tuple(account for account in live if account.subject.user.id == self.request.required_subject_id)
        hinted = tuple(account for account in live if matches_login_hint(account.subject, self.request.login_hint))
        # A hint that fits nobody here means somebody who has yet to sign in.
        return hinted if self.request.login_hint and "select_account" not in self.prompts else live

    @cached_property
    def selected_account(self) -> SignedInAccount | None:
        """The session that will answer: the one chosen on a page, or the only one there is."""
        if self.authenticated_subject is not None:
            return None
        if self.pending is not None and self.pending.session_id is not None:
            return next(
                (
                    account
                    for account in self.accounts
                    if account.session.id == self.pending.session_id and self.is_live(account)
                ),
                None,
            )
        if self.has_completed("select_account") or self.has_completed("create"):
            return None
        return self.selectable_accounts[0] if len(self.selectable_accounts) == 1 else None

    @cached_property
    def step_up_requirement(self) -> StepUpRequirement | None:
        """What the person has yet to prove, beside who they are. Raises UnmetAuthenticationRequirements."""
        return self.step_up_checker(self)

    @cached_property
    def consent_summary(self) -> ConsentSummary:
        """What the answer would bring, once somebody is there. Raises OAuthError for what stands against it."""
        return self.consent_summary_builder(self)

    def is_fresh(self, account: SignedInAccount) -> bool:
        """True unless who they are is to be proved again (prompt=login, max_age), or was proved by what may not be used
        any more."""
        if not self.is_allowed_session(account):
            return False
        if self.has_completed("login"):
            return True
        if "login" in self.prompts:
            return False
        max_age, proved_at = self.max_age, account.session.last_proof_at
        return max_age is None or (proved_at is not None and self.now - proved_at < max_age)

    @property
    def requires_dated_proof(self) -> bool:
        """True if a proof counts alone of which it is known when it was given (prompt=login, max_age)."""
        return self.max_age is not None or "login" in self.prompts


def matches_login_hint(subject: Subject, login_name: str) -> bool:
    """True if the text names the subject, who is signed in here, however spelt: by login name, by bare user name, or by
    an email address of theirs that is verified."""
    if LoginName.parse(login_name).comparison_key in (
        LoginName.parse(subject.login_name).comparison_key,
        name_key(subject.user.user_name),
    ):
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
    runs_after_authentication: ClassVar[bool] = False
    #: What that error says.
    error_description: ClassVar[str] = "The user has to act on a page."

    @abstractmethod
    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True if the page has to be shown before the answer. Raises an OAuthError to end the request with it."""

    @abstractmethod
    def path(self, sign_in: SignIn) -> str:
        """Where the page lies below ``/login/{request}``; empty for that very address."""


def next_interaction(interactions: Iterable[Interaction], sign_in: SignIn, context: Context) -> Interaction | None:
    """The interaction whose page comes next; None if nothing stands before the answer.

    Raises OAuthError; TypeError for an interaction that says neither True nor False: nobody gets past it.
    """
    for interaction in interactions:
        required: object = interaction.is_required(sign_in, context)
        if not isinstance(required, bool):
            raise TypeError(f"the interaction {interaction.name} answered with {hook_type_error_text(required)}")
        if required:
            return interaction
    return None
