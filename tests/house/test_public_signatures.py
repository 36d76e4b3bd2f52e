"""Signatures of public names use public types, or types of values that plugins receive and need not name."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.house.test_public_api import public_names

#: Types of values that plugins receive or pass on but never name. If a plugin has to import one of these, make it
#: public. Think as hard about a new entry as about a new public name.
HANDED_OVER = {
    "applications": {"ClientSecret", "ConsentRule", "SubjectType"},
    "argon2id": {"HashVerification"},
    "attribute_fields": {"AttributeFields"},
    "attributes": {"AttributeDefinition"},
    "audit": {"Actor"},
    "authorization_request": {"AuthorizationRequest"},
    "backend": {"DatabaseFacts"},
    "clients": {"ServiceUserClient"},
    "deletion_impact": {"DeletionImpact", "DeletionTarget"},
    "domains": {"DomainNamespace"},
    "dump": {"StorageDump"},
    "imported_hashes": {"HashScheme"},
    "instance": {"Instance"},
    "interaction": {"ConsentSummary"},
    "layout": {"OrganizationSwitcher"},
    "managers": {"Manager"},
    "messages": {"Message"},
    "federated_credentials": {"IssuerKind"},
    "outbound_http": {"OutboundResponse"},
    "outbox": {"OutboxMessage"},
    "page_branding": {"PageBranding"},
    "paging": {"PageCursor", "PageRequest", "ResultPage", "RowTotal"},
    "permissions": {"ResourceKey"},
    "plugin_host": {"PluginHost"},
    "policies": {"Policy", "SecondFactorRule"},
    "projects": {"ProjectGrant", "UserGrant"},
    "protocol_registry": {"ProtocolRegistry"},
    "protocol_request": {"FormPost"},
    "request_activity": {"RequestActivity"},
    "pyoidc_provider": {"IdentityProvider"},
    "redirect_target": {"RedirectTarget"},
    "registration": {"RegistrationMail"},
    "relying_party": {"ReceivedTokens", "SentAuthorizationRequest"},
    "rendering": {"PageRenderer"},
    "security_profiles": {"SecurityProfile"},
    "service_test_client": {"Credentials"},
    "sessions": {"Session"},
    "settings": {"SmtpSettings"},
    "signers": {"Signer"},
    "tables": {"MemoryTables"},
    "tokens": {"ConnectedDevice", "TokenFamily"},
    "translation": {"MessageCatalog"},
    "users": {"Address", "InitialCredential", "TokenFormat"},
    "webhooks": {"Webhook"},
    "world": {"BrowserSession", "IssuedAuthorization", "PresentableCode", "ServiceUserProgram"},
}


@cache
def parsed(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text("utf-8"))


@cache
def imports(module: ModuleType) -> dict[str, str]:
    """The module of each name that a module imports, even under TYPE_CHECKING."""
    nodes = [node for node in ast.walk(parsed(module)) if isinstance(node, ast.ImportFrom) and node.level == 0]
    return {item.asname or item.name: str(node.module) for node in nodes for item in node.names}


def named_classes(annotation: str, module: ModuleType) -> Iterator[type]:
    """The classes of the service in an annotation."""
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from named_classes(node.value, module)
        if isinstance(node, ast.Name):
            home = import_module(imports(module)[node.id]) if node.id in imports(module) else module
            value = getattr(home, node.id, None)
            if inspect.isclass(value) and value.__module__.startswith("identity."):
                yield value


def annotations(value: Any) -> Iterator[tuple[str, ModuleType]]:
    """All annotations of a function's signature, or of a class's fields and public methods."""
    module = import_module(value.__module__)
    # Not inspect.getsource: Python 3.15 finds no class whose metaclass creates it again, as pydantic's does.
    kinds = (ast.ClassDef, ast.FunctionDef)
    top = next(item for item in ast.walk(parsed(module)) if isinstance(item, kinds) and item.name == value.__name__)
    body = top.body if isinstance(top, ast.ClassDef) else [top]
    for node in body:
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            yield ast.unparse(node.annotation), module
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "test_")):
            every = (*node.args.args, *node.args.kwonlyargs)
            found = [node.returns, *(item.annotation for item in every)]
            yield from ((ast.unparse(item), module) for item in found if item is not None)


def test_signatures_name_public_types() -> None:
    values = [getattr(import_module(module), name) for name, module in public_names().items()]
    public = {value for value in values if inspect.isclass(value)}
    beyond: dict[str, set[str]] = {}
    for value in values:
        if not (inspect.isclass(value) or inspect.isfunction(value)) or not value.__module__.startswith("identity."):
            continue
        for annotation, module in annotations(value):
            for named in named_classes(annotation, module):
                if named not in public and not is_part(value, named):
                    beyond.setdefault(named.__module__.rpartition(".")[2], set()).add(named.__name__)
    assert beyond == HANDED_OVER


def is_part(value: Any, named: type) -> bool:
    """True for attributes of ``Services`` and ``Storage``, which have pages of their own."""
    parts = {"Services": "identity.services.", "Storage": "identity.storage.stores."}
    return named.__module__.startswith(parts.get(value.__name__, "nothing"))
