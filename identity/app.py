"""The only assembler: settings → plugins → protocol → backend → Pyramid."""

import gc
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pyramid.config import Configurator
from pyramid.registry import Registry
from pyramid.router import Router

from identity import clock as real_clock
from identity import offers
from identity.clock import Clock
from identity.crypto.passwords import Cost
from identity.crypto.sealing import NoSealer, Sealer, create_master_key_file, read_master_keys
from identity.domain.errors import Invalid
from identity.domain.names import name_key
from identity.domain.rules import LONGEST_TOKEN_LIFETIME
from identity.domain_checks import DomainChecks
from identity.hashing import Hasher
from identity.ini_file import QUIET, note_run, server_of, with_variables
from identity.ini_values import BadSetting, Gathered
from identity.mailbox import mailer_of
from identity.plugin_host import PluginHost, PluginProblem
from identity.process import Identity
from identity.provider.endpoints import metadata
from identity.server_settings import listens_on_loopback, require_settings
from identity.services.mails import KIND
from identity.services.process_state import ProcessState
from identity.services.signing_keys import KeyRing
from identity.settings import PREFIX, Settings, plugin_strings, read_settings
from identity.storage.backend import Backend
from identity.storage.errors import StorageError, Unavailable

log = logging.getLogger(__name__)


def assemble(
    settings: Mapping[str, str],
    *,
    clock: Clock = real_clock.now,
    may_make_key: bool = True,
    listens_locally: bool = False,
) -> Identity:
    """The service that these ini strings describe, nothing opened yet.

    In development a new service gets a master key, if ``may_make_key``; else whoever needs the key is told.
    ``listens_locally`` tells that its web server can be reached from this machine alone: in development mails are then
    kept for a page, where no mail server is set.

    Raises BadSetting, for all settings that will not do, or PluginProblem, saying what to mend.
    """
    problems = Gathered()
    with problems():
        core = read_settings(settings).core
    readable, unusable = not problems.found, None
    try:
        with problems():
            host = PluginHost.load(settings.get(f"{PREFIX}plugins", "").split(), plugin_strings(settings))
    except PluginProblem as problem:
        unusable = problem
    loaded = unusable is None and readable and not problems.found
    if readable:
        with problems():
            sealer = _sealer(core)
        with problems():
            known_bad = _known_bad(core.password_known_bad)
    if loaded:
        protocol = offers.protocol(host)
        with problems():
            backend = offers.backend(host, core.storage)
    problems.tell(unusable)
    if may_make_key and isinstance(sealer, NoSealer):
        sealer = _new_sealer(core, backend)
    ring = KeyRing(sealer, published_age=LONGEST_TOKEN_LIFETIME + core.clock_skew)
    cost = Cost(memory_kib=core.password_memory, iterations=core.password_iterations)
    hasher = Hasher(cost, workers=core.password_workers)
    mailer = mailer_of(core, listens_locally=listens_locally)
    deliveries = offers.deliveries(host, core, mailer)
    return Identity(
        settings=core,
        host=host,
        protocol=protocol,
        backend=backend,
        process=ProcessState(
            settings=core,
            ring=ring,
            sealer=sealer,
            hasher=hasher,
            roles=offers.manager_roles(host),
            deny=offers.deny(host),
            choices=offers.choices(host, protocol, mail=KIND in deliveries),
            deliveries=deliveries,
            known_bad=known_bad,
        ),
        mailer=mailer,
        domain_checks=DomainChecks(core),
        check_password=offers.check_password(host),
        clock=clock,
    )


def _known_bad(file: Path | None) -> frozenset[str]:
    """The passwords in the file, in the form in which they are compared. Raises BadSetting."""
    if file is None:
        return frozenset()
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise BadSetting("identity.password_known_bad", f"cannot be read: {problem.strerror}") from None
    return frozenset(name_key(line) for line in lines if line.strip())


def configure(identity: Identity, settings: Mapping[str, Any]) -> Router:
    """The Pyramid application around an assembled service."""
    with Configurator(settings=dict(settings)) as config:
        config.registry.identity = identity
        config.include("identity.http")
        for name, hook in identity.host.implementations("identity_configure"):
            config.include(_named(partial(_configure_plugin, hook), name))
    # Built now, so that a plugin that fails to add to it stops the start and not the requests.
    metadata.document(identity.protocol, identity.settings)
    router = config.make_wsgi_app()
    _check_permissions(config.registry)
    return router


