"""identity: OAuth 2.0 and OpenID Connect for people and programs, in one small Pyramid application."""

from pluggy import HookimplMarker

__all__ = ["__version__", "hookimpl"]

__version__ = "0.1.0"

#: Marks a plugin's method as the implementation of the hook of its name.
hookimpl = HookimplMarker("identity")
