"""identity token and demo, against a service that listens on a port."""

import json

from identity.crypto.jwt import UnverifiedToken


class TestToken:
    def test_token_prints_the_response(self, run, service):
        ran = run("token", "--issuer", service.issuer, "--key-file", service.key_file, "--scope", "openid profile")
        answer = json.loads(ran.out)
        assert (ran.status, answer["token_type"], answer["scope"]) == (0, "Bearer", "openid profile")

    def test_token_requests_project_audience(self, run, service):
        ran = run("token", "--issuer", f"{service.issuer}/", "--key-file", service.key_file, "--project", "service")
        assert json.loads(ran.out)["scope"] == "openid urn:service:iam:org:project:id:service:aud"

    def test_finds_the_issuer_in_the_environment(self, run, service, monkeypatch):
        monkeypatch.setenv("IDENTITY_ISSUER", service.issuer)
        assert run("token", "--key-file", service.key_file).status == 0

    def test_token_can_print_only_the_assertion(self, run, service):
        ran = run("token", "--issuer", "https://id.example.com", "--key-file", service.key_file, "--assertion-only")
        assertion = UnverifiedToken.parse(ran.out.strip())
        key_file = json.loads(service.key_file.read_text())
        assert assertion.header == {"alg": "RS256", "kid": key_file["keyId"]}
        assert set(assertion.claims) == {"iss", "sub", "aud", "iat", "exp"}
        assert assertion.claims["iss"] == assertion.claims["sub"] == key_file["userId"]
        assert assertion.claims["aud"] == "https://id.example.com"

    def test_proxy_environment_is_ignored(self, run, service, monkeypatch, tmp_path):
        (tmp_path / ".netrc").write_text("machine localhost login somebody password else\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert run("token", "--issuer", service.issuer, "--key-file", service.key_file).status == 0

    def test_prints_the_error_of_the_service(self, run, service):
        ran = run("token", "--issuer", service.issuer, "--key-file", service.key_file, "--scope", "profile")
        assert ran.status == 1
        assert ran.err.startswith("identity: The service refused: invalid_scope, ")

    def test_reports_a_rejected_key(self, run, service, tmp_path):
        members = json.loads(service.key_file.read_text())
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**members, "keyId": "unknown"}))
        ran = run("token", "--issuer", service.issuer, "--key-file", other)
        assert ran.status == 1
        assert "The service refused: invalid_grant" in ran.err

    def test_reports_an_unreachable_service(self, run, service):
        for issuer, sentence in {
            "http://localhost:1": "Nothing answers at http://localhost:1.",
            "localhost:1": "is not an address of a service",
            "http://[x": "is not an address of a service",
        }.items():
            ran = run("token", "--issuer", issuer, "--key-file", service.key_file)
            assert (ran.status, ran.err.count("\n")) == (1, 1)
            assert sentence in ran.err

    def test_reports_another_issuer(self, run, service):
        ran = run("token", "--issuer", f"http://127.0.0.1:{service.port}", "--key-file", service.key_file)
        assert ran.status == 1
        assert "has another name" in ran.err

    def test_reports_an_invalid_key_file(self, run, tmp_path):
        path = tmp_path / "key.json"
        for content, sentence in (
            (None, "There is no file"),
            ("nonsense", "This is not a JSON file."),
            ("{}", "This is not a key file"),
            ('{"type": "serviceaccount", "keyId": "1", "userId": "2"}', 'lacks "key"'),
            ('{"type": "serviceaccount", "keyId": "1", "userId": "2", "key": "x"}', '"key" cannot be used'),
        ):
            if content is not None:
                path.write_text(content)
            ran = run("token", "--key-file", path, "--assertion-only")
            assert (ran.status, ran.err.count("\n")) == (1, 1)
            assert sentence in ran.err


class TestDemo:
    def test_demo_completes_repeatedly(self, run, service, ini):
        for _ in range(2):
            ran = run("demo", "-c", ini, f"http_port={service.port}", f"data={service.data}")
            assert (ran.status, ran.err) == (0, "")
            assert "All 10 steps went as the service description says" in ran.out
        for label in ("header", "claims", "userinfo", "active", "ORG_OWNER", "/management/v1/me", "project_id"):
            assert label in ran.out

    def test_demo_prints_no_secret(self, run, service, ini):
        out = run("demo", "-c", ini, f"http_port={service.port}", f"data={service.data}").out
        client = json.loads((service.data / "introspection-client.json").read_text())
        assert client["client_secret"] not in out
        assert max(map(len, out.split())) < 120

    def test_prints_how_to_start_the_service(self, run, ini, data):
        ran = run("demo", "-c", ini, "http_port=1", f"data={data}")
        assert ran.status == 1
        assert f"make run PORT=1 DATA={data}" in ran.err
        assert ran.err.count("\n") == 1

    def test_reports_the_missing_file(self, run, service, ini, tmp_path):
        options = ("--key-file", tmp_path / "none.json")
        ran = run("demo", "-c", ini, f"http_port={service.port}", f"data={service.data}", *options)
        assert (ran.status, ran.err) == (1, f"identity: There is no file {tmp_path / 'none.json'}.\n")
