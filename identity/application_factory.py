"""Assembles the service: settings → plugins → protocol registry → storage backend → Pyramid."""

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
from identity import extension_registry
from identity.application import IdentityApplication
from identity.clock import Clock
from identity.crypto.argon2id import Argon2Cost
from identity.crypto.sealing import MissingKeySealer, Sealer, create_master_key_file, read_master_keys
from identity.development_mailbox import create_mailer
from identity.document_cache import DocumentCache, DocumentClient
from identity.domain.errors import Invalid
from identity.domain.names import name_key
from identity.domain.validators import MAX_TOKEN_LIFETIME
from identity.domain_verification import DomainVerifier
from identity.ini_file import QUIET_VARIABLE, apply_variables, read_server_settings, save_last_run
from identity.key_sets import KeySetClient
from identity.outbound_http import OutboundHttpClient
from identity.password_hashing import PasswordHasher
from identity.plugin_host import PluginError, PluginHost
from identity.provider.endpoints import metadata
from identity.server_settings import is_loopback_only, validate_server_settings
from identity.services.mail_server import MailServerCache
from identity.services.process_state import ProcessState
from identity.services.signing_keys import KeyRing
from identity.settings import PREFIX, Settings, plugin_setting_strings, read_settings
from identity.settings_parser import InvalidSetting, SettingErrors
from identity.storage.backend import Backend
from identity.storage.errors import StorageError, StorageUnavailable

log = logging.getLogger(__name__)


def create_application(
    settings: Mapping[str, str],
    *,
    clock: Clock = real_clock.now,
    create_missing_key: bool = True,
    is_loopback_only: bool = False,
) -> IdentityApplication:
    """The service that these ini values describe. Nothing is opened yet.

    In development, ``create_missing_key`` creates the master key of a new service. ``is_loopback_only`` says that
    the web server accepts connections from this machine only: without a mail server, mails are then kept for a page.

    Raises InvalidSetting, which lists all invalid settings, or PluginError.
    """
    problems = SettingErrors()
    with problems():
        core = read_settings(settings).core
    readable, unusable = not problems.errors, None
    try:
        with problems():
            host = PluginHost.load(settings.get(f"{PREFIX}plugins", "").split(), plugin_setting_strings(settings))
    except PluginError as problem:
        unusable = problem
    loaded = unusable is None and readable and not problems.errors
    if readable:
        with problems():
            sealer = _create_sealer(core)
        with problems():
            known_bad = _read_password_blocklist(core.password_blocklist)
    if loaded:
        protocol = extension_registry.build_protocol_registry(host)
        with problems():
            backend = extension_registry.select_backend(host, core.storage)
        with problems():
            signers = extension_registry.collect_signers(host, core.signer)
    problems.raise_if_any(unusable)
    if create_missing_key and isinstance(sealer, MissingKeySealer):
        sealer = _create_sealer_with_new_key(core, backend)
    ring = KeyRing(sealer, published_age=MAX_TOKEN_LIFETIME + core.clock_skew, signers=signers, signer=core.signer)
    cost = Argon2Cost(memory_kib=core.password_memory, iterations=core.password_iterations)
    hasher = PasswordHasher(cost, workers=core.password_workers)
    mailer = create_mailer(core, listens_locally=is_loopback_only)
    deliveries = extension_registry.collect_deliveries(host, core, mailer)
    outbound = OutboundHttpClient(
        networks=OutboundHttpClient.parse_networks(core.allowed_networks), bounds_name_lookups=True
    )
    return IdentityApplication(
        settings=core,
        plugin_host=host,
        protocol_registry=protocol,
        backend=backend,
        process_state=ProcessState(
            settings=core,
            key_ring=ring,
            sealer=sealer,
            hasher=hasher,
            key_sets=KeySetClient(outbound),
            client_metadata=extension_registry.create_client_metadata_client(host, outbound),
            documents=DocumentClient(outbound, DocumentCache()),
            manager_roles=extension_registry.collect_manager_roles(host),
            deny_hook=extension_registry.combine_deny_hooks(host),
            capabilities=extension_registry.build_capabilities(host, protocol),
            deliveries=deliveries,
            password_blocklist=known_bad,
            mail_server_cache=MailServerCache(has_mailbox=mailer.has_mailbox),
        ),
        mailer=mailer,
        domain_verifier=DomainVerifier(core),
        check_password=extension_registry.combine_password_checks(host),
        clock=clock,
    )


def _read_password_blocklist(file: Path | None) -> frozenset[str]:
    """The normalized passwords in the file. Raises InvalidSetting."""
    if file is None:
        return frozenset()
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise InvalidSetting("identity.password_blocklist", f"cannot be read: {problem.strerror}") from None
    return frozenset(name_key(line) for line in lines if line.strip())


