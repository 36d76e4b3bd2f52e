"""Runs the checks that tell an operator what to fix: the core's own and those of plugins."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from identity.crypto.sealing import Sealer
from identity.extension_points import SystemCheck
from identity.services.container import Services
from identity.services.policies import INSTANCE_OWNER_ID
from identity.services.rekeying import UNKNOWN_KEY_ID, count_remaining
from identity.services.signing_keys import NoSigningKey
from identity.settings import PREFIX, Settings
from identity.settings_parser import InvalidSetting, missing_paths
from identity.storage.backend import Backend
from identity.storage.errors import StorageUnavailable
from identity.storage.paging import iterate_rows

log = logging.getLogger(__name__)

STORAGE_CHECK = "storage"
#: A check names at most this many users, and as many applications.
_MAX_LISTED = 5
_SKIPPED = f"Not checked: fix {STORAGE_CHECK} first."


class SystemChecks:
    """All checks: the core's own and ``further`` ones. ``plugins`` are the settings of plugins by prefix;
    ``processes`` is the number of serving processes.
    """

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        reading: Callable[[], AbstractContextManager[Services]],
        sealer: Sealer,
        further: Iterable[SystemCheck],
        plugins: Mapping[str, Any] | None = None,
        processes: Callable[[], int] = lambda: 1,
    ) -> None:
        self._settings = settings
        self._backend = backend
        self._reading = reading
        self._sealer = sealer
        self._plugins = plugins or {}
        self._processes = processes
        self._checks = (
            SystemCheck(STORAGE_CHECK, self.storage),
            SystemCheck("signing key", self.signing_key),
            SystemCheck("signer", self.signer, affects_readiness=False),
            SystemCheck("signing algorithms", self.signing_algorithms, affects_readiness=False),
            SystemCheck("connections", self.connections, affects_readiness=False),
            SystemCheck("master keys", self.master_keys, affects_readiness=False),
            SystemCheck("domains", self.domains, affects_readiness=False),
            SystemCheck("files", self.files, affects_readiness=False),
            SystemCheck("proxy", self.proxy, affects_readiness=False),
            SystemCheck("policies", self.policies, affects_readiness=False),
            *further,
        )

    def __iter__(self) -> Iterator[SystemCheck]:
        return iter(self._checks)

    def run(self) -> dict[str, str | None]:
        """All checks by name, with what to fix; None for those that pass."""
        found = self.failures()
        return {check.name: found.get(check.name) for check in self}

    def failures(self, *, readiness_only: bool = False) -> dict[str, str]:
        """Failed checks by name, with what to fix. Empty if all pass. ``readiness_only`` skips the others."""
        found = {}
        for check in self:
            if readiness_only and not check.affects_readiness:
                continue
            try:
                problem = check.run()
            except StorageUnavailable as failure:
                problem = _SKIPPED if STORAGE_CHECK in found else str(failure)
            except InvalidSetting as failure:
                problem = str(failure)
            except Exception as failure:
                log.warning("the check %s failed", check.name, exc_info=failure)
                problem = f"The check itself failed: {type(failure).__name__}."
            if problem is not None:
                found[check.name] = problem
                log.warning("check %s: %s", check.name, problem)
        return found

    def storage(self) -> str | None:
        try:
            self._backend.check()
        except StorageUnavailable as problem:
            return str(problem)
        return None

    def connections(self) -> str | None:
        """Checks that the database server allows as many connections as the processes of this machine may open."""
        return self._backend.connection_limit_problem(self._processes())

    def signing_key(self) -> str | None:
        """Checks that there is a signing key and that it can be opened."""
        try:
            with self._reading() as services:
                services.signing_keys.current_signing_key()
        except NoSigningKey as problem:
            return str(problem)
        except StorageUnavailable:
            raise
        except Exception as problem:
            return str(problem) or type(problem).__name__
        return None

    def signer(self) -> str | None:
        """Checks that keys outside the process sign, and that new ones can be created there."""
        with self._reading() as services:
            return services.signing_keys.find_signer_problem()

    def signing_algorithms(self) -> str | None:
        """Finds applications and service users that chose an algorithm which is not switched on."""
        enabled = self._settings.signing_algorithms
        with self._reading() as services:
            storage = services.storage
            applications = storage.applications.list_with_other_algorithms(enabled, _MAX_LISTED + 1)
            users = storage.users.list_with_other_algorithms(enabled, _MAX_LISTED + 1)
        found = [
            *(f"the application {item.name} ({item.id})" for item in applications[:_MAX_LISTED]),
            *(f"the service user {item.user_name} ({item.id})" for item in users[:_MAX_LISTED]),
        ]
        if not found:
            return None
        more = ", and more" if max(len(applications), len(users)) > _MAX_LISTED else ""
        return (
            f"Some chose a signing algorithm that identity.signing_algorithms does not list, and get no tokens that are"
            f" signed: {', '.join(found)}{more}. Choose another algorithm for them, or list theirs again."
        )

    def master_keys(self) -> str | None:
        """Finds master keys that are still needed but no longer configured."""
        found = count_remaining(self._reading, self._sealer)
        lost = ", ".join(f"{key} ({found[key]})" for key in sorted(found.keys() - {*self._sealer.ids, UNKNOWN_KEY_ID}))
        if not lost:
            return None
        return (
            f"Values lie sealed under master keys that identity.master_keys does not list: {lost}. Whom they belong to"
            " cannot use them, second factors and secrets of identity providers among them. List these keys again; to"
            " do without them, run `identity rotate-master-key` before they are taken out."
        )

    def domains(self) -> str | None:
        """Finds organizations with a domain that was never verified, from before verification was required."""
        with self._reading() as services:
            unproven = services.domains.list_unverified()
            if not unproven:
                return None
            names = ", ".join(domain.name for domain in unproven)
        return f"Nobody has proven these domains: {names}. Have each proven or asserted in the console, or changed."

    def policies(self) -> str | None:
        """Finds sign-in rules that no user can satisfy, at the instance or combined with an organization's."""
        with self._reading() as services:
            if services.find_instance() is None:
                return None
            policies = services.policies
            if not policies.is_satisfiable(INSTANCE_OWNER_ID):
                return (
                    "Nobody can meet the sign-in policy of the instance: it asks for a way to sign in, or a second"
                    " factor, that is not there. List a plugin that offers one, such as totp, in identity.plugins, set"
                    " a mail server if codes are to be mailed, or change the policy: until then people cannot sign in."
                )
            shut_out = ", ".join(
                subject.login_name for subject in services.managers.list_without_sign_in_method()[:_MAX_LISTED]
            )
            organizations = iterate_rows(services.storage.organizations.page)
            aside = ", ".join(
                organization.name for organization in organizations if policies.list_ignored_rules(organization.id)
            )
        problems = []
        if shut_out:
            problems.append(
                f"These people hold a role at the instance and have no way to sign in that it allows: {shut_out}."
                ' Mark the identity provider at which they sign in as "Managed by the instance", or run `identity'
                " recover-admin`."
            )
        if aside:
            problems.append(
                f"Together with the instance's sign-in policy, that of {aside} leaves no way to sign in, so the"
                " instance's rule holds there. Change one of the two."
            )
        return " ".join(problems) or None

    def files(self) -> str | None:
        """Finds configured files and folders that do not exist."""
        sections = {PREFIX: self._settings, f"{PREFIX}smtp.": self._settings.smtp, **self._plugins}
        missing = [
            missing_path for prefix, settings in sections.items() for missing_path in missing_paths(settings, prefix)
        ]
        return " ".join(f"{key}: {path} does not exist." for key, path in missing) or None

    def proxy(self) -> str | None:
        """Checks that the trusted proxy is configured explicitly."""
        if self._settings.trusted_proxy or self._settings.development:
            return None
        return (
            "identity.trusted_proxy does not say whether there is a proxy in front. Name its address, for the server"
            ' too (production.ini: proxy in [DEFAULT]), or say "none": behind a proxy that is not named, all people'
            " share one limit of attempts."
        )
