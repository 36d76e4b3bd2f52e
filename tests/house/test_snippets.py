"""The code on the tabs Connect runs as it is shown: people sign in to it, and APIs check tokens with it."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import yaml

from identity.plugins.console.snippets import APPLICATION_FRAMEWORKS, SERVICE_USER_FRAMEWORKS
from tests.browser.chromium import Chromium
from tests.external_programs import program
from tests.house.docs_programs import submitted
from tests.house.service_processes import free_port
from tests.house.test_tutorials import BIN, EXAMPLES, NEW_PASSWORD, RunningService, service, started

__all__ = ["service"]

pytestmark = pytest.mark.thorough

#: Versions of the packages for Node that the tests install.
NODE_PACKAGES = ("express@5.3.0", "express-session@1.19.0", "openid-client@6.9.0")
NEXT_PACKAGES = ("next@16.4.6", "react@19.3.1", "react-dom@19.3.1", "next-auth@4.24.15")
REACT_PACKAGES = ("react@19.3.1", "react-dom@19.3.1", "react-oidc-context@3.3.1", "oidc-client-ts@3.5.0", "vite@8.4.0")
SPRING_BOOT = "4.0.7"
GO_MODULES = ("github.com/coreos/go-oidc/v3@v3.21.0", "golang.org/x/oauth2@v0.38.0")


class Console:
    """The console of the first owner, without script."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.browser = requests.Session()
        service.sign_in(self.browser, f"{service.issuer}/console")

    def get(self, path: str) -> str:
        response = self.browser.get(f"{self.service.issuer}{path}", timeout=30)
        assert response.status_code == 200, response.text
        return response.text

    def connect(self, path: str, framework: str, origin: str = "") -> dict[str, str]:
        """The code of the tab by file name; adds the addresses that it needs."""
        query = f"?with={framework}" + (f"&at={origin}" if origin else "")
        page = self.get(f"{path}/connect{query}")
        for action in re.findall(r'<form method="post" action="([^"]*/connect/addresses[^"]*)"', page):
            (token,) = set(re.findall(r'name="csrf_token" value="([^"]+)"', page))
            added = self.browser.post(
                f"{self.service.issuer}{html.unescape(action)}", data={"csrf_token": token}, timeout=30
            )
            assert "Not registered" not in added.text
        names = re.findall(r'codebox__head"><span>([^<]+)</span>', page)
        texts = re.findall(r'<pre class="codebox__text"[^>]*>(.*?)</pre>', page, re.DOTALL)
        return {html.unescape(name): html.unescape(text) for name, text in zip(names, texts, strict=True)}


@pytest.fixture(scope="module")
def console(service: RunningService) -> Console:
    return Console(service)


