"""Policies: the rules of signing in that hold for somebody, and who set them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from identity.domain.attempts import FREE_ATTEMPTS, MOST_ATTEMPTS
from identity.domain.authentication import PASSWORD, REMEMBERED, TWO_FACTORS, Proof, reaches
from identity.domain.errors import Conflict, Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Level
from identity.domain.policies import (
    ASKED_ONCE,
    ConsentDefault,
    HeldRule,
    Policy,
    RegistrationRule,
    SecondFactor,
    Source,
    looser,
    overridden,
    own_rules,
    policy_of,
    stored_policy,
    tightest,
)
from identity.domain.records import Record
from identity.domain.users import HumanUser, Subject
from identity.domain.words import say
from identity.services.audit import differences
from identity.services.changes import TransactionState, UseCases
from identity.services.choices import Choices
from identity.services.commands.policies import ChangePolicy
from identity.services.holders import Holders
from identity.services.records import Records
from identity.settings import Settings

#: Under which the rules of the instance are kept.
INSTANCE = "instance"

_KIND = "policy"
_NOBODY = say(
    "Nobody could sign in by these rules. Leave a way that this service offers, and a second factor if one is needed."
)
_CHANGED = say("This was changed by somebody else meanwhile. Read it again, then repeat.")
#: How long a process keeps what it has read, though its version has not moved: during an upgrade it may be a program of
#: the release before that changes rules, and moves none.
_FRESH = timedelta(seconds=5)
_MOST_KEPT = 10_000


@dataclass
class PolicyCache:
    """What holds where by a version of the rules, as a process has found it lately.

    The version is read with every subject, so a change holds in all processes from its commit on.
    """

    read: dict[str, tuple[int, datetime, Policy]] = field(default_factory=dict)

    def find(self, owner: str, version: int, now: datetime) -> Policy | None:
        """What was found at this version, a few seconds ago at most."""
        at_version, at, policy = self.read.get(owner, (None, now, None))
        return policy if at_version == version and abs(now - at) < _FRESH else None

    def keep(self, owner: str, policy: Policy, version: int, now: datetime) -> None:
        """Keep what is committed, and was read after this version."""
        if len(self.read) >= _MOST_KEPT:
            self.read.clear()
        self.read[owner] = (version, now, policy)


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """The rules that one level sets itself, with the version to change them by; 0 where it sets none.

    ``marks`` tell of each rule when it was set, and the id of whoever did.
    """

    policy: Policy
    version: int
    changed_at: datetime | None
    marks: Mapping[str, tuple[datetime, str | None]] = field(default_factory=dict)


class Policies(UseCases):
    """The instance's rules take the place of what the ini file says. An organization's can only be tighter.

    Of an organization's rules those who hold a role at the instance get ``second_factor`` and ``consent``; the rest is
    the instance's for them, so that no manager of their organization shuts them out.
    """

    def __init__(
        self,
        state: TransactionState,
        settings: Settings,
        choices: Choices,
        holders: Holders,
        policy_cache: PolicyCache,
        records: Records,
    ) -> None:
        super().__init__(state)
        self._settings, self._choices, self._holders = settings, choices, holders
        self._policy_cache, self._records = policy_cache, records
        self._changed = False
        self._is_supposed = False
        self._version: int | None = None
        # Asked several times by one request.
        self._held: dict[str, Policy] = {}

    @property
    def default(self) -> Policy:
        """What the ini file says."""
        settings = self._settings
        return Policy(
            second_factor=settings.second_factor,
            remember_browser=0,
            sign_in_by_email=True,
            registration=RegistrationRule.ALLOWED,
            registration_verified=False,
            account_deletion=False,
            password_min_length=settings.password_min_length,
            password_strength=0,
            password_change_after_reset=True,
            session_idle_age=settings.session_idle_age,
            session_max_age=settings.session_max_age,
            single_session=False,
            free_attempts=FREE_ATTEMPTS,
            most_attempts=MOST_ATTEMPTS,
            consent=ConsentDefault.WHEN_FOREIGN,
        )

    def of(self, organization_id: str) -> Policy:
        """What holds for people of the organization who hold no role at the instance; ``of_subject`` knows the rest."""
        return self._at(organization_id, lambda: self._read_organization(organization_id))

    def of_instance(self) -> Policy:
        """What holds where no organization says more."""
        return self._at(INSTANCE, self._read_instance)

    def _read_organization(self, organization_id: str) -> Policy:
        above = self._held[INSTANCE] if self._is_supposed else self._read_instance()
        return self._together(above, self.set_at(organization_id).policy)

    def _at(self, owner: str, read: Callable[[], Policy]) -> Policy:
        held = self._held.get(owner)
        if held is not None:
            return held
        # What was changed here is not committed yet, and may never be.
        is_read = self._changed or self._is_supposed
        held = read() if is_read else self._kept(owner) or self._read_and_keep(owner, read)
        self._held[owner] = held
        return held

    def _kept(self, owner: str) -> Policy | None:
        if self._version is None:
            with self._look() as storage:
                self._version = storage.organizations.rules_version()
        return None if self._version is None else self._policy_cache.find(owner, self._version, self._now)

    def _read_and_keep(self, owner: str, read: Callable[[], Policy]) -> Policy:
        # Where the rules are read, and before: what is kept is never older than its version.
        with self._look() as storage:
            version = storage.organizations.rules_version()
        held = read()
        if version is not None:
            self._policy_cache.keep(owner, held, version, self._now)
        return held

    def of_subject(self, subject: Subject) -> Policy:
        """What holds for this person. Nothing is asked where the organization says nothing of its own, nor whether the
        rules have changed where that was read with the person."""
        if self._version is None:
            self._version = subject.rules_version
        usual, above = self.of(subject.organization.id), self.of_instance()
        if usual == above or not self._holders.is_one(subject.user.id):
            return usual
        held = replace(above, second_factor=usual.second_factor, consent=usual.consent)
        return held if self._can_be_met_by(subject, held) else replace(above, consent=usual.consent)

    def second_factor_can_be_met(self, subject: Subject) -> bool:
        """True if the person has, or could set up, what their rules ask for."""
        return self._can_be_met_by(subject, self.of_subject(subject))

    def _can_be_met_by(self, subject: Subject, policy: Policy) -> bool:
        user = subject.user
        reads_mail = isinstance(user, HumanUser) and self._holders.may_be_mailed(user) and user.profile.email_verified
        # Managers of the organization decide over most providers there, and nobody sets one up while signing in.
        return self._can_be_met(policy, elsewhere=not self._holders.is_one(user.id), mail=reads_mail)

    def about(self, whose: Subject | Organization) -> Policy:
        """What holds for this person, or for somebody who is new in the organization."""
        return self.of_subject(whose) if isinstance(whose, Subject) else self.of(whose.id)

    def set_aside(self, organization_id: str) -> tuple[str, ...]:
        """The rules of an organization, by name, that do not hold because together with the instance's nobody could
        sign in: there the instance's holds."""
        own = self.set_at(organization_id).policy
        above = self.of_instance()
        wanted, held = tightest(above, own), self._together(above, own)
        return tuple(one.name for one in fields(Policy) if getattr(wanted, one.name) != getattr(held, one.name))

    def can_be_met(self, owner: str) -> bool:
        """True if the rules that hold at the instance or an organization leave a way to sign in."""
        return self._can_be_met(self.of_instance() if owner == INSTANCE else self.of(owner))

    def suppose(self, organization_id: str, policy: Policy) -> None:
        """Go on as if the organization had set these rules, for these services alone; nothing is stored."""
        self._held[organization_id] = self.held_with(organization_id, policy)

    @contextmanager
    def supposing(self, owner: str, policy: Policy) -> Iterator[None]:
        """Go on as if the instance or an organization had set these rules, until the block ends."""
        held, self._held = self._held, {owner: self.held_with(owner, policy)}
        self._is_supposed = owner == INSTANCE
        try:
            yield
        finally:
            self._held, self._is_supposed = held, False

    def held_with(self, owner: str, policy: Policy) -> Policy:
        """What would hold at the instance or an organization if it set these rules."""
        return overridden(self.default, policy) if owner == INSTANCE else self._together(self.of_instance(), policy)

    def set_at(self, owner: str) -> SetPolicy:
        """What the instance or an organization sets itself, as stored right now."""
        found = self._records.find(_KIND, owner)
        if found is None:
            return SetPolicy(Policy(), 0, None)
        marks = {name: (datetime.fromtimestamp(at, UTC), by) for name, (at, by) in found.value["marks"].items()}
        changed_at = datetime.fromtimestamp(found.value["at"], UTC)
        return SetPolicy(policy_of(found.value["policy"]), found.version, changed_at, marks)

    def rules(self, owner: str) -> tuple[HeldRule, ...]:
        """Each rule as it holds at the instance or an organization, and who set it."""
        here, above = self.set_at(owner), self.set_at(INSTANCE)
        base = self.default if owner == INSTANCE else self.of_instance()
        held, bare = self.held_with(owner, here.policy), self.held_with(owner, Policy())
        level = Source.INSTANCE if owner == INSTANCE else Source.ORGANIZATION
        found = []
        for name in (one.name for one in fields(Policy)):
            own, value = getattr(here.policy, name), getattr(held, name)
            if own is not None and (value == own or value != getattr(base, name)):
                source, (at, by) = level, here.marks.get(name, (None, None))
            elif owner != INSTANCE and name in own_rules(above.policy):
                source, (at, by) = Source.INSTANCE, above.marks.get(name, (None, None))
            else:
                source, at, by = Source.SETTINGS, None, None
            rule = HeldRule(
                name=name, value=value, own=own, above=getattr(bare, name), source=source, set_at=at, set_by=by
            )
            found.append(rule)
        return tuple(found)

    def amended(self, owner: str, command: ChangePolicy) -> Policy:
        """The rules that the level sets itself, with what the command changes of them; nothing is stored.

        Raises Invalid for a rule of an organization that allows more than the instance does.
        """
        policy = command.amended(self.set_at(owner).policy)
        self._refuse(owner, policy, changed=command.model_fields_set)
        return policy

    def change(self, owner: str, command: ChangePolicy, *, version: int | None = None) -> SetPolicy:
        """Have these rules hold from now on. ``owner`` is INSTANCE or the id of an organization.

        Raises Invalid for a rule of an organization that allows more than the instance does, and for ways to sign in
        that nobody offers; Conflict if the rules are not of this version any more.
        """
        before, found = self.set_at(owner), self._records.find(_KIND, owner)
        if version is not None and version != before.version:
            raise Conflict(_CHANGED)
        policy = self.amended(owner, command)
        if policy == before.policy:
            return before
        now, by = int(self._now.timestamp()), self._audit.actor.id
        different = [
            one.name for one in fields(Policy) if getattr(policy, one.name) != getattr(before.policy, one.name)
        ]
        marks = {name: [int(at.timestamp()), whose] for name, (at, whose) in before.marks.items()}
        marks |= {name: [now, by] for name in different}
        self._store(owner, found, {"policy": stored_policy(policy), "at": now, "marks": marks})
        self._audit.record(
            "policy.changed",
            kind="instance" if owner == INSTANCE else "organization",
            id=owner,
            organization_id=None if owner == INSTANCE else owner,
            detail=differences(before.policy, policy),
        )
        return self.set_at(owner)

    def forget(self, organization_id: str) -> None:
        """Drop what an organization that is gone had set."""
        self._move()
        self._records.drop(_KIND, organization_id)

    def asks_second_factor(self, subject: Subject) -> bool:
        """True if the person has to prove who they are by a second factor."""
        rule = self.of_subject(subject).second_factor
        if rule in (SecondFactor.REQUIRED_FOR_IAM, SecondFactor.REQUIRED_FOR_MANAGERS):
            with self._look() as storage:
                held = storage.managers.of_user(subject.user.id)
            return any(
                rule is SecondFactor.REQUIRED_FOR_MANAGERS or one.resource.level is Level.INSTANCE for one in held
            )
        return rule is SecondFactor.REQUIRED

    def make_way(self, subject: Subject, can_prove: Callable[[Policy], bool]) -> tuple[str, ...]:
        """Take back what keeps somebody out who has nothing but a password; returns the names of the rules.

        ``can_prove`` tells whether they have or could set up a second factor under a policy. It is for the operator:
        rules of the instance go, and those of the person's organization.
        """
        gone: list[str] = []

        def take_back(name: str, stands: Callable[[Policy], bool]) -> None:
            for owner in (INSTANCE, subject.organization.id):
                if stands(self.of_subject(subject)) and name in own_rules(self.set_at(owner).policy):
                    self.change(owner, ChangePolicy.of(**{name: None}))
                    gone.append(name)

        take_back("factors", lambda held: held.factors is not None and PASSWORD not in held.factors)
        take_back("second_factor", lambda held: self.asks_second_factor(subject) and not can_prove(held))
        return tuple(dict.fromkeys(gone))

    def lacks_factor(self, subject: Subject, methods: Iterable[str]) -> bool:
        """True if the methods by which a person proved to be it are not enough, by what holds for them now."""
        if not isinstance(subject.user, HumanUser):
            return False
        policy = self.of_subject(subject)
        if policy.second_factor in ASKED_ONCE:
            return False
        known = frozenset(methods)
        if reaches(known, TWO_FACTORS) or (REMEMBERED in known and policy.remember_browser):
            return False
        return self.asks_second_factor(subject)

    def allow(self, whose: Subject | Organization, factor: str) -> bool:
        """True if the person, or people of the organization, may use this factor, such as a password."""
        return _allows(self.about(whose), factor)

    def allow_at_instance(self, factor: str) -> bool:
        """True if the instance lets people use this factor."""
        return _allows(self.of_instance(), factor)

    def counting(self, subject: Subject, proofs: Iterable[Proof]) -> tuple[Proof, ...]:
        """Those of the proofs whose factor may be used; of none, if that by which it began may not be."""
        allowed = self.of_subject(subject).factors
        if allowed is None:
            return tuple(proofs)
        kept = tuple(one for one in proofs if one.factor in (*allowed, REMEMBERED))
        first = next(iter(proofs), None)
        return kept if first is not None and first in kept else ()

    def _refuse(self, owner: str, policy: Policy, *, changed: Collection[str]) -> None:
        """Raise Invalid if the level may not set these rules. What it had set before stays, if it is not changed."""
        said: dict[str, str] = {}
        if owner != INSTANCE:
            loose = looser(self.of_instance(), policy)
            said = {name: say("The instance does not allow that much.") for name in loose if name in changed}
        factors = policy.factors or ()
        unknown = [one for one in factors if one not in self._choices.ways]
        if "factors" in changed and unknown:
            said["factors"] = say("Choose from {names}.", names=", ".join(self._choices.ways))
        asked = [name for name in ("factors", "second_factor") if name in changed]
        if asked and not said:
            held = overridden(self.default, policy) if owner == INSTANCE else tightest(self.of_instance(), policy)
            if not self._can_be_met(held, elsewhere=self._trusts_elsewhere(owner)):
                said[asked[0]] = _NOBODY
        if said:
            raise Invalid(said)

    def _together(self, above: Policy, own: Policy) -> Policy:
        """What holds where both do. What nobody could meet is left to the instance: its ways first, then its second
        factor."""
        held = tightest(above, own)
        for one in (held, replace(held, factors=above.factors), replace(held, second_factor=above.second_factor)):
            if self._can_be_met(one):
                return one
        return replace(held, factors=above.factors, second_factor=above.second_factor)

    def _can_be_met(self, policy: Policy, *, elsewhere: bool = True, mail: bool = True) -> bool:
        """True if somebody could sign in by these rules, with what plugins offer here.

        ``elsewhere`` tells whether what others say of second factors counts, ``mail`` whether codes can be mailed.
        """
        choices = self._choices
        second = choices.second if mail else choices.second - choices.by_mail
        alone = choices.alone & second if policy.second_factor is not SecondFactor.OFF else frozenset()
        if not any(_allows(policy, one) for one in (PASSWORD, *choices.elsewhere, *alone)):
            return False
        if policy.second_factor in ASKED_ONCE:
            return True
        return any(_allows(policy, one) for one in (*second, *(choices.elsewhere if elsewhere else ())))

    def _trusts_elsewhere(self, owner: str) -> bool:
        """True if what a provider says of second factors is believed of people of the organization, or of all."""
        with self._look() as storage:
            offered = storage.upstream_providers.offered(None if owner == INSTANCE else owner)
        return any(one.usable and one.trust_methods for one in offered)

    def _store(self, owner: str, found: Record | None, value: Mapping[str, object]) -> None:
        self._move()
        if found is not None:
            self._records.replace(found, value)
        elif self._records.add(_KIND, owner, value) is not None:
            raise Conflict(_CHANGED)

    def _move(self) -> None:
        self._changed = True
        self._held.clear()
        self._storage.organizations.move_rules_version()

    def _read_instance(self) -> Policy:
        return overridden(self.default, self.set_at(INSTANCE).policy)


def _allows(policy: Policy, factor: str) -> bool:
    return policy.factors is None or factor in policy.factors
