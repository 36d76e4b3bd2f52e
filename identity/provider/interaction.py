"""Interaction: a page between an authorization request and its response; SignIn: the state that it depends on."""

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


@dataclass(frozen=True, slots=True)
class StepUpRequirement:
    """What the user must still prove: a class of ACR_VALUES, required by the client or the policy. ``factors`` are the
    user's factors that can prove it. If there are none, ``enrollable_factors`` are those that the user can enrol for
    it."""

    acr: str
    is_client_request: bool
    factors: tuple[str, ...] = ()
    enrollable_factors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsentSummary:
    """What the application would get about the user. ``consent`` are the scopes to agree to; ``needs_consent`` unless a
    stored consent covers them."""

    authorization: Authorization
    granted: GrantedScopes
    consent: GrantedScopes
    needs_consent: bool


def _no_offer(sign_in: "SignIn") -> ConsentSummary:
    raise ValueError("nobody is there, or nothing was asked for")


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """A sign-in in progress: the request, the browser's sessions and the completed steps.

    ``request`` is None for the service's own pages. ``accounts`` are the browser's sessions, last selected first,
    including expired ones. ``pending`` is the stored row, None as long as no page was needed.
    ``authenticated_subject`` has authenticated here and is not signed in yet. Only members of
    ``required_organization`` may continue."""

    #: The demand of a service's own page for the enrolment of a factor, and the interaction that handles it.
    ENROL_PARAMETER: ClassVar[str] = "enrol"

    request: AuthorizationRequest | None
    accounts: tuple[SignedInAccount, ...]
    now: datetime
    #: True for a session that has not ended.
    is_live: Callable[[SignedInAccount], bool]
    pending: PendingAuthorization | None = None
    authenticated_subject: Subject | None = None
    required_organization: Organization | None = None
    browser_state: BrowserState = NO_BROWSER_STATE
    step_up_checker: Callable[["SignIn"], StepUpRequirement | None] = lambda sign_in: None
    full_authentication_checker: Callable[["SignIn"], bool] = lambda sign_in: False
    #: True for a session that began with an allowed factor.
    is_allowed_session: Callable[[SignedInAccount], bool] = lambda account: True
    consent_summary_builder: Callable[["SignIn"], ConsentSummary] = _no_offer

    @property
    def own_page_requirements(self) -> Mapping[str, str]:
        """The requirements of the service's own pages: ``max_age`` in seconds, ``acr``, and a factor to ``enrol``."""
        is_own_page = self.pending is not None and self.pending.target is not None
        return self.pending.parameters if is_own_page and self.pending is not None else {}

    @property
    def client(self) -> ApplicationClient | None:
        """The application that asks; None for the service's own pages."""
        return None if self.request is None else self.request.client

    @property
    def effective_organization(self) -> Organization | None:
        """The organization of the scope, else of the application; None on the service's own pages and for a dynamic
        client."""
        return self.required_organization or (None if self.client is None else self.client.responsible_organization)

    @property
    def login_name(self) -> LoginName | None:
        """The typed or hinted login name."""
        typed = "" if self.pending is None else self.pending.login_name
        return LoginName.parse(typed, self.effective_organization) if typed else None

    @property
    def impersonated_account(self) -> SignedInAccount | None:
        """The session in which a manager is signed in as a person at this browser; None without one."""
        return next((account for account in self.accounts if account.session.is_impersonated), None)

    @property
    def prompts(self) -> frozenset[str]:
        """The prompts that the client requests (OpenID Connect Core §3.1.2.1, and create)."""
        return frozenset() if self.request is None else self.request.prompts

    @property
    def max_age(self) -> timedelta | None:
        """The maximum age of the authentication; None for any."""
        if self.request is not None:
            return self.request.max_age
        seconds = self.own_page_requirements.get("max_age")
        return None if seconds is None else timedelta(seconds=int(seconds))

    @property
    def subject(self) -> Subject | None:
        """The user of the response: the one who has just authenticated, or whose session was selected."""
        if self.authenticated_subject is not None or self.selected_account is None:
            return self.authenticated_subject
        return self.selected_account.subject

    def has_completed(self, interaction: str) -> bool:
        """True if this interaction was completed in this sign-in."""
        return self.pending is not None and interaction in self.pending.done

    def matches_organization(self, account: SignedInAccount) -> bool:
        """True if the account belongs to the required organization, if one is required."""
        return self.required_organization is None or account.subject.organization.id == self.required_organization.id

    def matches_hint(self, account: SignedInAccount) -> bool:
        hint = "" if self.request is None else self.request.login_hint
        return bool(hint) and _matches_login_hint(account.subject, hint)

    @cached_property
    def selectable_accounts(self) -> tuple[SignedInAccount, ...]:
        """The live sessions that the client's hints allow."""
        live = tuple(
            account for account in self.accounts if self.is_live(account) and self.matches_organization(account)
        )
        if self.request is None:
            return live
        is_required = self.request.is_required_user
        if is_required is not None:
            return tuple(account for account in live if is_required(account.subject.user.id))
        hinted = tuple(account for account in live if self.matches_hint(account))
        # A hint that matches no session means a user who must sign in first.
        return hinted if self.request.login_hint and "select_account" not in self.prompts else live

    @cached_property
    def selected_account(self) -> SignedInAccount | None:
        """The session for the response: the one selected on a page, or the only one."""
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
        """What the user still has to prove besides the identity. Raises UnmetAuthenticationRequirements."""
        return self.step_up_checker(self)

    @cached_property
    def is_fully_authenticated(self) -> bool:
        """True if the user has authenticated in this sign-in, and has set up nothing that would prove more; required
        for adding a factor. Raises UnmetAuthenticationRequirements."""
        return self.full_authentication_checker(self)

    @cached_property
    def consent_summary(self) -> ConsentSummary:
        """What the response would contain, once there is a user. Raises OAuthError if the request would be refused."""
        return self.consent_summary_builder(self)

    def is_fresh(self, account: SignedInAccount) -> bool:
        """False if the user must authenticate again (prompt=login, max_age), or used a factor that is no longer
        allowed."""
        if not self.is_allowed_session(account):
            return False
        if self.has_completed("login"):
            return True
        if "login" in self.prompts:
            return False
        # Nothing was proved in an impersonated session.
        proved_at = None if account.session.is_impersonated else account.session.last_proof_at
        max_age = self.max_age
        return max_age is None or (proved_at is not None and self.now - proved_at < max_age)

    @property
    def requires_dated_proof(self) -> bool:
        """True if only proofs with a known time count (prompt=login, max_age)."""
        return self.max_age is not None or "login" in self.prompts


