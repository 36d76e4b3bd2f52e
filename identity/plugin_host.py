"""Loads plugins and calls their hooks. Only plugins that the ini file lists are loaded."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from identity import hookspecs
from identity.cached_property import cached_property
from identity.domain.hook_results import hook_type_error_text
from identity.domain.records import CORE_NAMESPACE, RecordNamespace
from identity.plugin_summaries import PluginSummary, summarize_settings
from identity.settings import PLUGIN_PREFIX, PREFIX
from identity.settings_parser import InvalidSetting, InvalidSettings, SettingErrors, parse_settings

if TYPE_CHECKING:
    from identity.domain.audit import AuditEvent

ENTRY_POINT_GROUP = "identity.plugins"

log = logging.getLogger(__name__)


class PluginError(Exception):
    """A plugin cannot be used; the message names it and says what to do. Stops the start."""


@contextmanager
def _prefix_plugin_settings(plugin: str) -> Iterator[None]:
    """Adds the plugin's prefix to the names of settings that it refuses."""
    try:
        yield
    except InvalidSetting as problem:
        named = [
            invalid_setting
            if invalid_setting.key.startswith(PREFIX)
            else invalid_setting.with_prefix(f"{PLUGIN_PREFIX}{plugin}.")
            for invalid_setting in problem.errors
        ]
        raise InvalidSettings.combine(named) from None


@dataclass(frozen=True)
class Extension:
    """Something that a plugin offers, with the plugin's name."""

    plugin: str
    value: Any


def installed_plugins() -> dict[str, EntryPoint]:
    """Every installed plugin by name, not imported.

    Raises PluginError if two distributions install different plugins under one name.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f'Two installed plugins are called "{point.name}": {other.value} and {point.value}. Remove one of them.'
            )
    return found


@dataclass(frozen=True)
class _NoSettings:
    """None."""


def settings_class(plugin: Any) -> Any:
    """The class ``Settings`` of a plugin's class; one without fields for a plugin that takes no settings."""
    return getattr(plugin, "Settings", _NoSettings)