def main(global_config: Mapping[str, str], **settings: str) -> Router:
    """The WSGI application for ``pserve``; in development it migrates and bootstraps first.

    Raises SystemExit with a clear sentence for settings, plugins or a storage that do not fit.
    """
    from identity import first_start

    # What a start makes stays, so that looking through it for garbage is in vain, now and later.
    gc.disable()
    try:
        settings, server = with_variables(global_config, settings), server_of(global_config)
        require_settings(server)
        identity = assemble(settings, listens_locally=listens_on_loopback(server))
        if identity.settings.development:
            first_start.prepare(identity, announce=QUIET not in global_config)
        else:
            _require_ready(identity)
        router = configure(identity, settings)
        note_run(global_config)
        return router
    except (BadSetting, PluginProblem, Invalid, Unavailable) as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    except OSError as problem:
        raise SystemExit(f"identity cannot start. {problem.filename}: {problem.strerror}.") from None
    finally:
        gc.freeze()
        gc.enable()


def _require_ready(identity: Identity) -> None:
    """Raise Unavailable, saying what to run first, unless the schema fits and there is a key that can be opened."""
    identity.backend.check()
    problem = identity.checks.signing_key()
    if problem is not None:
        raise Unavailable(problem)


def _configure_plugin(hook: Callable[..., None], config: Configurator) -> None:
    hook(config=config)


def _named(function: partial[None], name: str) -> Callable[[Configurator], None]:
    """A function of its own per plugin: Pyramid includes each callable once and names it in conflicts."""

    def include(config: Configurator) -> None:
        function(config)

    include.__name__ = include.__qualname__ = f"plugin_{name}"
    return include


def _check_permissions(registry: Registry) -> None:
    """Every view says who may see it. Raises PluginProblem for one that does not."""
    for view in registry.introspector.get_category("views"):
        route, context = view["introspectable"]["route_name"], view["introspectable"]["context"]
        is_exception_view = route is None and context is not None
        if not is_exception_view and not any(one.category_name == "permissions" for one in view["related"]):
            raise PluginProblem(
                f"A view of the route {route} names no permission. Pass one to add_view, or NO_PERMISSION_REQUIRED."
            )


def _sealer(settings: Settings) -> Sealer:
    """One without a key where development has none yet. Raises BadSetting."""
    setting, entries = "identity.master_keys", settings.master_keys
    if not entries:
        path = _development_key(settings)
        try:
            is_missing = not path.exists()
        except OSError as problem:
            raise BadSetting("identity.data", f"{path} cannot be read: {problem.strerror}") from None
        if is_missing:
            return NoSealer(lambda: _missing_key(path))
        setting, entries = "identity.data", (f"development:{path}",)
    try:
        return Sealer(read_master_keys(entries))
    except Invalid as problem:
        raise BadSetting(setting, " ".join(problem.fields.values())) from None


def _new_sealer(settings: Settings, backend: Backend) -> Sealer:
    """With a key that is made for a new service. Raises BadSetting."""
    path = _development_key(settings)
    if _is_in_use(backend):
        raise _missing_key(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another process may make it first.
        with suppress(FileExistsError):
            create_master_key_file(path)
    except OSError as problem:
        raise BadSetting("identity.data", f"{path.parent} cannot be made or used: {problem.strerror}") from None
    return _sealer(settings)


def _development_key(settings: Settings) -> Path:
    return settings.data / "master.key"


def _missing_key(path: Path) -> BadSetting:
    return BadSetting(
        "identity.data",
        f"the master key {path} does not exist. Put it there, mode 0600: what is stored, and a backup, opens with the"
        " key of its time alone. A new service, whose database is empty, gets one from its first start in development,"
        " or from `identity bootstrap`.",
    )


def _is_in_use(backend: Backend) -> bool:
    """True if something lies sealed there, under a key that another one cannot take the place of."""
    try:
        # Whichever schema it has: an older one is about to be migrated.
        with backend.reading() as storage:
            return bool(storage.signing_keys.all())
    except Unavailable:
        return False
    except StorageError:
        # There is a key, though it cannot be read.
        return True
