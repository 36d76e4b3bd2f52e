"""Signing in as a person, from their page."""

from pyramid.request import Request
from pyramid.response import Response

from identity.domain.messages import gettext_lazy as _
from identity.domain.users import HumanUser
from identity.http.cookies import request_cookie_headers
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, ActionPage
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.resource_types import USER, ResourceType
from identity.provider.protocol_request import Cookie, CookieKind
from identity.services.commands.impersonations import StartImpersonation
from identity.services.impersonation_rules import PERMISSION


class ImpersonatePage(ActionPage[HumanUser]):
    """Asks for the reason, which the person gets by mail."""

    template = "console/impersonate.html"
    requires_recent_authentication = True

    def __init__(
        self,
        context: RouteContext,
        request: Request,
        *,
        resource_type: ResourceType[HumanUser],
        action: Action[HumanUser],
    ) -> None:
        super().__init__(context, request, resource_type=resource_type, action=action)
        self.fields = ("reason",)

    def submit(self, form: Form) -> Response:
        command = StartImpersonation.decode({"reason": form.text("reason")})
        account, secret = self.services.impersonations.start(
            self.entity.id,
            command,
            impersonator=self.signed_in_account,
            user_agent=self.request.browser_state.user_agent,
        )
        response = self.redirect(self.ACCOUNT_PATH)
        max_age = account.session.ends_at - self.services.now
        cookie = Cookie(CookieKind.SESSION, account.session.id, secret, max_age)
        response.headerlist.extend(request_cookie_headers(self.request, (cookie,)))
        return response


IMPERSONATE = Action[HumanUser](
    path="/impersonate",
    permission=PERMISSION,
    page=ImpersonatePage,
    run=lambda page, user: None,
    is_available=lambda page, user: page.services.impersonations.can_start(user.id, page.signed_in_account),
    label=_("Sign in as this person"),
    button=_("Sign in as this person …"),
    description=_("See their account and their applications as they do, for 15 minutes."),
    title=_("Sign in as {name}?"),
    impact=(
        _("You see the account and the applications of {name}, for 15 minutes at most."),
        _("You cannot change the account, agree to anything, or open the console during that time."),
        _("Applications learn that it is you. The audit trail names both of you."),
        _("{name} gets a mail with your name and the reason."),
    ),
    submit_label=_("Sign in as this person"),
    cancel_label=_("Cancel"),
    is_destructive=False,
)


def return_path(user_id: str) -> str:
    """The page after the end: that of the person."""
    return f"{CONSOLE_PATH}{USER.path.partition('{')[0]}{user_id}"
