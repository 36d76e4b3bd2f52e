"""The interaction's page. Each user has a code, which is sealed in a record."""

import hmac
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from pyramid.config import Configurator
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity.api.entities import Invalid
from identity.api.pages import Form, FormPage, FormRedisplay, gettext_lazy
from identity.api.services import RecordNamespace, RecordService
from identity.api.sign_in import PendingSignInContext
from sample_plugin.interaction import NAME

ATTEMPTS = 5
SPAN = timedelta(minutes=10)

#: The record kind; the keys are user ids.
CODES = "codes"
SHORTEST = 4


class DoorPinPage(FormPage):
    """Asks for the code, which a new user chooses here. The right one completes the interaction."""

    template = "sample/door_pin.html"
    fields = ("code",)
    secret_fields = frozenset({"code"})
    context: PendingSignInContext

    @property
    def codes(self) -> RecordService:
        """The plugin's records."""
        records: RecordService = self.request.services.record_service(self.request.registry.sample_record_namespace)
        return records

    def template_variables(self) -> Mapping[str, object] | Response:
        """Whether the user still has to choose a code; without an authenticated user, resumes the sign-in."""
        proved = self.context.sign_in.authenticated_subject
        return self.go_on() if proved is None else {"first": self.codes.find(CODES, proved.user.id) is None}

    def submit(self, form: Form) -> Response:
        """Complete the interaction if the code is right."""
        proved = self.context.sign_in.authenticated_subject
        if proved is None:
            return self.go_on()
        typed = form.text("code")
        if not typed:
            raise Invalid({"code": gettext_lazy("Enter the code.")})
        record = self.codes.find(CODES, proved.user.id)
        if record is None and len(typed) < SHORTEST:
            raise Invalid({"code": gettext_lazy("Use at least {n} characters.", n=SHORTEST)})
        if record is None:
            # If another tab has chosen a code in the meantime, ``add`` returns that one, and it counts.
            record = self.codes.add(CODES, proved.user.id, {"code": typed}, user_id=proved.user.id, seal=True)
        if record is not None:
            self.count(proved.user.id)
            if not hmac.compare_digest(typed.encode(), record.value["code"].encode()):
                raise Invalid({"code": gettext_lazy("This is not the code.")})
        self.request.services.sign_ins.complete_interaction(self.context.pending, NAME, methods=("kba",))
        return self.go_on()

    def count(self, user_id: str) -> None:
        """Count an attempt, right or wrong. Raises FormRedisplay after too many."""
        services = self.request.services
        # Committed at once: the attempt counts even if the request fails. ``request.services`` is new afterwards.
        over = self.request.run_once(
            "code attempt",
            lambda: services.storage.attempts.count_use(
                f"sample door:{user_id}", used_at=services.now, window=SPAN, limit=ATTEMPTS
            ),
        )
        if over is not None:
            seconds = max(1, int((over - services.now).total_seconds()))
            message = gettext_lazy("Too many attempts. Wait {n} seconds, then try again.", n=seconds)
            raise FormRedisplay(message, status=429, headers={"Retry-After": str(seconds)})

    def go_on(self) -> Response:
        """Resume the sign-in, which decides on the next step."""
        return self.redirect(self.context.resume_path)

    def preferred_locales(self) -> str:
        """The language chosen on an earlier page, else the ``ui_locales`` of the application."""
        return self.context.pending.ui_locales

    def save_language(self, language: str) -> bool:
        """Store the language with the pending sign-in, so that its next pages use it too."""
        self.request.services.sign_ins.set_language(self.context.pending, language)
        return True


def configure(config: Configurator, namespace: RecordNamespace) -> None:
    """Register the page, its template and its translations."""
    config.include("identity.pages")
    config.registry.sample_record_namespace = namespace
    config.add_page_templates("sample_plugin:templates")
    config.add_catalogs(Path(__file__).parent / "locale")
    config.add_page(
        "sample.door",
        f"/login/{{request}}/{NAME}",
        DoorPinPage,
        permission=NO_PERMISSION_REQUIRED,
        factory=PendingSignInContext,
    )
