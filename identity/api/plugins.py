"""Plugins: hooks, settings, checks, commands, observers, and time."""

from identity import __version__, hookimpl
from identity.cached_property import cached_property
from identity.clock import now
from identity.concurrency import run_in_executor
from identity.extension_points import CliCommand, ServicesFactory, ServingProcess, SystemCheck
from identity.fair_semaphore import FairSemaphore, NoFreeSlot
from identity.http.request_observers import ObservedRequest, RequestObserver
from identity.instrumentation import InstrumentationObserver, Measurement, Outcome, PoolUsage
from identity.log_formatters import RepeatedMessageFilter
from identity.settings import Settings
from identity.settings_parser import InvalidSetting, duration, setting

__all__ = [
    "CliCommand",
    "FairSemaphore",
    "InstrumentationObserver",
    "InvalidSetting",
    "Measurement",
    "NoFreeSlot",
    "ObservedRequest",
    "Outcome",
    "PoolUsage",
    "RepeatedMessageFilter",
    "RequestObserver",
    "ServicesFactory",
    "ServingProcess",
    "Settings",
    "SystemCheck",
    "__version__",
    "cached_property",
    "duration",
    "hookimpl",
    "now",
    "run_in_executor",
    "setting",
]
