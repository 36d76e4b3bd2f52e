from tests.plugins.login.conftest import ada, browser, party

__all__ = ["ada", "browser", "party"]
