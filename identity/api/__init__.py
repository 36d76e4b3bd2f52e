"""The public API for plugins, one module per topic."""
