"""identity plugins: list installed and loaded plugins and their hooks."""

from argparse import Namespace
from importlib.metadata import EntryPoint

from identity.cli.command_context import add_ini_arguments, read_app_settings, translate_errors
from identity.extension_points import CliCommand


def run(arguments: Namespace) -> int:
    """Load the configured plugins and list them in call order; the others are not imported."""
    with translate_errors():
        settings = read_app_settings(arguments)
        from identity.plugin_host import PluginHost, installed_plugins
        from identity.settings import read_settings

        file = read_settings(settings)
        available = installed_plugins()
        host = PluginHost.load(file.core.plugins, file.plugins)
    print("Listed in identity.plugins, in call order:")
    for name in host.plugin_names:
        print(f"  {name:<24}{_distribution_label(available[name]):<22}{', '.join(host.hook_names(name)) or 'no hooks'}")
    unlisted = sorted(set(available) - set(host.plugin_names))
    print("\nInstalled, not listed:" if unlisted else "\nAll installed plugins are listed.")
    for name in unlisted:
        print(f"  {name:<24}{_distribution_label(available[name])}")
    return 0


def _distribution_label(point: EntryPoint) -> str:
    distribution = point.dist
    return "unknown" if distribution is None else f"{distribution.name} {distribution.version}"


COMMAND = CliCommand(
    "plugins", "list installed and loaded plugins with their versions and hooks", add_ini_arguments, run
)