def _matches_login_hint(subject: Subject, login_name: str) -> bool:
    """True if the text is any spelling of a login name, bare user name or verified email address of the subject."""
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
    """A page by name, stateless. ``error`` is the client's error if no page is allowed (prompt=none)."""

    #: The names of the interactions for consent (prompt=consent, OpenID Connect Core §3.1.2.1) and for a further
    #: factor.
    CONSENT: ClassVar[str] = "consent"
    FACTOR: ClassVar[str] = "factor"

    name: ClassVar[str]
    error: ClassVar[type[OAuthError]] = InteractionRequired
    #: True if it runs after all other interactions, whatever the order of plugins.
    runs_after_authentication: ClassVar[bool] = False
    #: The description of that error.
    error_description: ClassVar[str] = "The user has to act on a page."

    @abstractmethod
    def is_required(self, sign_in: SignIn, context: Context) -> bool:
        """True if the page must be shown before the response. Raises an OAuthError to end the request."""

    @abstractmethod
    def path(self, sign_in: SignIn) -> str:
        """The page's path below ``/login/{request}``; empty for that path itself."""


def next_interaction(interactions: Iterable[Interaction], sign_in: SignIn, context: Context) -> Interaction | None:
    """The interaction whose page comes next; None if nothing precedes the response. Raises OAuthError; TypeError for an
    interaction that returns no bool, so that it cannot be bypassed."""
    for interaction in interactions:
        required: object = interaction.is_required(sign_in, context)
        if not isinstance(required, bool):
            raise TypeError(f"the interaction {interaction.name} answered with {hook_type_error_text(required)}")
        if required:
            return interaction
    return None
