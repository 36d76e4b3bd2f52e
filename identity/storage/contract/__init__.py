"""The contract that every storage backend passes, as a pytest class to inherit from.

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

``backend`` must be empty and migrated for every test. ``reopen`` is needed where the backend's ``concurrent`` is True:
races then run over processes, which open the backend themselves. No test is to be overridden.
"""

from pkgutil import iter_modules

import pytest

# Before they are imported, so that a failing assert shows what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{part.name}" for part in iter_modules(__path__)))

from identity.storage.contract.applications import ApplicationContract  # noqa: E402
from identity.storage.contract.atomicity import AtomicityContract  # noqa: E402
from identity.storage.contract.attempts import AttemptContract  # noqa: E402
from identity.storage.contract.audit import AuditContract  # noqa: E402
from identity.storage.contract.authorization_codes import AuthorizationCodeContract  # noqa: E402
from identity.storage.contract.authorization_requests import AuthorizationRequestContract  # noqa: E402
from identity.storage.contract.cascades import CascadeContract  # noqa: E402
from identity.storage.contract.credentials import CredentialContract  # noqa: E402
from identity.storage.contract.domains import DomainContract  # noqa: E402
from identity.storage.contract.effects import EffectContract  # noqa: E402
from identity.storage.contract.entities import EntityContract  # noqa: E402
from identity.storage.contract.lists import ListContract  # noqa: E402
from identity.storage.contract.managers import ManagerContract  # noqa: E402
from identity.storage.contract.organizations import OrganizationContract  # noqa: E402
from identity.storage.contract.outbox import OutboxContract  # noqa: E402
from identity.storage.contract.passwords import PasswordContract  # noqa: E402
from identity.storage.contract.project_grants import ProjectGrantContract  # noqa: E402
from identity.storage.contract.projects import ProjectContract  # noqa: E402
from identity.storage.contract.races import RaceContract  # noqa: E402
from identity.storage.contract.records import RecordContract  # noqa: E402
from identity.storage.contract.refresh_tokens import ConnectionContract, RefreshTokenContract  # noqa: E402
from identity.storage.contract.sessions import SessionContract  # noqa: E402
from identity.storage.contract.signing_keys import SigningKeyContract  # noqa: E402
from identity.storage.contract.tokens import TokenContract  # noqa: E402
from identity.storage.contract.user_grants import UserGrantContract  # noqa: E402
from identity.storage.contract.user_lists import UserListContract  # noqa: E402
from identity.storage.contract.users import UserContract  # noqa: E402
from identity.storage.contract.values import ValueContract  # noqa: E402

__all__ = ["StorageContract"]


class StorageContract(
    EntityContract,
    ValueContract,
    ListContract,
    OrganizationContract,
    DomainContract,
    ProjectContract,
    ProjectGrantContract,
    UserGrantContract,
    UserContract,
    UserListContract,
    PasswordContract,
    CredentialContract,
    ApplicationContract,
    ManagerContract,
    SessionContract,
    AuthorizationRequestContract,
    AttemptContract,
    AuthorizationCodeContract,
    TokenContract,
    RefreshTokenContract,
    ConnectionContract,
    SigningKeyContract,
    OutboxContract,
    AuditContract,
    RecordContract,
    CascadeContract,
    EffectContract,
    AtomicityContract,
    RaceContract,
):
    """Everything that is demanded of a backend, store by store, and of its transactions."""
