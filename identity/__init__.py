"""identity: OAuth 2.0 and OpenID Connect for people and programs, in one small Pyramid application."""

from pluggy import HookimplMarker

__all__ = ["__version__", "hookimpl"]

__version__ = "0.1.0"

#: Marks a method of a plugin as the implementation of the hook of the same name.
hookimpl = HookimplMarker("identity")
