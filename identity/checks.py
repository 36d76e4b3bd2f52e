"""Checks: what an operator has to fix, by the service's own checks and those that plugins offer."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from identity.crypto.sealing import Sealer
from identity.ini_values import BadSetting, missing_paths
from identity.operations import Check
from identity.services.bundle import Services
from identity.services.policies import INSTANCE
from identity.services.resealing import UNKNOWN, left
from identity.services.signing_keys import NoSigningKey
from identity.settings import PREFIX, Settings
from identity.storage.backend import Backend
from identity.storage.errors import Unavailable
from identity.storage.paging import every_row

log = logging.getLogger(__name__)

STORAGE = "storage"
#: How many people a check names.
_NAMED = 5
_NOT_LOOKED = f"Not looked at: mend first what stands at {STORAGE}."


class Checks:
    """All checks, to be run and told: the service's own, and ``further`` ones. ``plugins`` are the settings of
    plugins, by their prefix, ``processes`` tells how many serve.
    """

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        reading: Callable[[], AbstractContextManager[Services]],
        sealer: Sealer,
        further: Iterable[Check],
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
            Check(STORAGE, self.storage),
            Check("signing key", self.signing_key),
            Check("connections", self.connections, readiness=False),
            Check("master keys", self.master_keys, readiness=False),
            Check("domains", self.domains, readiness=False),
            Check("files", self.files, readiness=False),
            Check("proxy", self.proxy, readiness=False),
            Check("policies", self.policies, readiness=False),
            *further,
        )

    def __iter__(self) -> Iterator[Check]:
        return iter(self._checks)

    def failed(self, *, of_readiness: bool = False) -> dict[str, str]:
        """What an operator has to fix: check → sentence. Empty if all is well. ``of_readiness`` leaves others out."""
        found = {}
        for check in self:
            if of_readiness and not check.readiness:
                continue
            try:
                problem = check.run()
            except Unavailable as failure:
                problem = _NOT_LOOKED if STORAGE in found else str(failure)
            except BadSetting as failure:
                problem = str(failure)
            except Exception as failure:
                log.warning("the check %s failed", check.name, exc_info=failure)
                problem = f"The check itself failed: {type(failure).__name__}."
            if problem is not None:
                found[check.name] = problem
                log.warning("check %s: %s", check.name, problem)
        return found

    def storage(self) -> str | None:
        """What is wrong with the storage, if anything."""
        try:
            self._backend.check()
        except Unavailable as problem:
            return str(problem)
        return None

    def connections(self) -> str | None:
        """Whether the storage's server gives as many connections as the processes of this machine may open."""
        return self._backend.connections_problem(self._processes())

    def signing_key(self) -> str | None:
        """Whether there is a key to sign with, and whether it can be opened."""
        try:
            with self._reading() as services:
                services.signing_keys.current()
        except NoSigningKey as problem:
            return str(problem)
        except Unavailable:
            raise
        except Exception as problem:
            return str(problem) or type(problem).__name__
        return None

    def master_keys(self) -> str | None:
        """Under which master keys something lies sealed though they are not listed."""
        found = left(self._reading, self._sealer)
        lost = ", ".join(f"{key} ({found[key]})" for key in sorted(found.keys() - {*self._sealer.ids, UNKNOWN}))
        if not lost:
            return None
        return (
            f"Values lie sealed under master keys that identity.master_keys does not list: {lost}. Whom they belong to"
            " cannot use them, second factors and secrets of identity providers among them. List these keys again; to"
            " do without them, run `identity rotate-master-key` before they are taken out."
        )

    def domains(self) -> str | None:
        """Which organizations go by a domain that nobody has proven, from the time before that was asked for."""
        with self._reading() as services:
            unproven = services.domains.unproven()
            if not unproven:
                return None
            names = ", ".join(one.name for one in unproven)
        return f"Nobody has proven these domains: {names}. Have each proven or asserted in the console, or changed."

    def policies(self) -> str | None:
        """Where nobody could meet the rules of signing in: at the instance, or together with an organization's."""
        with self._reading() as services:
            if services.instance() is None:
                return None
            policies = services.policies
            if not policies.can_be_met(INSTANCE):
                return (
                    "Nobody can meet the sign-in policy of the instance: it asks for a way to sign in, or a second"
                    " factor, that is not there. List a plugin that offers one, such as totp, in identity.plugins, set"
                    " a mail server if codes are to be mailed, or change the policy: until then people cannot sign in."
                )
            shut_out = ", ".join(one.login_name for one in services.managers.shut_out()[:_NAMED])
            organizations = every_row(services.storage.organizations.page)
            aside = ", ".join(one.name for one in organizations if policies.set_aside(one.id))
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
        """Which files and folders are named by settings and are not there."""
        sections = {PREFIX: self._settings, f"{PREFIX}smtp.": self._settings.smtp, **self._plugins}
        missing = [one for prefix, settings in sections.items() for one in missing_paths(settings, prefix)]
        return " ".join(f"{key}: {path} does not exist." for key, path in missing) or None

    def proxy(self) -> str | None:
        """Whether it is decided whose word on people's addresses is believed."""
        if self._settings.trusted_proxy or self._settings.development:
            return None
        return (
            "identity.trusted_proxy does not say whether there is a proxy in front. Name its address, for the server"
            ' too (production.ini: proxy in [DEFAULT]), or say "none": behind a proxy that is not named, all people'
            " share one limit of attempts."
        )
