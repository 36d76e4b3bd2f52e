"""The contract that every storage backend passes, as a pytest class to inherit from.

.. code-block:: python

    from functools import partial

    import pytest

    from identity.storage.contract import StorageContract


    class TestRedis(StorageContract):
        @pytest.fixture
        def backend(self, redis_url):
            backend = RedisBackend(redis_url)
            backend.migrate()
            yield backend
            backend.close()

        @pytest.fixture
        def reopen(self, redis_url):
            return partial(RedisBackend, redis_url)

``backend`` must be empty and migrated for every test. ``reopen`` is needed where the backend's ``is_concurrent`` is
True: races then run over processes, which open the backend themselves. It is also needed where ``is_durable`` is True:
what was committed has to be there when the storage is opened once more. No test is to be overridden.
"""

from importlib import import_module
from pkgutil import iter_modules

import pytest

_MODULE_NAMES = [f"{__name__}.{part.name}" for part in iter_modules(__path__)]
# Before they are imported, so that pytest rewrites their assertions.
pytest.register_assert_rewrite(*_MODULE_NAMES)
for _part in _MODULE_NAMES:
    import_module(_part)

from identity.storage.contract.harness import ContractBase  # noqa: E402

__all__ = ["StorageContract"]


class StorageContract(*ContractBase.__subclasses__()):  # type: ignore[misc]
    """The whole contract, from the modules in this package."""
