"""External programs that tests need."""

import os
import shutil

import pytest

#: Debian keeps some where only administrators look.
_FOLDERS = "/usr/sbin:/sbin"


def program(name: str, package: str, *, missing: str, option: str) -> str:
    """Where it is. Without it the test is skipped, or fails if the variable ``option`` is "required".

    ``missing`` is how the reason begins, ``package`` is Debian's.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_FOLDERS}")
    if found is None:
        reason = f"{missing}: {name} (Debian: apt-get install {package})."
        if os.environ.get(option) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def judge(name: str, package: str) -> str:
    """One that knows whether an example for operators will do."""
    missing = "what judges examples is not installed"
    return program(name, package, missing=missing, option="IDENTITY_EXAMPLE_TESTS")