@pytest.fixture(scope="module")
def estate(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A project with one application of each type, their secrets, and a service user with its key file."""
    folder = tmp_path_factory.mktemp("estate")
    state = folder / "state.yaml"
    usual = "consent: never, redirect_uris: [https://shop.example.com/signed-in]"
    state.write_text(
        (EXAMPLES / "service-user" / "state.yaml")
        .read_text()
        .replace(
            "            type: api\n",
            "            type: api\n"
            f"          - {{name: Web, type: web, {usual}}}\n"
            f"          - {{name: Browser, type: browser, {usual}}}\n",
        )
    )
    secrets = folder / "secrets.json"
    service.identity("apply", "-f", state, "--keys-out", folder, "--secrets-out", secrets)
    exported = json.loads(service.identity("export", "--organization", "acme.localhost"))["organization"]
    (project,) = exported["projects"]
    (key_file,) = folder.glob("nightly-report@*.json")
    known = {application["type"]: application["id"] for application in project["applications"]}
    found = {"project": project["id"], "key_file": str(key_file), **known}
    for client_id, members in json.loads(secrets.read_text()).items():
        found[f"secret of {client_id}"] = members["client_secret"]
    found["robot"] = json.loads(key_file.read_text())["userId"]
    return found


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with the packages for Node."""
    folder = tmp_path_factory.mktemp("node")
    install("npm", ["install", "--no-audit", "--no-fund", *NODE_PACKAGES], folder)
    return folder


def install(tool: str, arguments: list[str], folder: Path, **variables: str) -> None:
    """Fetch packages with npm or go. Without them, the test is skipped, or fails if it is required."""
    missing, option = "what judges examples is not installed", "IDENTITY_EXAMPLE_TESTS"
    command = [program(tool, tool, missing=missing, option=option), *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True)
    if done.returncode != 0:
        reason = f"{missing}: {tool} cannot fetch packages"
        if os.environ.get(option) == "required":
            pytest.fail(f"{reason}: {done.stderr!r}")
        pytest.skip(reason)


def write(files: dict[str, str], folder: Path) -> None:
    """Save the files, without the boxes with commands."""
    for name, text in files.items():
        if name.endswith((".py", ".mjs", ".sh", ".go", ".js", ".jsx", ".java", ".yaml")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")


def sign_in(service: RunningService, home: str, *, path: str = "/sign-in") -> str:
    """The first page of the application after a sign-in, and after signing out, a new sign-in asks for a password."""
    with requests.Session() as browser:
        browser.headers["Accept"] = "text/html"
        response = submitted(browser, browser.get(home + path, timeout=30), login_name=service.login_name)
        response = submitted(browser, response, password=NEW_PASSWORD)
        assert response.url.startswith(f"{home}/"), response.text
        text = response.text + browser.get(f"{home}/api/me", timeout=30).text
        assert browser.get(f"{home}/callback?code=stolen&state=foreign", timeout=30).status_code == 400
        browser.get(f"{home}/sign-out", timeout=30)
        assert "login_name" in browser.get(f"{home}/sign-in", timeout=30).text
        return text


def token_of(service: RunningService, estate: dict[str, str]) -> str:
    scope = f"openid urn:service:iam:org:project:id:{estate['project']}:aud urn:service:iam:org:projects:roles"
    arguments = ["--issuer", service.issuer, "--key-file", estate["key_file"], "--scope", scope]
    return str(json.loads(service.identity("token", *arguments))["access_token"])


#: Framework, type of the application → command that serves it, with the port in place of {}.
PYTHON = {
    ("fastapi", "web"): "-m uvicorn main:app --port {}",
    ("fastapi", "browser"): "-m uvicorn main:app --port {}",
    ("fastapi", "api"): "-m uvicorn main:app --port {}",
    ("flask", "web"): "-m flask run --port {}",
    ("flask", "api"): "-m flask run --port {}",
    ("django", "web"): "manage.py runserver {} --noreload",
    ("django", "api"): "manage.py runserver {} --noreload",
}
#: What `django-admin startproject` makes, as far as it matters here.
DJANGO_SETTINGS = """
DEBUG = True
SECRET_KEY = "x" * 50
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""


def check_api(service: RunningService, estate: dict[str, str], address: str) -> None:
    token = token_of(service, estate)
    answer = requests.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    assert answer.json() == {"user": estate["robot"], "roles": ["reader"]}
    assert requests.get(address, timeout=30).status_code == 401
    foreign = service.identity("token", "--issuer", service.issuer, "--key-file", estate["key_file"])
    headers = {"Authorization": f"Bearer {json.loads(foreign)['access_token']}"}
    assert requests.get(address, headers=headers, timeout=30).status_code == 401


@pytest.mark.parametrize(("framework", "kind"), PYTHON)
def test_python(
    service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path, framework: str, kind: str
) -> None:
    port = free_port()
    home, client_id = f"http://localhost:{port}", estate[kind]
    write(console.connect(f"/console/applications/{client_id}", framework, "" if kind == "api" else home), tmp_path)
    variables = {"CLIENT_SECRET": estate[f"secret of {client_id}"]} if kind != "browser" else {}
    if framework == "django":
        shutil.copy(EXAMPLES / "django" / "manage.py", tmp_path)
        (tmp_path / "site_settings.py").write_text(DJANGO_SETTINGS + (tmp_path / "settings.py").read_text())
        migrate = [sys.executable, "manage.py", "migrate"]
        subprocess.run(migrate, cwd=tmp_path, env=os.environ | variables, check=True, capture_output=True)
    command = [BIN / "python", *PYTHON[framework, kind].format(port).split()]
    with started(command, f"{home}/api/none", tmp_path / "log", tmp_path, **variables):
        if kind == "api":
            check_api(service, estate, home)
        else:
            assert "First Owner" in sign_in(service, home)


@pytest.mark.parametrize("kind", ["web", "browser", "api"])
def test_express(
    service: RunningService, console: Console, estate: dict[str, str], node_modules: Path, tmp_path: Path, kind: str
) -> None:
    port = free_port()
    home, client_id = f"http://localhost:{port}", estate[kind]
    write(console.connect(f"/console/applications/{client_id}", "express", "" if kind == "api" else home), node_modules)
    variables = {"CLIENT_SECRET": estate[f"secret of {client_id}"]} if kind != "browser" else {}
    with started(["node", "server.mjs"], f"{home}/none", tmp_path / "log", node_modules, PORT=str(port), **variables):
        if kind == "api":
            check_api(service, estate, home)
        else:
            assert "First Owner" in sign_in(service, home)


@pytest.mark.exhaustive
def test_next(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path) -> None:
    install("npm", ["install", "--no-audit", "--no-fund", *NEXT_PACKAGES], tmp_path)
    port = free_port()
    home, client_id = f"http://localhost:{port}", estate["web"]
    write(console.connect(f"/console/applications/{client_id}", "next", home), tmp_path)
    # As create-next-app makes it.
    layout = "export default ({ children }) => <html><body>{children}</body></html>;"
    (tmp_path / "app" / "layout.js").write_text(layout)
    variables = {
        "CLIENT_SECRET": estate[f"secret of {client_id}"],
        "NEXTAUTH_URL": home,
        "NEXTAUTH_SECRET": "x" * 32,
        "NEXT_TELEMETRY_DISABLED": "1",
    }
    command = ["npx", "next", "dev", "--port", str(port)]
    with (
        started(command, f"{home}/api/auth/providers", tmp_path / "log", tmp_path, **variables),
        requests.Session() as browser,
    ):
        page = browser.get(home, timeout=60)
        assert urlsplit(page.url).path == "/api/auth/signin"
        token = browser.get(f"{home}/api/auth/csrf", timeout=60).json()["csrfToken"]
        form = {"csrfToken": token, "callbackUrl": home}
        response = browser.post(f"{home}/api/auth/signin/identity", form, timeout=60)
        response = submitted(browser, response, login_name=service.login_name)
        response = submitted(browser, response, password=NEW_PASSWORD)
        assert "First Owner" in response.text, (tmp_path / "log").read_text()


@pytest.mark.exhaustive
def test_react(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path) -> None:
    install("npm", ["install", "--no-audit", "--no-fund", *REACT_PACKAGES], tmp_path)
    port = free_port()
    home = f"http://localhost:{port}"
    write(console.connect(f"/console/applications/{estate['browser']}", "react", home), tmp_path)
    (tmp_path / "index.html").write_text('<div id="root"></div><script type="module" src="/src/main.jsx"></script>')
    (tmp_path / "vite.config.mjs").write_text('export default { esbuild: { jsx: "automatic" } };')
    chromium = Chromium(tmp_path / "chromium")
    try:
        with started(["npx", "vite", "--port", str(port), "--strictPort"], home, tmp_path / "log", tmp_path):
            tab = chromium.profile().tab()
            tab.open(home)
            tab.wait(lambda: "Sign in" in tab.text)
            tab.press("Sign in")
            tab.send(login_name=service.login_name)
            tab.send(password=NEW_PASSWORD)
            tab.wait(lambda: "Hello First Owner" in tab.text)
            assert tab.url == f"{home}/"
            tab.press("Sign out")
            tab.wait(lambda: "Sign in" in tab.text)
    finally:
        chromium.close()


@pytest.mark.exhaustive
def test_go(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path) -> None:
    home, client_id, variables = "http://localhost:8000", estate["web"], {"GOFLAGS": "-mod=mod"}
    write(console.connect(f"/console/applications/{client_id}", "go", home), tmp_path)
    install("go", ["mod", "init", "example.com/web"], tmp_path)
    for module in GO_MODULES:
        install("go", ["get", module], tmp_path)
    install("go", ["build", "-o", "program", "."], tmp_path, **variables)
    secret = estate[f"secret of {client_id}"]
    with (
        started(["./program"], f"{home}/none", tmp_path / "log", tmp_path, CLIENT_SECRET=secret),
        requests.Session() as browser,
    ):
        response = submitted(browser, browser.get(f"{home}/sign-in", timeout=30), login_name=service.login_name)
        response = submitted(browser, response, password=NEW_PASSWORD)
        assert response.json()["Name"] == "First Owner"
        assert browser.get(f"{home}/callback?code=stolen&state=foreign", timeout=30).status_code == 400


@pytest.mark.exhaustive
def test_go_api(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path) -> None:
    client_id = estate["api"]
    write(console.connect(f"/console/applications/{client_id}", "go"), tmp_path)
    install("go", ["build", "-o", "program", "main.go"], tmp_path)
    variables = {"CLIENT_SECRET": estate[f"secret of {client_id}"]}
    with started(["./program"], "http://localhost:8000/none", tmp_path / "log", tmp_path, **variables):
        check_api(service, estate, "http://localhost:8000")


#: A project as start.spring.io makes it, but for Maven, which is easier to install than Gradle.
POM = f"""
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.springframework.boot</groupId>
    <artifactId>spring-boot-starter-parent</artifactId>
    <version>{SPRING_BOOT}</version>
  </parent>
  <groupId>com.example</groupId>
  <artifactId>program</artifactId>
  <version>1</version>
  <properties><java.version>17</java.version></properties>
  <dependencies>{{}}</dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.springframework.boot</groupId>
        <artifactId>spring-boot-maven-plugin</artifactId>
      </plugin>
    </plugins>
  </build>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId></dependency>"


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["web", "api"])
def test_spring(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path, kind: str) -> None:
    home, client_id = f"http://localhost:{free_port()}", estate[kind]
    files = console.connect(f"/console/applications/{client_id}", "spring", "" if kind == "api" else home)
    write(files, tmp_path)
    dependencies = re.findall(r"implementation '([^:]+):([^']+)'", "".join(files.values()))
    assert len(dependencies) == 2
    (tmp_path / "pom.xml").write_text(POM.format("".join(DEPENDENCY.format(*names) for names in dependencies)))
    install("mvn", ["--quiet", "--batch-mode", "package"], tmp_path)
    command = ["java", "-jar", "target/program-1.jar", f"--server.port={urlsplit(home).port}"]
    variables = {"CLIENT_SECRET": estate[f"secret of {client_id}"]}
    with started(command, f"{home}/none", tmp_path / "log", tmp_path, **variables), requests.Session() as browser:
        if kind == "api":
            check_api(service, estate, home)
            return
        response = submitted(browser, browser.get(home, timeout=30), login_name=service.login_name)
        response = submitted(browser, response, password=NEW_PASSWORD)
        assert response.text == "Hello First Owner."
        address = f"{home}/login/oauth2/code/identity?code=stolen&state=foreign"
        assert "Hello" not in requests.get(address, timeout=30).text


@pytest.mark.parametrize("kind", ["web", "browser"])
def test_curl_signs_in(
    service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path, kind: str
) -> None:
    program("curl", "curl", missing="what judges examples is not installed", option="IDENTITY_EXAMPLE_TESTS")
    client_id = estate[kind]
    write(console.connect(f"/console/applications/{client_id}", "curl", f"http://localhost:{free_port()}"), tmp_path)
    secret = {"CLIENT_SECRET": estate[f"secret of {client_id}"]} if kind != "browser" else {}
    command = ["bash", "sign-in.sh"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | secret, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        address = shell.stdout.readline().strip()
        with requests.Session() as browser:
            response = submitted(browser, browser.get(address, timeout=30), login_name=service.login_name)
            # Nothing listens at the redirect URI: the code is in the address that the browser shows.
            with pytest.raises(requests.ConnectionError) as refused:
                submitted(browser, response, password=NEW_PASSWORD)
        assert refused.value.request is not None
        (code,) = parse_qs(urlsplit(str(refused.value.request.url)).query)["code"]
        output, error = shell.communicate(f"{code}\n", timeout=60)
    assert "access_token" in output, error


def test_curl_introspects(service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path) -> None:
    program("curl", "curl", missing="what judges examples is not installed", option="IDENTITY_EXAMPLE_TESTS")
    write(console.connect(f"/console/applications/{estate['api']}", "curl"), tmp_path)
    secret = estate[f"secret of {estate['api']}"]
    variables = os.environ | {"CLIENT_SECRET": secret, "TOKEN": token_of(service, estate)}
    done = subprocess.run(["bash", "introspect.sh"], cwd=tmp_path, env=variables, capture_output=True, check=True)
    assert json.loads(done.stdout)["sub"] == estate["robot"]


@pytest.mark.parametrize(
    ("framework", "command"),
    [
        pytest.param("curl", ["bash", "token.sh"], id="curl"),
        # Go compiles its standard library first.
        pytest.param("go", ["go", "run", "main.go"], id="go", marks=pytest.mark.exhaustive),
    ],
)
def test_service_user_gets_a_token(
    service: RunningService,
    console: Console,
    estate: dict[str, str],
    tmp_path: Path,
    framework: str,
    command: list[str],
) -> None:
    for name in ("jq", "openssl") if framework == "curl" else ("go",):
        program(name, name, missing="what judges examples is not installed", option="IDENTITY_EXAMPLE_TESTS")
    write(console.connect(f"/console/service-users/{estate['robot']}", framework), tmp_path)
    shutil.copy(estate["key_file"], tmp_path / "key.json")
    variables = os.environ | {"PROJECT_ID": estate["project"], "GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scope"].startswith("openid urn:service:iam:org:project:id:")


def test_service_user_calls_an_api_from_python(
    service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path
) -> None:
    write(console.connect(f"/console/service-users/{estate['robot']}", "python"), tmp_path)
    shutil.copy(estate["key_file"], tmp_path / "key.json")
    with api_of_the_estate(service, console, estate, tmp_path / "api") as address:
        variables = os.environ | {"PROJECT_ID": estate["project"], "API": address}
        done = subprocess.run(
            [sys.executable, "call.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True
        )
    assert json.loads(done.stdout) == {"user": estate["robot"], "roles": ["reader"]}


@contextmanager
def api_of_the_estate(service: RunningService, console: Console, estate: dict[str, str], folder: Path) -> Iterator[str]:
    """The address of the FastAPI example, which answers with the user and its roles."""
    port = free_port()
    folder.mkdir()
    write(console.connect(f"/console/applications/{estate['api']}", "fastapi"), folder)
    command = [BIN / "python", *PYTHON["fastapi", "api"].format(port).split()]
    secret = estate[f"secret of {estate['api']}"]
    with started(command, f"http://localhost:{port}/none", folder / "log", folder, CLIENT_SECRET=secret):
        yield f"http://localhost:{port}"


def test_github_actions_calls_an_api(
    service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path
) -> None:
    """Each step runs as a runner runs it: in bash with -e and pipefail, with what steps before added to GITHUB_ENV."""
    for name in ("jq", "openssl", "curl"):
        program(name, name, missing="what judges examples is not installed", option="IDENTITY_EXAMPLE_TESTS")
    files = console.connect(f"/console/service-users/{estate['robot']}", "github-actions")
    (job,) = yaml.safe_load(files[".github/workflows/call-the-api.yaml"])["jobs"].values()
    added, secret = tmp_path / "env", Path(estate["key_file"]).read_text()
    added.touch()
    with api_of_the_estate(service, console, estate, tmp_path / "api") as address:
        variables = job["env"] | {"PROJECT_ID": estate["project"], "API": address, "GITHUB_ENV": str(added)}
        for step in job["steps"]:
            variables |= dict(line.split("=", 1) for line in added.read_text().splitlines())
            variables |= {
                name: value.replace("${{ secrets.SERVICE_USER_KEY }}", secret)
                for name, value in step.get("env", {}).items()
            }
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"user": estate["robot"], "roles": ["reader"]}


def test_kubernetes_gives_the_program_all_that_it_needs(
    service: RunningService, console: Console, estate: dict[str, str], tmp_path: Path
) -> None:
    """The container's program, here the one in Python, runs in the folder and with the variables of the manifest."""
    path = f"/console/service-users/{estate['robot']}"
    files = console.connect(path, "kubernetes")
    pod = yaml.safe_load(files["call-the-api.yaml"])["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    (mount,) = container["volumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], container["workingDir"])
    secret = volume["secret"]["secretName"]
    assert f"kubectl create secret generic {secret} --from-file=key.json" in files["call-the-api.yaml"]
    write(console.connect(path, "python"), tmp_path)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    shutil.copy(estate["key_file"], mounted / "key.json")
    with api_of_the_estate(service, console, estate, tmp_path / "api") as address:
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        assert variables.pop("ISSUER") == service.issuer
        assert variables.keys() == {"PROJECT_ID", "API"}
        variables = os.environ | {"PROJECT_ID": estate["project"], "API": address}
        command = [sys.executable, str(tmp_path / "call.py")]
        done = subprocess.run(command, cwd=mounted, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"user": estate["robot"], "roles": ["reader"]}


def test_every_python_and_node_snippet_is_run() -> None:
    run_pairs = {
        (framework.key, kind.value)
        for framework in APPLICATION_FRAMEWORKS
        for kind in framework.types
        if framework.key in ("fastapi", "flask", "django", "express", "next", "react")
    }
    express = {("express", kind) for kind in ("web", "browser", "api")}
    assert run_pairs == PYTHON.keys() | express | {("next", "web"), ("react", "browser")}
    assert {framework.key for framework in SERVICE_USER_FRAMEWORKS} >= {"curl", "python", "go"}
