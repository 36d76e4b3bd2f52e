"""``python -m tests.certification``: run the tests of this folder, and write what they say about each plan."""

import argparse
import sys
from pathlib import Path

import pytest

from tests.certification.report import CertificationReport


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.certification", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("var/certification"), help="default: %(default)s")
    parser.add_argument("arguments", nargs="*", help="for pytest")
    options = parser.parse_args()
    arguments = [str(Path(__file__).parent), "--thorough", "-q", "-n", "0", *options.arguments]
    result = pytest.main(arguments, plugins=[CertificationReport(options.folder)])
    sys.stdout.write(f"Results by plan: {options.folder}\n")
    return int(result)


if __name__ == "__main__":
    sys.exit(main())
