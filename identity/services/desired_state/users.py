"""People and service users in the desired state, with the service users' keys."""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from identity.crypto.signature_keys import parse_public_key
from identity.domain.deletion_impact import DeletionTarget
from identity.domain.errors import Invalid, NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.service_user_keys import ServiceUserKey
from identity.domain.users import Agent, HumanUser, ServiceUser, Subject
from identity.services.attributes import ATTRIBUTES_MEMBER
from identity.services.audit import to_json_value
from identity.services.commands.desired_state import ServiceUserKeySpec, ServiceUserSpec, UserSpec
from identity.services.commands.service_users import (
    AddServiceUserKey,
    ChangeServiceUser,
    CreateAgent,
    CreateServiceUser,
    UploadServiceUserKey,
)
from identity.services.commands.users import ChangeHumanUser, CreateHumanUser
from identity.services.desired_state.federated_credentials import ensure_federated_credentials
from identity.services.desired_state.reconciler import ChangeAction, Reconciler, command_from_spec
from identity.services.users import ImportedUser
from identity.storage.paging import iterate_rows
from identity.storage.stores.users import UserKind

_KEY = "service user key"
_AT_ONCE = 500

UserT = TypeVar("UserT", HumanUser, ServiceUser)


def ensure_users(
    build: Reconciler, path: str, organization: Organization, described: tuple[UserSpec, ...] | None
) -> None:
    """The people of an organization. New ones have no password: they request a link, or a manager issues one."""
    if described is None:
        return
    build.require("user.write", organization)
    users = build.services.users
    if build.create_all:
        _add_people(build, path, organization, described)
        return
    for number, spec in enumerate(described):
        user_path, name = f"{path}.users[{number}]", _login_name(spec.user_name, organization)
        user = build.ensure(
            user_path,
            name,
            # They are no field of the user.
            spec.model_copy(update={ATTRIBUTES_MEMBER: None}),
            users,
            ChangeHumanUser,
            find=partial(_find, build, organization, spec, HumanUser),
            create=partial(
                users.create, organization.id, command_from_spec(spec, CreateHumanUser), id=build.new_entity_id(spec)
            ),
        )
        if user is not None and spec.attributes:
            with build.collect_problems(user_path):
                _change_attributes(build, name, user, spec.attributes)
    build.prune_entities(
        f"{path}.users",
        users,
        lambda: iterate_rows(partial(build.storage.users.page, organization.id, UserKind.HUMAN)),
        lambda user: _login_name(user.user_name, organization),
    )


def _change_attributes(build: Reconciler, name: str, user: HumanUser, described: Mapping[str, object]) -> None:
    before = build.services.attributes.user_values([user])[user.id]
    command = ChangeHumanUser(attributes=dict(described))
    after = build.services.users.change(user.id, command, principal=build.principal)
    if after.version != user.version:
        values = build.services.attributes.user_values([user])[user.id]
        changed = ", ".join(sorted(key for key in described if values.get(key) != before.get(key)))
        build.record_change(ChangeAction.CHANGE, build.services.users.kind_label, name, f"attributes: {changed}")


def _add_people(build: Reconciler, path: str, organization: Organization, described: tuple[UserSpec, ...]) -> None:
    people = build.iter_items(f"{path}.users", described)
    while part := list(islice(people, _AT_ONCE)):
        imported_users = [ImportedUser(spec, spec.active, build.new_entity_id(spec)) for _, spec in part]
        created = build.services.users.create_many(organization.id, imported_users)
        for (number, spec), user in zip(part, created, strict=True):
            user_path = f"{path}.users[{number}]"
            with build.collect_problems(user_path):
                if isinstance(user, Invalid):
                    raise user
                build.register_id(user_path, spec, user.id)
        build.progress(len(part))


def ensure_service_users(
    build: Reconciler, path: str, organization: Organization, described: tuple[ServiceUserSpec, ...] | None
) -> None:
    if described is None:
        return
    build.require("service_user.write", organization)
    users = build.services.service_users
    for number, spec in build.iter_items(f"{path}.service_users", described):
        user_path, name = f"{path}.service_users[{number}]", _login_name(spec.user_name, organization)
        user = build.ensure(
            user_path,
            name,
            spec,
            users,
            ChangeServiceUser,
            find=partial(_find, build, organization, spec, ServiceUser),
            create=partial(_create_service_user, build, user_path, organization, spec),
        )
        if user is not None and _is_owner_described(build, user_path, organization, user, spec):
            _ensure_keys(build, user_path, name, user, spec)
            ensure_federated_credentials(build, user_path, name, user.id, spec.federated_credentials)
    build.prune_entities(
        f"{path}.service_users",
        users,
        lambda: iterate_rows(partial(build.storage.users.page, organization.id, UserKind.SERVICE)),
        lambda user: _login_name(user.user_name, organization),
    )


