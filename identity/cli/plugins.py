"""identity plugins: which plugins are installed, which are listed, and what they do."""

from argparse import Namespace
from importlib.metadata import EntryPoint

from identity.cli.program import add_ini_arguments, problems_told, settings_of
from identity.operations import Command


def run(arguments: Namespace) -> int:
    """Load the listed plugins and show them in call order; the others are not imported."""
    with problems_told():
        settings = settings_of(arguments)
        from identity.plugin_host import PluginHost, installed
        from identity.settings import read_settings

        file = read_settings(settings)
        available = installed()
        host = PluginHost.load(file.core.plugins, file.plugins)
    print("Listed in identity.plugins, in call order:")
    for name in host.names:
        print(f"  {name:<24}{_origin(available[name]):<22}{', '.join(host.hooks_of(name)) or 'no hooks'}")
    unlisted = sorted(set(available) - set(host.names))
    print("\nInstalled, not listed:" if unlisted else "\nAll installed plugins are listed.")
    for name in unlisted:
        print(f"  {name:<24}{_origin(available[name])}")
    return 0


def _origin(point: EntryPoint) -> str:
    distribution = point.dist
    return "unknown" if distribution is None else f"{distribution.name} {distribution.version}"


COMMAND = Command("plugins", "list plugins: installed, listed, their versions and hooks", add_ini_arguments, run)
