pytest_plugins = ["identity.testing.fixtures"]