def _create_service_user(
    build: Reconciler, path: str, organization: Organization, spec: ServiceUserSpec
) -> ServiceUser:
    """The service user, or the agent, which is stopped until its owner confirms it. Raises Invalid, Denied."""
    users, id_ = build.services.service_users, build.new_entity_id(spec)
    if spec.owner is None:
        return users.create(organization.id, command_from_spec(spec, CreateServiceUser), id=id_)
    subject = _find_owner(build, path, organization, spec)
    if subject is None:
        raise Invalid({"owner": gettext_lazy("An agent acts for a person of its organization.")})
    owner = build.services.users.get_changeable(subject.user.id, build.principal)
    return users.create_agent(owner, command_from_spec(spec, CreateAgent), confirmed=False, id=id_)


def _find_owner(build: Reconciler, path: str, organization: Organization, spec: ServiceUserSpec) -> Subject | None:
    subject = None if spec.owner is None else build.resolve_user(path, spec.owner, organization)
    is_person = subject is not None and isinstance(subject.user, HumanUser)
    return subject if is_person and subject is not None and subject.organization.id == organization.id else None


def _is_owner_described(
    build: Reconciler, path: str, organization: Organization, user: ServiceUser, spec: ServiceUserSpec
) -> bool:
    """True for a service user that may have keys of the document; a problem for another owner, and keys of an agent."""
    owner_id = user.owner_user_id if isinstance(user, Agent) else None
    found = _find_owner(build, path, organization, spec)
    if owner_id != (None if found is None else found.user.id):
        sentence = gettext_lazy("The owner of an agent does not change, and other service users have none.")
        build.add_problem(f"{path}.owner", sentence)
    elif owner_id is not None and (spec.keys or spec.generated_key or spec.federated_credentials):
        sentence = gettext_lazy("Only the person for whom this agent acts creates its keys, in their account.")
        build.add_problem(f"{path}.keys", sentence)
    return owner_id is None and spec.owner is None


def _ensure_keys(build: Reconciler, path: str, name: str, user: ServiceUser, described: ServiceUserSpec) -> None:
    for number, spec in enumerate(described.keys or ()):
        with build.collect_problems(f"{path}.keys[{number}]"):
            _ensure_key(build, f"{path}.keys[{number}]", name, user, spec)
    if described.generated_key is not None:
        live = (key for key in _keys(build, user) if key.is_live(build.services.now))
        if all(build.has_seen(_KEY, service_user_key.id) for service_user_key in live):
            with build.collect_problems(f"{path}.generated_key"):
                _generate_key(build, name, user, described.generated_key)
    elif described.keys is not None:
        build.prune_rows(
            f"{path}.keys",
            _KEY,
            lambda: _keys(build, user),
            key=lambda key: (key.id,),
            name=lambda key: f"{key.id} of {name}",
            remove=lambda key: build.services.service_users.remove_key(user.id, key.id, principal=build.principal),
            effects=lambda key: build.services.deletion_impact(DeletionTarget.KEY, key.id),
        )


def _ensure_key(build: Reconciler, path: str, name: str, user: ServiceUser, described: ServiceUserKeySpec) -> None:
    """The key, matched by its public numbers. An expired one is skipped."""
    public_key = parse_public_key(described.public_key, described.algorithm)
    der = public_key.to_der()
    present = None if build.create_all else next((key for key in _keys(build, user) if key.public_key == der), None)
    if present is None:
        if described.expires_at is not None and described.expires_at <= build.services.now:
            return
        users, command = build.services.service_users, command_from_spec(described, UploadServiceUserKey)
        key = users.upload_key(user.id, command, principal=build.principal, id=build.new_entity_id(described))
        build.record_change(ChangeAction.ADD, _KEY, f"of {name}")
    else:
        key = present
        if public_key.algorithm != key.algorithm:
            raise Invalid(
                {"algorithm": gettext_lazy("Keys do not change: this one says {value}.", value=str(key.algorithm))}
            )
        if described.expires_at not in (None, key.expires_at):
            expires_at = to_json_value(key.expires_at)
            raise Invalid({"expires_at": gettext_lazy("Keys do not change: this one says {value}.", value=expires_at)})
    if build.mark_seen(path, _KEY, key.id):
        build.register_id(path, described, key.id)


def _generate_key(build: Reconciler, name: str, user: ServiceUser, described: AddServiceUserKey) -> None:
    file = build.services.service_users.add_key(user.id, described, principal=build.principal)
    build.key_files.append((name, file))
    build.record_change(ChangeAction.ADD, _KEY, f"of {name}", "generated")


def _keys(build: Reconciler, user: ServiceUser) -> list[ServiceUserKey]:
    return list(iterate_rows(partial(build.storage.credentials.page, ServiceUserKey, user.id)))


def _find(
    build: Reconciler, organization: Organization, described: UserSpec | ServiceUserSpec, kind: type[UserT]
) -> UserT | None:
    """By id, else by user name. Raises NotFound for an id, Invalid for a user of the other kind."""
    stored = build.storage.users
    if described.id is None:
        found = stored.find_by_name(organization.id, described.user_name)
    else:
        found = stored.find(described.id)
        if found is None or found.organization_id != organization.id:
            raise NotFound("user", described.id)
    if found is not None and not isinstance(found, kind):
        raise Invalid(
            {
                "user_name": gettext_lazy(
                    "The organization already has a user or service user with this name. Choose another."
                )
            }
        )
    return found


def _login_name(user_name: str, organization: Organization) -> str:
    return f"{user_name}@{organization.primary_domain}"
