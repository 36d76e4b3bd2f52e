"""The tab Connect: a single-page application with FastAPI takes four clicks, and the copied code runs."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from identity.domain.applications import ApplicationType
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from tests.browser.chromium import ChromiumProfile
from tests.browser.clicks import Clicks
from tests.browser.example_company import ExampleCompany
from tests.browser.tab import Tab
from tests.browser.test_console import clipboard_text
from tests.house.docs_programs import submitted
from tests.house.service_processes import ROOT, free_port


@pytest.mark.thorough
def test_single_page_application_with_fastapi_takes_four_clicks(
    site: ExampleCompany, profile: ChromiumProfile, tab: Tab, tmp_path: Path
) -> None:
    world = site.world
    project = world.make_project(site.organization)
    client_id = world.make_public_application(
        project.id, type=ApplicationType.BROWSER, redirect_uris=["https://shop.example.com/"]
    )
    profile.let_copy()
    tab.open(f"{site.url}/console/applications/{client_id}")
    site.sign_in(tab, site.make_manager())
    tab.open(f"{site.url}/console/applications/{client_id}")
    clicks = Clicks(tab)
    clicks.follow("Connect")
    clicks.follow("FastAPI")
    clicks.press("Add")
    clicks.press("Copy main.py")
    assert clicks.count <= 4
    (tmp_path / "main.py").write_text(clipboard_text(tab))

    with world.read_only_services() as services:
        application = services.applications.get(client_id)
    assert "http://localhost:8000/callback" in application.redirect_uris
    # Another port may be free while port 8000 is not; the code is the same.
    home = f"http://localhost:{free_port()}"
    with world.transaction_services() as services:
        command = ChangeApplication.build(redirect_uris=[f"{home}/callback"], post_logout_redirect_uris=[f"{home}/"])
        services.applications.change(client_id, command, principal=Principal.OPERATOR)
    person = site.make_user()
    command = [sys.executable, "-m", "uvicorn", "main:app", "--port", home.rpartition(":")[2]]
    environ = os.environ | {"PYTHONPATH": str(ROOT / "client" / "src")}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=log, stderr=log) as server,
    ):
        try:
            is_ready = False
            while not is_ready:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.1)
                with suppress(requests.ConnectionError, requests.Timeout):
                    is_ready = requests.get(f"{home}/api/me", timeout=30).status_code == 401
            with requests.Session() as browser:
                response = browser.get(f"{home}/sign-in", timeout=30)
                response = submitted(browser, response, login_name=person.login_name)
                response = submitted(browser, response, password=person.password)
                assert response.url == f"{home}/"
                assert browser.get(f"{home}/api/me", timeout=30).json()["id"] == person.user.id
        finally:
            server.terminate()
