"""A PIN as a second factor, with a claim that says since when, and a page of the console that lists who has one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyramid.config import Configurator
from pyramid.response import Response

from identity.api.crypto import PasswordHasher
from identity.api.entities import Invalid, Organization, User
from identity.api.grants import ClaimsScope, Scope
from identity.api.pages import Form, NavigationItem, gettext_lazy
from identity.api.plugins import hookimpl, setting
from identity.api.services import Lookup, Principal, RecordNamespace
from identity.api.sign_in import EnrolPage, Factor, FactorPage, ProvePage
from identity.plugins.console.api import (
    CONSOLE_PATH,
    ORGANIZATION,
    Cells,
    ConsolePage,
    PageRequest,
    ResourceList,
    ResultPage,
    UserKind,
    add_console_routes,
    list_route,
)

#: The scope that applications request, and the claim that it opens.
SCOPE, CLAIM = "pin", "pin_since"
#: The kind of the records that say since when a user has a PIN, by user id.
SINCE = "since"


class PinFactor(Factor):
    """Knowledge, like the password: it does not count as a second kind of factor, but is still requested."""

    name: ClassVar[str] = "pin"
    label: ClassVar[str] = gettext_lazy("PIN")
    hint: ClassVar[str] = gettext_lazy("A number that you choose.")
    methods: ClassVar[tuple[str, ...]] = ("pin", "hwk")
    icon: ClassVar[str] = "key"
    allows_multiple: ClassVar[bool] = False


class PinPage(FactorPage):
    factor = PinFactor
    fields = ("pin",)
    secret_fields = frozenset({"pin"})
    #: Set at start.
    namespace: ClassVar[RecordNamespace]
    shortest: ClassVar[int]

    @property
    def hasher(self) -> PasswordHasher:
        hasher: PasswordHasher = self.request.registry.application.process_state.hasher
        return hasher


class ProvePinPage(PinPage, ProvePage):
    template = "pin/prove.html"

    def submit(self, form: Form) -> Response:
        pin = form.text("pin")
        if not pin:
            raise Invalid({"pin": gettext_lazy("Enter your PIN.")})
        return self.prove(lambda: self._verify(pin), gettext_lazy("This is not your PIN."), field="pin")

    def _verify(self, pin: str) -> tuple[str, ...] | None:
        for enrolment in self.enrolments:
            if self.hasher.verify(enrolment.value["hash"], pin).is_match:
                self.request.services.factors.update_after_use(enrolment, enrolment.value)
                return PinFactor.methods
        return None


class EnrolPinPage(PinPage, EnrolPage):
    template = "pin/enrol.html"

    def template_variables(self) -> Mapping[str, object]:
        return {"shortest": self.shortest}

    def submit(self, form: Form) -> Response:
        pin = form.text("pin")
        if len(pin) < self.shortest or not pin.isdecimal():
            raise Invalid({"pin": gettext_lazy("Choose at least {n} digits.", n=self.shortest)})
        with self.rate_limited():
            hashed = self.hasher.hash(pin)
        user, services = self.human_user.user, self.request.services
        records = services.record_service(self.namespace)
        records.delete(SINCE, user.id)
        records.add(SINCE, user.id, {"at": services.now.isoformat()}, user_id=user.id)
        return self.enrol({"hash": hashed}, PinFactor.methods, replaces_existing=True)


class PinList:
    """Which users of an organization have a PIN."""

    def __init__(self, namespace: RecordNamespace) -> None:
        self._namespace = namespace

    def fetch(self, page: ConsolePage, request: PageRequest) -> ResultPage[Any]:
        return page.services.storage.users.page(page.entity_of(Organization).id, UserKind.HUMAN, request)

    def rows(self, page: ConsolePage, users: Sequence[User]) -> Sequence[Cells]:
        return [self._row(page, user) for user in users]

    def _row(self, page: ConsolePage, user: User) -> Cells:
        record = page.services.lookup.find_record(self._namespace, SINCE, user.id)
        since = "–" if record is None else page.template_macros.when(record.created_at)
        return (page.template_macros.named(user.display_name, f"{CONSOLE_PATH}/users/{user.id}"), since)

    @property
    def resource(self) -> ResourceList:
        return ResourceList(
            path="/pins",
            permission="user.read",
            section="pins",
            title=gettext_lazy("PINs"),
            columns=(gettext_lazy("User"), gettext_lazy("Since")),
            sort_orders=(("user_name", gettext_lazy("User")),),
            fetch=self.fetch,
            rows=self.rows,
            empty_title=gettext_lazy("No users yet"),
            empty_text=gettext_lazy("Users choose a PIN in their account."),
        )


class PinPlugin:
    """Adds a PIN as a factor besides the password."""

    hookspecs = 1

    @dataclass(frozen=True)
    class Settings:
        """The keys ``identity.plugin.pin.*`` of the ini file."""

        shortest: int = setting("The smallest number of digits.", default=4)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @hookimpl
    def identity_record_namespace(self, namespace: RecordNamespace) -> None:
        self.namespace = namespace

    @hookimpl
    def identity_factors(self) -> Iterable[Factor]:
        return [PinFactor()]

    @hookimpl
    def identity_scopes(self) -> Iterable[Scope]:
        return [ClaimsScope(SCOPE, frozenset({CLAIM}))]

    @hookimpl
    def identity_user_claims(self, user: User, scopes: tuple[str, ...], lookup: Lookup) -> Mapping[str, object]:
        record = lookup.find_record(self.namespace, SINCE, user.id) if SCOPE in scopes else None
        return {} if record is None else {CLAIM: record.value["at"]}

    @hookimpl
    def identity_configure(self, config: Configurator) -> None:
        config.include("identity.pages")
        config.add_page_templates("tests.house.sample_plugins:templates")
        PinPage.namespace = self.namespace
        PinPage.shortest = self.settings.shortest
        config.add_factor_pages(ProvePinPage, EnrolPinPage)
        add_console_routes(config, [list_route(PinList(self.namespace).resource, ORGANIZATION)])

    @hookimpl(optionalhook=True)
    def console_navigation(self, principal: Principal, organization: Organization | None) -> Iterable[NavigationItem]:
        if organization is None:
            return []
        return [NavigationItem(label="PINs", href=f"{CONSOLE_PATH}/organizations/{organization.id}/pins", icon="key")]
