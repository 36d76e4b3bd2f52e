"""External programs that tests need."""

import os
import shutil

import pytest

#: Debian installs some programs outside of the PATH of ordinary users.
_FOLDERS = "/usr/sbin:/sbin"


def program(name: str, package: str, *, missing: str, option: str) -> str:
    """The path of a program. If it is missing, the test is skipped, or fails if the environment variable ``option`` is
    "required".

    ``missing`` is the beginning of the reason, ``package`` the Debian package.
    """
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_FOLDERS}")
    if found is None:
        reason = f"{missing}: {name} (Debian: apt-get install {package})."
        if os.environ.get(option) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def judge(name: str, package: str) -> str:
    """The path of a program that validates the examples in the documentation for operators."""
    missing = "what judges examples is not installed"
    return program(name, package, missing=missing, option="IDENTITY_EXAMPLE_TESTS")
