"""Sign-in policies: which rules apply to whom, and who set them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta

from identity.domain.attempts import FREE_ATTEMPTS, MAX_ATTEMPTS
from identity.domain.authentication import Acr, Proof, satisfies_acr
from identity.domain.errors import Conflict, Invalid
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel
from identity.domain.policies import (
    SIGN_IN_ONLY_RULES,
    ConsentDefault,
    EffectiveRule,
    Policy,
    PolicySource,
    RegistrationRule,
    SecondFactorRule,
    defined_rules,
    looser_rules,
    merge_policies,
    policy_from_json,
    policy_to_json,
    strictest_policy,
)
from identity.domain.records import Record
from identity.domain.users import HumanUser, Subject
from identity.services.audit import diff_fields
from identity.services.base import CHANGED_MEANWHILE, Service, refuse_stale
from identity.services.capabilities import Capabilities
from identity.services.commands.policies import ChangePolicy
from identity.services.instance_managers import InstanceManagerService
from identity.services.records import RecordService

#: Owner id of the instance's policy.
INSTANCE_OWNER_ID = "instance"

_KIND = "policy"
_NOBODY = gettext_lazy(
    "These rules would lock everyone out. Leave at least one sign-in method that this "
    "service offers, and a second factor if one is required."
)
#: How long a process caches a policy even if its version has not changed: during an upgrade, the previous release may
#: change policies without increasing the version.
_FRESH = timedelta(seconds=5)
_MOST_KEPT = 10_000


@dataclass
class PolicyCache:
    """Effective policies by version, per process. The version is read with every subject, so a change takes effect in
    all processes at its commit."""

    entries: dict[str, tuple[int, datetime, Policy]] = field(default_factory=dict)

    def find(self, owner: str, version: int, now: datetime) -> Policy | None:
        """The policy cached for this version, at most a few seconds old."""
        at_version, at, policy = self.entries.get(owner, (None, now, None))
        return policy if at_version == version and abs(now - at) < _FRESH else None

    def store(self, owner: str, policy: Policy, version: int, now: datetime) -> None:
        """Cache a committed policy that was read after this version."""
        if len(self.entries) >= _MOST_KEPT:
            self.entries.clear()
        self.entries[owner] = (version, now, policy)


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """The rules that one level sets itself, and their version; 0 if it sets none. ``rule_authorship`` says for each
    rule when it was set and by which user id."""

    policy: Policy
    version: int
    changed_at: datetime | None
    rule_authorship: Mapping[str, tuple[datetime, str | None]] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class PolicyService(Service):
    """Rules of the instance replace those of the ini file. Rules of an organization can only be stricter. Users with a
    role at the instance get only ``second_factor`` and ``consent`` from their organization; the rest comes from the
    instance, so that no manager of their organization can lock them out."""

    _choices: Capabilities
    _holders: InstanceManagerService
    _policy_cache: PolicyCache
    _records: RecordService
    _can_send_mail: Callable[[], bool]
    _changed: bool = field(default=False, init=False)
    _is_supposed: bool = field(default=False, init=False)
    _version: int | None = field(default=None, init=False)
    #: One request asks for them several times.
    _effective_policies: dict[str, Policy] = field(default_factory=dict, init=False)

    @property
    def configured_policy(self) -> Policy:
        settings = self._settings
        return Policy(
            second_factor=settings.second_factor,
            remember_browser=0,
            sign_in_by_email=True,
            registration=RegistrationRule.ALLOWED,
            registration_verified=False,
            account_deletion=False,
            passkey_upgrade=False,
            password_min_length=settings.password_min_length,
            password_strength=0,
            password_change_after_reset=True,
            session_idle_age=settings.session_idle_timeout,
            session_max_age=settings.session_max_age,
            single_session=False,
            free_attempts=FREE_ATTEMPTS,
            most_attempts=MAX_ATTEMPTS,
            consent=ConsentDefault.WHEN_FOREIGN,
        )

    def organization_policy(self, organization_id: str) -> Policy:
        """The policy for people of the organization without a role at the instance; ``subject_policy`` covers all."""
        return self._at(organization_id, lambda: self._read_organization(organization_id))

    def instance_policy(self) -> Policy:
        """The policy where no organization is stricter."""
        return self._at(INSTANCE_OWNER_ID, self._read_instance)

    def _read_organization(self, organization_id: str) -> Policy:
        above = self._effective_policies[INSTANCE_OWNER_ID] if self._is_supposed else self._read_instance()
        return self._combine_policies(above, self.get_stored_policy(organization_id).policy)

    def _at(self, owner: str, read: Callable[[], Policy]) -> Policy:
        policy = self._effective_policies.get(owner)
        if policy is not None:
            return policy
        # Uncommitted changes must not be cached: they may be rolled back.
        is_read = self._changed or self._is_supposed
        policy = read() if is_read else self._load_policy(owner) or self._read_and_keep(owner, read)
        self._effective_policies[owner] = policy
        return policy

    def _load_policy(self, owner: str) -> Policy | None:
        if self._version is None:
            with self._look() as storage:
                self._version = storage.organizations.get_rules_version()
        return None if self._version is None else self._policy_cache.find(owner, self._version, self._now)

    def _read_and_keep(self, owner: str, read: Callable[[], Policy]) -> Policy:
        # In the same read session and before the policy: a cached policy is never older than its version.
        with self._look() as storage:
            version = storage.organizations.get_rules_version()
        policy = read()
        if version is not None:
            self._policy_cache.store(owner, policy, version, self._now)
        return policy

    def subject_policy(self, subject: Subject) -> Policy:
        """The policy for this person. Reads nothing if the organization sets no rules and the version came with the
        person."""
        if self._version is None:
            self._version = subject.rules_version
        usual, above = self.organization_policy(subject.organization.id), self.instance_policy()
        if usual == above or not self._holders.is_instance_manager(subject.user.id):
            return usual
        policy = replace(above, second_factor=usual.second_factor, consent=usual.consent)
        return policy if self._can_be_met_by(subject, policy) else replace(above, consent=usual.consent)

    def can_meet_second_factor(self, subject: Subject) -> bool:
        """True if the person has or could set up a second factor that their policy accepts."""
        return self._can_be_met_by(subject, self.subject_policy(subject))

    def _can_be_met_by(self, subject: Subject, policy: Policy) -> bool:
        user = subject.user
        reads_mail = (
            isinstance(user, HumanUser) and self._holders.is_address_trusted(user) and user.profile.email_verified
        )
        # Managers of the organization control most of its providers, and no account is linked during sign-in.
        return self._can_be_met(policy, trusts_upstream=not self._holders.is_instance_manager(user.id), mail=reads_mail)

    def effective_policy(self, owner: Subject | Organization) -> Policy:
        """The policy for this person, or for new people in the organization."""
        return self.subject_policy(owner) if isinstance(owner, Subject) else self.organization_policy(owner.id)

    def list_ignored_rules(self, organization_id: str) -> tuple[str, ...]:
        """Names of the organization's rules that are ignored because no user could sign in if they were combined
        with the instance's: the instance's apply."""
        policy = self.get_stored_policy(organization_id).policy
        above = self.instance_policy()
        strictest, combined = strictest_policy(above, policy), self._combine_policies(above, policy)
        return tuple(
            field.name for field in fields(Policy) if getattr(strictest, field.name) != getattr(combined, field.name)
        )

    def is_satisfiable(self, owner: str) -> bool:
        """True if a user can sign in under the effective policy of the instance or an organization."""
        return self._can_be_met(
            self.instance_policy() if owner == INSTANCE_OWNER_ID else self.organization_policy(owner)
        )

    def override_policy(self, organization_id: str, policy: Policy) -> None:
        """Use these rules for the organization in this unit of work only; nothing is stored."""
        self._effective_policies[organization_id] = self.preview_policy(organization_id, policy)

    @contextmanager
    def overridden_policy(self, owner: str, policy: Policy) -> Iterator[None]:
        """Use these rules for the instance or an organization within the block."""
        saved, self._effective_policies = self._effective_policies, {owner: self.preview_policy(owner, policy)}
        self._is_supposed = owner == INSTANCE_OWNER_ID
        try:
            yield
        finally:
            self._effective_policies, self._is_supposed = saved, False

    def preview_policy(self, owner: str, policy: Policy) -> Policy:
        """The effective policy of the instance or an organization if it set these rules."""
        if owner == INSTANCE_OWNER_ID:
            return merge_policies(self.configured_policy, policy)
        return self._combine_policies(self.instance_policy(), policy)

    def get_stored_policy(self, owner: str) -> StoredPolicy:
        """The rules that the instance or an organization sets itself, read from the storage."""
        record = self._records.find(_KIND, owner)
        if record is None:
            return StoredPolicy(Policy(), 0, None)
        marks = {
            name: (datetime.fromtimestamp(at, UTC), author) for name, (at, author) in record.value["marks"].items()
        }
        changed_at = datetime.fromtimestamp(record.value["at"], UTC)
        return StoredPolicy(policy_from_json(record.value["policy"]), record.version, changed_at, marks)

    def list_effective_rules(self, owner: str) -> tuple[EffectiveRule, ...]:
        """Each rule in effect at the instance or an organization, and who set it."""
        stored_policy, above = self.get_stored_policy(owner), self.get_stored_policy(INSTANCE_OWNER_ID)
        base = self.configured_policy if owner == INSTANCE_OWNER_ID else self.instance_policy()
        policy, bare = self.preview_policy(owner, stored_policy.policy), self.preview_policy(owner, Policy())
        level = PolicySource.INSTANCE if owner == INSTANCE_OWNER_ID else PolicySource.ORGANIZATION
        effective_rules = []
        for name in (rule.name for rule in fields(Policy)):
            own_value, value = getattr(stored_policy.policy, name), getattr(policy, name)
            if own_value is not None and (value == own_value or value != getattr(base, name)):
                source, (at, author) = level, stored_policy.rule_authorship.get(name, (None, None))
            elif owner != INSTANCE_OWNER_ID and name in defined_rules(above.policy):
                source, (at, author) = PolicySource.INSTANCE, above.rule_authorship.get(name, (None, None))
            else:
                source, at, author = PolicySource.SETTINGS, None, None
            rule = EffectiveRule(
                name=name,
                value=value,
                own_value=own_value,
                inherited_value=getattr(bare, name),
                source=source,
                changed_at=at,
                changed_by=author,
            )
            effective_rules.append(rule)
        return tuple(effective_rules)

    def amend_policy(self, owner: str, command: ChangePolicy) -> Policy:
        """The level's rules with the command's changes; nothing is stored. Raises Invalid if a rule of an organization
        allows more than the instance does."""
        policy = command.apply_to(self.get_stored_policy(owner).policy)
        self._refuse(owner, policy, changed=command.model_fields_set)
        return policy

    def change(self, owner: str, command: ChangePolicy, *, version: int | None = None) -> StoredPolicy:
        """Set rules. ``owner`` is INSTANCE or the id of an organization. Raises Invalid if a rule of an organization
        allows more than the instance does or a sign-in method is unknown; Conflict if the rules no longer have this
        version."""
        before, record = self.get_stored_policy(owner), self._records.find(_KIND, owner)
        refuse_stale(before.version, version)
        policy = self.amend_policy(owner, command)
        if policy == before.policy:
            return before
        now, actor_id = int(self._now.timestamp()), self._audit.actor.id
        different = [
            field.name for field in fields(Policy) if getattr(policy, field.name) != getattr(before.policy, field.name)
        ]
        marks = {name: [int(at.timestamp()), author] for name, (at, author) in before.rule_authorship.items()}
        marks |= {name: [now, actor_id] for name in different}
        self._store(owner, record, {"policy": policy_to_json(policy), "at": now, "marks": marks})
        self._audit.record(
            "policy.changed",
            kind="instance" if owner == INSTANCE_OWNER_ID else "organization",
            id=owner,
            organization_id=None if owner == INSTANCE_OWNER_ID else owner,
            detail=diff_fields(before.policy, policy),
        )
        return self.get_stored_policy(owner)

    def remove_policy(self, organization_id: str) -> None:
        self._mark_changed()
        self._records.delete(_KIND, organization_id)

    def requires_second_factor(self, subject: Subject) -> bool:
        rule = self.subject_policy(subject).second_factor
        if rule in (SecondFactorRule.REQUIRED_FOR_IAM, SecondFactorRule.REQUIRED_FOR_MANAGERS):
            with self._look() as storage:
                managers = storage.managers.list_effective(subject.user.id, self._now)
            return any(
                rule is SecondFactorRule.REQUIRED_FOR_MANAGERS or manager.resource.level is ManagerLevel.INSTANCE
                for manager in managers
            )
        return rule is SecondFactorRule.REQUIRED

    def relax_for_recovery(self, subject: Subject, can_prove: Callable[[Policy], bool]) -> tuple[str, ...]:
        """Lift the rules that lock out a person who has only a password; returns the names of the rules. ``can_prove``
        says whether they have or could set up a second factor under a policy. For operators: rules of the instance are
        lifted, and those of the person's organization."""
        removed: list[str] = []

        def take_back(name: str, stands: Callable[[Policy], bool]) -> None:
            for owner in (INSTANCE_OWNER_ID, subject.organization.id):
                if stands(self.subject_policy(subject)) and name in defined_rules(self.get_stored_policy(owner).policy):
                    self.change(owner, ChangePolicy.build(**{name: None}))
                    removed.append(name)

        take_back("factors", lambda policy: policy.factors is not None and Proof.PASSWORD_FACTOR not in policy.factors)
        take_back("second_factor", lambda policy: self.requires_second_factor(subject) and not can_prove(policy))
        return tuple(dict.fromkeys(removed))

    def lacks_factor(self, subject: Subject, methods: Iterable[str]) -> bool:
        """True if these methods (amr) no longer satisfy the person's policy."""
        if not isinstance(subject.user, HumanUser):
            return False
        policy = self.subject_policy(subject)
        if policy.second_factor in SIGN_IN_ONLY_RULES:
            return False
        known = frozenset(methods)
        if satisfies_acr(known, Acr.TWO_FACTORS) or (Proof.REMEMBERED_FACTOR in known and policy.remember_browser):
            return False
        return self.requires_second_factor(subject)

    def allows_factor(self, owner: Subject | Organization, factor: str) -> bool:
        """True if the person, or people of the organization, may use this factor, such as a password."""
        return _allows(self.effective_policy(owner), factor)

    def instance_allows_factor(self, factor: str) -> bool:
        return _allows(self.instance_policy(), factor)

    def filter_valid_proofs(self, subject: Subject, proofs: Iterable[Proof]) -> tuple[Proof, ...]:
        """The proofs whose factor is allowed; none if the first one's is not."""
        allowed = self.subject_policy(subject).factors
        if allowed is None:
            return tuple(proofs)
        valid = tuple(proof for proof in proofs if proof.factor in (*allowed, Proof.REMEMBERED_FACTOR))
        first = next(iter(proofs), None)
        return valid if first is not None and first in valid else ()

    def _refuse(self, owner: str, policy: Policy, *, changed: Collection[str]) -> None:
        """Raise Invalid if the level may not set these rules. Unchanged rules are accepted."""
        errors: dict[str, str] = {}
        if owner != INSTANCE_OWNER_ID:
            loose = looser_rules(self.instance_policy(), policy)
            errors = {name: gettext_lazy("The instance does not allow this much.") for name in loose if name in changed}
        factors = policy.factors or ()
        unknown = [factor for factor in factors if factor not in self._choices.sign_in_methods]
        if "factors" in changed and unknown:
            errors["factors"] = gettext_lazy("Choose from {names}.", names=", ".join(self._choices.sign_in_methods))
        changed_methods = [name for name in ("factors", "second_factor") if name in changed]
        if changed_methods and not errors:
            effective = (
                merge_policies(self.configured_policy, policy)
                if owner == INSTANCE_OWNER_ID
                else strictest_policy(self.instance_policy(), policy)
            )
            if not self._can_be_met(effective, trusts_upstream=self._trusts_upstream(owner)):
                errors[changed_methods[0]] = _NOBODY
        if errors:
            raise Invalid(errors)

    def _combine_policies(self, above: Policy, policy_override: Policy) -> Policy:
        """The combination of both policies. What no user could satisfy falls back to the instance's: first the
        sign-in methods, then the second factor."""
        policy = strictest_policy(above, policy_override)
        for item in (
            policy,
            replace(policy, factors=above.factors),
            replace(policy, second_factor=above.second_factor),
        ):
            if self._can_be_met(item):
                return item
        return replace(policy, factors=above.factors, second_factor=above.second_factor)

    def _can_be_met(self, policy: Policy, *, trusts_upstream: bool = True, mail: bool = True) -> bool:
        """True if a user could sign in under this policy with the plugins of this service. ``trusts_upstream``:
        second factors of upstream providers count; ``mail``: codes can be mailed to them."""
        # Whether there is a mail server is asked only if the answer depends on it.
        return self._is_met(policy, trusts_upstream, mail=False) or (
            mail and self._is_met(policy, trusts_upstream, mail=True) and self._can_send_mail()
        )

    def _is_met(self, policy: Policy, trusts_upstream: bool, *, mail: bool) -> bool:
        choices = self._choices
        second = choices.second_factors if mail else choices.second_factors - choices.mail_factors
        alone = (
            choices.passwordless_factors & second if policy.second_factor is not SecondFactorRule.OFF else frozenset()
        )
        if not any(_allows(policy, item) for item in (Proof.PASSWORD_FACTOR, *choices.federated_methods, *alone)):
            return False
        if policy.second_factor in SIGN_IN_ONLY_RULES:
            return True
        return any(_allows(policy, item) for item in (*second, *(choices.federated_methods if trusts_upstream else ())))

    def _trusts_upstream(self, owner: str) -> bool:
        """True if the second factors that a provider of the organization (or of all) reports are trusted."""
        with self._look() as storage:
            offered = storage.upstream_providers.list_available(None if owner == INSTANCE_OWNER_ID else owner)
        return any(provider.is_usable and provider.trust_methods for provider in offered)

    def _store(self, owner: str, record: Record | None, value: Mapping[str, object]) -> None:
        self._mark_changed()
        if record is not None:
            self._records.replace(record, value)
        elif self._records.add(_KIND, owner, value) is not None:
            raise Conflict(CHANGED_MEANWHILE)

    def _mark_changed(self) -> None:
        self._changed = True
        self._effective_policies.clear()
        self._storage.organizations.bump_rules_version()

    def _read_instance(self) -> Policy:
        return merge_policies(self.configured_policy, self.get_stored_policy(INSTANCE_OWNER_ID).policy)


def _allows(policy: Policy, factor: str) -> bool:
    return policy.factors is None or factor in policy.factors
