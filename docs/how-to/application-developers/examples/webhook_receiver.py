"""A webhook receiver that needs only the standard library: python webhook_receiver.py PORT SECRET_FILE

It accepts messages that are signed with the secret and at most five minutes old, and prints each event once.
"""

import base64
import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

TOLERANCE = 5 * 60
SEEN: set[str] = set()
LOOKING = Lock()


def is_genuine(secret: bytes, headers, body: bytes) -> bool:
    """True if the message has a valid, recent signature."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    # There are two signatures during a change of the secret.
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected.encode(), item.encode()) for item in given)


class Receiver(BaseHTTPRequestHandler):
    """Responds 204 to genuine messages at once. Put long work in a queue."""

    secret = b""

    def do_POST(self) -> None:
        """Receive a message."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not is_genuine(self.secret, self.headers, body):
            self.send_error(401)
            return
        event = json.loads(body)
        # An event may arrive twice. In production, store its id in the transaction that handles the event.
        with LOOKING:
            if event["id"] not in SEEN:
                SEEN.add(event["id"])
                print(event["at"], event["event"], event["object_id"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Do not log each request."""


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    port, file = sys.argv[1:]
    Receiver.secret = base64.b64decode(Path(file).read_text().strip().removeprefix("whsec_"))
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
