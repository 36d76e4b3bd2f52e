"""The unit in which everything is counted: the CPU time of one RSA-2048 signature."""

import re
import shutil
import statistics
import subprocess
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_SIGNATURES = 250
_SPEED_LINE = re.compile(r"^rsa\s+2048\s*bits\s+[\d.]+s\s+[\d.]+s\s+(?P<per_second>[\d.]+)", re.MULTILINE)

_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def by_openssl() -> float | None:
    """Seconds of CPU of one signature as ``openssl speed`` gives them; None if there is no such program.

    It counts its own CPU time, so that other programs on the machine lengthen the second but not the figure.
    """
    program = shutil.which("openssl")
    if program is None:
        return None
    answer = subprocess.run(
        [program, "speed", "-seconds", "1", "rsa2048"], capture_output=True, text=True, timeout=60, check=False
    )
    found = _SPEED_LINE.search(answer.stdout)
    return None if found is None else 1 / float(found["per_second"])


def by_cryptography() -> float:
    """Seconds of CPU of the same signature through the library that the service signs with, SHA-256 included."""
    spans = []
    for _ in range(5):
        started = time.thread_time()
        for _ in range(_SIGNATURES // 5):
            _key.sign(b"x" * 512, padding.PKCS1v15(), hashes.SHA256())
        spans.append((time.thread_time() - started) * 5 / _SIGNATURES)
    return statistics.median(spans)
