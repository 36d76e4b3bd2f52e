"""Code to connect an application or a service user with, for each framework: a template and what it needs.

Texts here are code, commands and names of products: they are the same in all languages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

from jinja2 import Environment, StrictUndefined

from identity.domain.applications import Application, ApplicationType

_WEB, _NATIVE, _BROWSER, _API = (
    frozenset({kind})
    for kind in (ApplicationType.WEB, ApplicationType.NATIVE, ApplicationType.BROWSER, ApplicationType.API)
)
_KIT = 'pip install "identity-iam-client[{}]"'
_STARTERS = (
    "# build.gradle: implementation 'org.springframework.boot:spring-boot-starter-webmvc'\n"
    "# build.gradle: implementation 'org.springframework.boot:spring-boot-starter-security-oauth2-{}'"
)
_SET_SECRET = "export CLIENT_SECRET=…"  # noqa: S105 - to be filled in
#: The scheme of the redirect URI of native applications, a reversed domain name (RFC 8252 §7.1).
_NATIVE_CALLBACK = "com.example.app:/callback"


@dataclass(frozen=True)
class SnippetFile:
    """``template`` is the name of a file in templates/snippets, without its suffix."""

    name: str
    template: str


@dataclass(frozen=True, kw_only=True)
class Framework:
    """``types`` are the kinds of applications that it fits, none for service users. ``install`` and ``run`` are
    commands. ``origin`` is where it runs during development, ``callback`` and ``home`` are paths there to come back to
    after signing in and out; without an origin, ``callback`` is a whole address.
    """

    key: str
    label: str
    files: Sequence[SnippetFile]
    types: frozenset[ApplicationType] = frozenset()
    install: str = ""
    run: str = ""
    origin: str = ""
    callback: str = ""
    home: str = ""

    def redirect_uri(self, origin: str = "") -> str:
        """The address of its callback; empty if it has none."""
        return f"{origin or self.origin}{self.callback}" if self.origin else self.callback

    def post_logout_uri(self, origin: str = "") -> str:
        return f"{origin or self.origin}{self.home}" if self.home else ""


_PORT_8000 = {"origin": "http://localhost:8000", "callback": "/callback", "home": "/"}

APPLICATION_FRAMEWORKS = (
    Framework(
        key="fastapi",
        label="FastAPI",
        types=_WEB,
        install=f"{_KIT.format('fastapi')} uvicorn",
        files=[SnippetFile("main.py", "fastapi_web")],
        run="uvicorn main:app --port 8000",
        **_PORT_8000,
    ),
    Framework(
        key="django",
        label="Django",
        types=_WEB,
        install=_KIT.format("django"),
        files=[SnippetFile("settings.py", "django_settings"), SnippetFile("urls.py", "django_web")],
        run="python manage.py migrate && python manage.py runserver 8000",
        **_PORT_8000,
    ),
    Framework(
        key="flask",
        label="Flask",
        types=_WEB,
        install=_KIT.format("flask"),
        files=[SnippetFile("app.py", "flask_web")],
        run="flask run --port 8000",
        **_PORT_8000,
    ),
    Framework(
        key="express",
        label="Express",
        types=_WEB,
        install="npm install express express-session openid-client",
        files=[SnippetFile("server.mjs", "express_web")],
        run="node server.mjs",
        origin="http://localhost:3000",
        callback="/callback",
        home="/",
    ),
    Framework(
        key="next",
        label="Next.js",
        types=_WEB,
        install="npm install next-auth@4",
        files=[
            SnippetFile("app/api/auth/[...nextauth]/route.js", "next_auth"),
            SnippetFile("app/page.js", "next_page"),
        ],
        run="NEXTAUTH_URL={origin} NEXTAUTH_SECRET=$(openssl rand -hex 32) npx next dev",
        origin="http://localhost:3000",
        callback="/api/auth/callback/identity",
    ),
    Framework(
        key="spring",
        label="Spring Boot",
        types=_WEB,
        install=_STARTERS.format("client"),
        files=[
            SnippetFile("src/main/resources/application.yaml", "spring_web"),
            SnippetFile("src/main/java/com/example/Application.java", "spring_web_java"),
        ],
        run="./gradlew bootRun",
        origin="http://localhost:8000",
        callback="/login/oauth2/code/identity",
        home="/",
    ),
    Framework(
        key="go",
        label="Go",
        types=_WEB,
        install="go get github.com/coreos/go-oidc/v3 golang.org/x/oauth2",
        files=[SnippetFile("main.go", "go_web")],
        run="go run .",
        origin="http://localhost:8000",
        callback="/callback",
    ),
    Framework(
        key="dotnet",
        label=".NET",
        types=_WEB,
        install="dotnet add package Microsoft.AspNetCore.Authentication.OpenIdConnect",
        files=[SnippetFile("Program.cs", "dotnet_web")],
        run="dotnet run",
        origin="http://localhost:5000",
        callback="/signin-oidc",
        home="/signout-callback-oidc",
    ),
    Framework(
        key="react",
        label="React",
        types=_BROWSER,
        install="npm install react-oidc-context oidc-client-ts",
        files=[SnippetFile("src/main.jsx", "react")],
        run="npm run dev",
        origin="http://localhost:5173",
        callback="/",
        home="/",
    ),
    Framework(
        key="fastapi",
        label="FastAPI",
        types=_BROWSER,
        install=f"{_KIT.format('fastapi')} uvicorn",
        files=[SnippetFile("main.py", "fastapi_browser")],
        run="uvicorn main:app --port 8000",
        **_PORT_8000,
    ),
    Framework(
        key="express",
        label="Express",
        types=_BROWSER,
        install="npm install express express-session openid-client",
        files=[SnippetFile("server.mjs", "express_web")],
        run="node server.mjs",
        origin="http://localhost:3000",
        callback="/callback",
        home="/",
    ),
    Framework(
        key="ios",
        label="iOS",
        types=_NATIVE,
        files=[SnippetFile("SignIn.swift", "ios")],
        callback=_NATIVE_CALLBACK,
    ),
    Framework(
        key="android",
        label="Android",
        types=_NATIVE,
        install='// build.gradle.kts: implementation("net.openid:appauth:0.11.1")',
        files=[SnippetFile("MainActivity.kt", "android")],
        callback=_NATIVE_CALLBACK,
    ),
    Framework(
        key="curl",
        label="curl",
        types=_WEB | _BROWSER | _NATIVE,
        files=[SnippetFile("sign-in.sh", "curl_web")],
        run="bash sign-in.sh",
        origin="http://localhost:8000",
        callback="/callback",
    ),
    Framework(
        key="fastapi",
        label="FastAPI",
        types=_API,
        install=f"{_KIT.format('fastapi')} uvicorn",
        files=[SnippetFile("main.py", "fastapi_api")],
        run="uvicorn main:app --port 8000",
    ),
    Framework(
        key="django",
        label="Django",
        types=_API,
        install=_KIT.format("django"),
        files=[SnippetFile("settings.py", "django_settings"), SnippetFile("urls.py", "django_api")],
        run="python manage.py runserver 8000",
    ),
    Framework(
        key="flask",
        label="Flask",
        types=_API,
        install=_KIT.format("flask"),
        files=[SnippetFile("app.py", "flask_api")],
        run="flask run --port 8000",
    ),
    Framework(
        key="express",
        label="Express",
        types=_API,
        install="npm install express openid-client",
        files=[SnippetFile("server.mjs", "express_api")],
        run="node server.mjs",
    ),
    Framework(
        key="spring",
        label="Spring Boot",
        types=_API,
        install=_STARTERS.format("resource-server"),
        files=[
            SnippetFile("src/main/resources/application.yaml", "spring_api"),
            SnippetFile("src/main/java/com/example/Application.java", "spring_api_java"),
        ],
        run="./gradlew bootRun",
    ),
    Framework(key="go", label="Go", types=_API, files=[SnippetFile("main.go", "go_api")], run="go run main.go"),
    Framework(
        key="curl",
        label="curl",
        types=_API,
        files=[SnippetFile("introspect.sh", "curl_api")],
        run="TOKEN=… bash introspect.sh",
    ),
)

SERVICE_USER_FRAMEWORKS = (
    Framework(
        key="curl",
        label="curl",
        files=[SnippetFile("token.sh", "service_user_curl")],
        run="PROJECT_ID=… bash token.sh",
    ),
    Framework(
        key="python",
        label="Python",
        install="pip install identity-iam-client",
        files=[SnippetFile("call.py", "service_user_python")],
        run="PROJECT_ID=… API=https://api.example.com/ python call.py",
    ),
    Framework(
        key="go",
        label="Go",
        files=[SnippetFile("main.go", "service_user_go")],
        run="PROJECT_ID=… go run main.go",
    ),
    Framework(
        key="github-actions",
        label="GitHub Actions",
        install="gh secret set SERVICE_USER_KEY < key.json",
        files=[SnippetFile(".github/workflows/call-the-api.yaml", "service_user_github")],
    ),
    Framework(
        key="kubernetes",
        label="Kubernetes",
        install="kubectl create secret generic service-user-key --from-file=key.json",
        files=[SnippetFile("call-the-api.yaml", "service_user_kubernetes")],
        run="kubectl apply -f call-the-api.yaml",
    ),
)


def application_frameworks(application: Application) -> Sequence[Framework]:
    return [framework for framework in APPLICATION_FRAMEWORKS if application.type in framework.types]


def choose_framework(frameworks: Sequence[Framework], key: str) -> Framework:
    """The framework with this key, else the first."""
    return next((framework for framework in frameworks if framework.key == key), frameworks[0])


def service_values(
    issuer: str, namespace: str, default_namespace: str, metadata: Mapping[str, str]
) -> dict[str, object]:
    """What all snippets may contain about the service."""
    endpoints = ("authorization_endpoint", "token_endpoint", "introspection_endpoint")
    return {
        "issuer": issuer,
        "is_http": urlsplit(issuer).scheme == "http",
        "namespace": namespace,
        "default_namespace": default_namespace,
        **{name: metadata.get(name, "") for name in endpoints},
    }


def application_values(application: Application, framework: Framework, origin: str) -> dict[str, object]:
    """The same about an application. Its name is not among them: anybody who may write it would write code."""
    redirect_uri = framework.redirect_uri(origin)
    return {
        "client_id": application.id,
        "project_id": application.project_id,
        "method": application.authentication_method,
        "has_secret": application.uses_client_secret,
        "is_api": application.type is ApplicationType.API,
        "redirect_uri": redirect_uri,
        "redirect_uri_encoded": quote(redirect_uri, safe=""),
        "post_logout_uri": framework.post_logout_uri(origin),
    }


def render_files(environment: Environment, framework: Framework, values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Name and text of each file."""
    snippets = _snippet_environment(environment)
    return [
        (file.name, snippets.get_template(f"snippets/{file.template}.txt").render(values)) for file in framework.files
    ]


def commands(framework: Framework, application: Application | None, origin: str) -> str:
    """The commands that run the snippet."""
    needs_secret = application is not None and application.uses_client_secret
    lines = [_SET_SECRET if needs_secret else "", framework.run.replace("{origin}", origin or framework.origin)]
    return "\n".join(line for line in lines if line) if framework.run else ""


@lru_cache(maxsize=4)
def _snippet_environment(environment: Environment) -> Environment:
    """With other delimiters, because those of Jinja are used in the code, as in ``${{ secrets.KEY }}``."""
    return environment.overlay(
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        undefined=StrictUndefined,
    )
