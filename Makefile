# `make help` lists the targets. Each one installs what it needs the first time.

# The port of the service, and the folder for its database and key files.
PORT = 8080
DATA = var
# Additional arguments for the program behind a target, for example: make test ARGS="-k token -x"
ARGS =

# Tests start many processes, each of which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

VENV = .venv
BIN = $(VENV)/bin
VARIABLES = "http_port=$(PORT)" "data=$(DATA)"

.DEFAULT_GOAL = help
.PHONY: run demo test test-all certification lint bench faults cluster docs pictures dist release clean help

# `noted` are the variables that `identity COMMAND -c development.ini` uses to find the service.
run: $(VENV)/.runs ## start the service (PORT=8080 DATA=var); Ctrl-C stops it
	@case "$(DATA)" in /*) ;; *) folder="$$PWD/" ;; esac; \
	exec $(BIN)/identity serve -c development.ini "http_port=$(PORT)" "data=$${folder}$(DATA)" "noted=http_port data"

demo: $(VENV)/.runs ## show every request from a key file to the management API, against the running service
	@exec $(BIN)/identity demo -c development.ini $(VARIABLES) $(ARGS)

test: $(VENV)/.develops ## run the tests that find most mistakes, in a few minutes
	$(BIN)/python -m pytest -n auto --dist worksteal --asgi $(ARGS)

test-all: $(VENV)/.develops ## run every case of all tests on every storage, and look for secrets in the logs
	$(BIN)/python -m pytest -n auto --dist worksteal --both-ways --every-storage --thorough --exhaustive --search-logs --durations 60 --durations-min 8 $(ARGS)

certification: $(VENV)/.develops ## run the tests after the OpenID Foundation's plans, with a folder of results for each
	$(BIN)/python -m tests.certification $(ARGS)

lint: $(VENV)/.develops ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.develops ## measure speed beside node-oidc-provider, and memory
	$(BIN)/python -m benchmarks $(ARGS)

faults: $(VENV)/.develops ## inject faults under load: kill and freeze processes, fill disks
	$(BIN)/python -m faults $(ARGS)

cluster: $(VENV)/.develops ## lose the primary of a Patroni cluster under load
	$(BIN)/python -m faults.cluster $(ARGS)

docs: $(VENV)/.develops ## build the documentation, which the service then shows under /docs
	$(BIN)/sphinx-build -W --keep-going -q -b html -d docs/_build docs identity/plugins/documentation/html

dist: $(VENV)/.releases ## build source distributions and wheels twice, compare them, and write an SBOM
	.ci/release dist

release: $(VENV)/.releases ## make dist for VERSION=1.2.3, with its changelog, commit and tag; nothing is uploaded
	@test -n "$(VERSION)" || { echo "make release VERSION=1.2.3"; exit 1; }
	.ci/release tag $(VERSION)

pictures: $(VENV)/.develops ## take the screenshots for README and documentation again (needs Chromium)
	$(BIN)/python -m tests.browser.make_pictures

clean: ## remove everything installed and built, but not the data (DATA=var)
	rm -rf $(VENV) build dist *.egg-info client/build client/src/*.egg-info docs/_build identity/plugins/documentation/html .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

# Separate steps, so that a first `make run` does not wait for the packages of tests and checks.

$(VENV)/.runs: setup.cfg pyproject.toml constraints.txt
	@$(call install,.[sql$(comma)postgresql])
	@touch $@

$(VENV)/.develops: setup.cfg pyproject.toml constraints.txt client/pyproject.toml
	@$(call install,.[sql$(comma)postgresql$(comma)mariadb$(comma)test$(comma)lint$(comma)docs$(comma)bench])
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt \
		--no-build-isolation --editable client
	@touch $(VENV)/.runs $@

$(VENV)/.releases: setup.cfg pyproject.toml constraints.txt
	@$(call install,.[sql$(comma)postgresql$(comma)mariadb$(comma)test$(comma)docs$(comma)release])
	@touch $@

comma = ,

# No build isolation, so that packages are built with the versions of constraints.txt too.
define install
set -e; \
python='$(PYTHON)'; \
for one in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
    test -z "$$python" || break; \
    if $$one -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
    then python=$$one; fi; \
done; \
if ! "$${python:-none}" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
    echo "This needs Python 3.11 or newer with venv (on Debian: python3-venv). Name one: make PYTHON=/path/to/python3"; \
    exit 1; \
fi; \
test -x $(BIN)/python || "$$python" -m venv $(VENV); \
echo "Installing the versions of constraints.txt into $(VENV) …"; \
pip="$(BIN)/python -m pip --quiet --disable-pip-version-check install --constraint constraints.txt"; \
$$pip setuptools; \
$$pip --no-build-isolation --editable '$(1)'; \
if command -v cc >/dev/null; then \
    $$pip gunicorn_h1c >/dev/null 2>&1 \
        || echo "gunicorn's parser in C cannot be built (Debian: python3-dev): the one in Python serves."; \
fi; \
$(BIN)/python -m compileall -q identity
endef