def create_wsgi_app(identity: IdentityApplication, settings: Mapping[str, Any]) -> Router:
    with Configurator(settings=dict(settings)) as config:
        config.registry.application = identity
        config.include("identity.http")
        for name, hook in identity.plugin_host.implementations("identity_configure"):
            config.include(_with_distinct_name(partial(_configure_plugin, hook), name))
    # Built at start, so that a plugin that fails here stops the start instead of requests.
    metadata.cached_discovery_document(identity.protocol_registry, identity.settings)
    router = config.make_wsgi_app()
    _require_view_permissions(config.registry)
    return router


def main(global_config: Mapping[str, str], **settings: str) -> Router:
    """The WSGI application for ``pserve``; in development it migrates and bootstraps first.

    Raises SystemExit with an explanation if settings, plugins or the storage are not usable.
    """
    from identity import bootstrap

    # Objects created at start live as long as the process, so collecting garbage among them is wasted time.
    gc.disable()
    try:
        settings, server = apply_variables(global_config, settings), read_server_settings(global_config)
        validate_server_settings(server)
        identity = create_application(settings, is_loopback_only=is_loopback_only(server))
        if identity.settings.development:
            bootstrap.prepare_development(identity, print_getting_started=QUIET_VARIABLE not in global_config)
        else:
            _require_schema_and_signing_key(identity)
        router = create_wsgi_app(identity, settings)
        save_last_run(global_config)
        return router
    except (InvalidSetting, PluginError, Invalid, StorageUnavailable) as problem:
        raise SystemExit(f"identity cannot start. {problem}") from None
    except OSError as problem:
        raise SystemExit(f"identity cannot start. {problem.filename}: {problem.strerror}.") from None
    finally:
        gc.freeze()
        gc.enable()


def _require_schema_and_signing_key(identity: IdentityApplication) -> None:
    """Raise Unavailable, naming the command to run first, unless the schema is current and a signing key can be
    opened.
    """
    identity.backend.check()
    problem = identity.system_checks.signing_key()
    if problem is not None:
        raise StorageUnavailable(problem)


def _configure_plugin(hook: Callable[..., None], config: Configurator) -> None:
    hook(config=config)


def _with_distinct_name(function: partial[None], name: str) -> Callable[[Configurator], None]:
    """A distinct function for each plugin: Pyramid includes a callable once and names it in conflicts."""

    def include(config: Configurator) -> None:
        function(config)

    include.__name__ = include.__qualname__ = f"plugin_{name}"
    return include


def _require_view_permissions(registry: Registry) -> None:
    """Raise PluginError for a view without a permission."""
    for view in registry.introspector.get_category("views"):
        route, context = view["introspectable"]["route_name"], view["introspectable"]["context"]
        is_exception_view = route is None and context is not None
        if not is_exception_view and not any(item.category_name == "permissions" for item in view["related"]):
            raise PluginError(
                f"A view of the route {route} names no permission. Pass one to add_view, or NO_PERMISSION_REQUIRED."
            )


def _create_sealer(settings: Settings) -> Sealer:
    """A sealer, without a key in a new development service. Raises InvalidSetting."""
    setting, entries = "identity.master_keys", settings.master_keys
    if not entries:
        path = _development_key_path(settings)
        try:
            is_missing = not path.exists()
        except OSError as problem:
            raise InvalidSetting("identity.data", f"{path} cannot be read: {problem.strerror}") from None
        if is_missing:
            return MissingKeySealer(lambda: _missing_key_error(path))
        setting, entries = "identity.data", (f"development:{path}",)
    try:
        return Sealer(read_master_keys(entries))
    except Invalid as problem:
        raise InvalidSetting(setting, " ".join(problem.fields.values())) from None


def _create_sealer_with_new_key(settings: Settings, backend: Backend) -> Sealer:
    """A sealer with a master key that is created for a new service. Raises InvalidSetting."""
    path = _development_key_path(settings)
    if _has_sealed_values(backend):
        raise _missing_key_error(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another process may create it first.
        with suppress(FileExistsError):
            create_master_key_file(path)
    except OSError as problem:
        raise InvalidSetting("identity.data", f"{path.parent} cannot be made or used: {problem.strerror}") from None
    return _create_sealer(settings)


def _development_key_path(settings: Settings) -> Path:
    return settings.data / "master.key"


def _missing_key_error(path: Path) -> InvalidSetting:
    return InvalidSetting(
        "identity.data",
        f"the master key {path} does not exist. Put it there, mode 0600: what is stored, and a backup, opens with the"
        " key of its time alone. A new service, whose database is empty, gets one from its first start in development,"
        " or from `identity bootstrap`.",
    )


def _has_sealed_values(backend: Backend) -> bool:
    """True if the storage holds sealed values, which a new key could not open."""
    try:
        # Works on any schema revision: an older one is about to be migrated.
        with backend.read_session() as storage:
            return bool(storage.signing_keys.list_all())
    except StorageUnavailable:
        return False
    except StorageError:
        # There is a key, even if it cannot be read.
        return True