class PluginHost:
    """The loaded plugins of one process, in ini order."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager("identity")
        self._manager.add_hookspecs(hookspecs)
        self._names: list[str] = []
        #: The settings object of each plugin by its prefix.
        self.settings: dict[str, Any] = {}
        #: What each plugin adds, by kind: see ``record_offers``.
        self.offers: dict[str, dict[str, tuple[str, ...]]] = {}

    @classmethod
    def load(cls, names: Iterable[str], settings: Mapping[str, Mapping[str, str]]) -> "PluginHost":
        """Import, configure, register and verify the named plugins.

        ``settings`` holds each plugin's ini strings. Raises PluginError, or InvalidSetting for all invalid settings.
        """
        names = list(names)
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise PluginError(f"identity.plugins lists {', '.join(sorted(repeated))} twice.")
        if CORE_NAMESPACE in names:
            raise PluginError(
                f'No plugin can be called "{CORE_NAMESPACE}": the service keeps its own records under this name.'
            )
        available = installed_plugins()
        host = cls()
        plugins, problems, unusable = [], SettingErrors(), None
        for name in names:
            try:
                with problems():
                    plugins.append((name, host._construct(name, available, settings.get(name, {}))))
            except PluginError as problem:
                unusable = unusable or problem
        problems.raise_if_any(unusable)
        # pluggy calls the last registered plugin first; registering in reverse makes ini order the call order.
        for name, plugin in reversed(plugins):
            host.register(name, plugin)
        host._names = names
        host._manager.hook.identity_add_hookspecs(host=host)
        try:
            host._manager.check_pending()
        except pluggy.PluginValidationError as problem:
            raise PluginError(f"A plugin implements a hook that does not exist: {problem}") from None
        for name, take in host.implementations("identity_record_namespace"):
            take(namespace=RecordNamespace(name))
        for name in names:
            log.info("plugin %s: %s", name, ", ".join(host.hook_names(name)) or "no hooks")
        return host

    def _construct(self, name: str, available: Mapping[str, EntryPoint], values: Mapping[str, str]) -> object:
        if name not in available:
            raise PluginError(
                f'identity.plugins lists "{name}", which is not installed.'
                f" Installed are: {', '.join(sorted(available))}."
            )
        try:
            kind = available[name].load()
        except Exception as problem:
            raise PluginError(f'The plugin "{name}" cannot be imported: {problem!r}') from problem
        version = getattr(kind, "hookspecs", None)
        if version != hookspecs.HOOKSPEC_VERSION:
            raise PluginError(
                f'The plugin "{name}" was written for version {version} of the hooks; this is version'
                f" {hookspecs.HOOKSPEC_VERSION}. Install a matching release of it."
            )
        if not is_dataclass(settings_class(kind)):
            raise PluginError(f'The plugin "{name}" has a class Settings that is no dataclass.')
        prefix = f"{PLUGIN_PREFIX}{name}."
        settings = self.settings[prefix] = parse_settings(settings_class(kind), values, prefix)
        with _prefix_plugin_settings(name):
            return kind() if isinstance(settings, _NoSettings) else kind(settings)

    def register(self, name: str, plugin: object) -> None:
        """Add a constructed plugin. Raises PluginError if its hooks do not match their specification."""
        try:
            self._manager.register(plugin, name)
        except pluggy.PluginValidationError as problem:
            raise PluginError(f'The plugin "{name}" does not fit: {problem}') from None

    def add_hookspecs(self, module: ModuleType | type) -> None:
        """Register further hookspecs, for ``identity_add_hookspecs``."""
        self._manager.add_hookspecs(module)

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The loaded plugins in ini order."""
        return tuple(self._names)

    @property
    def hook(self) -> Any:
        """pluggy's callers for all known hooks."""
        return self._manager.hook

    def hook_names(self, name: str) -> list[str]:
        """The hooks that a loaded plugin implements."""
        callers = self._manager.get_hookcallers(self._manager.get_plugin(name)) or []
        return sorted(caller.name for caller in callers)

    def implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        """Each implementation of a hook with its plugin's name, in call order.

        They accept all arguments of the hook by keyword, even those that the plugin leaves out.
        """
        found = reversed(getattr(self._manager.hook, hook).get_hookimpls())
        return [(item.plugin_name, _accept_all_arguments(item.function, item.argnames)) for item in found]

    def extensions(self, hook: str, **arguments: Any) -> list[Extension]:
        """Everything offered through a hook, with the plugin's name, in ini order. Raises what a plugin raises."""
        collected: list[Extension] = []
        for plugin, implementation in self.implementations(hook):
            with _prefix_plugin_settings(plugin):
                collected.extend(Extension(plugin, value) for value in implementation(**arguments))
        return collected

    def extensions_by_name(self, hook: str, name: Callable[[Any], str], noun: str, **arguments: Any) -> dict[str, Any]:
        """The offers of a hook by name.

        Raises PluginError, naming both plugins, if two offers have the same name.
        """
        found: dict[str, Extension] = {}
        for offer in self.extensions(hook, **arguments):
            extension = found.setdefault(name(offer.value), offer)
            if extension is not offer:
                raise PluginError(
                    f'The plugins "{extension.plugin}" and "{offer.plugin}" both offer the {noun} '
                    f'"{name(offer.value)}". Take one of them out of identity.plugins.'
                )
        self.record_offers(noun, ((offer.plugin, key) for key, offer in found.items()))
        return {key: offer.value for key, offer in found.items()}

    def summarize_plugins(self) -> tuple[PluginSummary, ...]:
        """The listed plugins in ini order, for operators; without secrets."""
        return tuple(self._summarize(name) for name in self._names)

    @cached_property
    def _packages(self) -> dict[str, tuple[str, str]]:
        """Distribution and version by plugin; reading them takes several milliseconds."""
        return {
            name: (point.dist.name, point.dist.version)
            for name, point in installed_plugins().items()
            if point.dist is not None
        }

    def _summarize(self, name: str) -> PluginSummary:
        distribution, version = self._packages.get(name, ("", ""))
        first_paragraph = (type(self._manager.get_plugin(name)).__doc__ or "").strip().partition("\n\n")[0]
        prefix = f"{PLUGIN_PREFIX}{name}."
        return PluginSummary(
            name=name,
            distribution=distribution,
            version=version,
            description=" ".join(first_paragraph.replace("``", "").split()),
            offers={kind: sorted(names) for kind, names in sorted(self.offers.get(name, {}).items())},
            hooks=self.hook_names(name),
            settings=tuple(summarize_settings(prefix, self.settings[prefix])),
        )

    def record_offers(self, noun: str, named: Iterable[tuple[str, str]]) -> None:
        """Note the names of what plugins offer of this kind, for operators."""
        for offers in self.offers.values():
            offers.pop(noun, None)
        for plugin, name in named:
            offers = self.offers.setdefault(plugin, {})
            offers[noun] = (*offers.get(noun, ()), name)

    def combine_decisions(
        self, hook: str, is_valid: Callable[[object], bool], *, on_failure: object, traceback: bool = True
    ) -> Callable[..., Any] | None:
        """One callable for all implementations of a hook that decides; None if no plugin implements it.

        The first answer other than None counts. A plugin that fails or returns another type, such as an awaitable,
        yields ``on_failure``. The failure is logged, without ``traceback`` where that could reveal the arguments.
        """
        hooks = self.implementations(hook)
        if not hooks:
            return None

        def decide(**arguments: Any) -> Any:
            for plugin, implementation in hooks:
                try:
                    answer = implementation(**arguments)
                except Exception as problem:
                    exc_info = problem if traceback else None
                    log.error("plugin %s failed in %s: %s", plugin, hook, type(problem).__name__, exc_info=exc_info)
                    return on_failure
                if answer is None:
                    continue
                if is_valid(answer):
                    return answer
                log.error("plugin %s refuses in %s: it answered with %s", plugin, hook, hook_type_error_text(answer))
                return on_failure
            return None

        return decide

    def notify_audit_events(self, events: Iterable["AuditEvent"]) -> None:
        """Notify every plugin of each event. Call it after the commit. A failing plugin is logged."""
        observers = self.implementations("identity_audit_event_recorded")
        for event in events:
            for plugin, observer in observers:
                try:
                    observer(event=event)
                except Exception:
                    log.exception("plugin %s failed to take notice of %s", plugin, event.event)


def _accept_all_arguments(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        return function(**{name: arguments[name] for name in names})

    return call
