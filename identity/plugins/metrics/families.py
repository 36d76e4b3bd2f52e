"""Every metric that there is: its name, what it counts, and by which labels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. With ``bounds`` it is a histogram of seconds, with ``gauge`` what there is now, else a counter.

    What is ``common`` all workers of a generation tell alike, by that: of each generation it counts once.
    """

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    gauge: bool = False
    common: bool = False


REQUESTS = Family(
    "identity_requests", "Requests that were answered, by the name of the route and status.", ("endpoint", "status")
)
REQUEST_SECONDS = Family(
    "identity_request_seconds",
    "How long answers took, by the name of the route.",
    ("endpoint",),
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
GRANTS = Family(
    "identity_grants",
    'Requests for tokens, by grant type and outcome: "issued", an error code of the protocol, or "failed" for a failure'
    " of ours.",
    ("grant_type", "outcome"),
)
SIGN_INS = Family(
    "identity_sign_ins",
    "Ways to prove who one is that were tried, by way and outcome: succeeded, refused, held back (after too many"
    " failures), busy (too many passwords wait), failed (by us).",
    ("method", "outcome"),
)
EVENTS = Family(
    "identity_audit_events",
    "Audit events that were written, by name. Of refusals some are written in a minute, not each.",
    ("event",),
)
PASSWORD_SECONDS = Family(
    "identity_password_seconds",
    "How long passwords took to be hashed, with the wait for a place.",
    bounds=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
SIGNATURE_SECONDS = Family(
    "identity_signature_seconds",
    "How long signatures took, by algorithm.",
    ("algorithm",),
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05),
)
STATEMENT_SECONDS = Family(
    "identity_statement_seconds",
    "How long the database took for a statement, by its first word; COMMIT stands for commits by themselves.",
    ("statement",),
    bounds=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)
PURGE_SECONDS = Family(
    "identity_purge_batch_seconds",
    "How long batches of a purge took with their commit, by what went. On SQLite nobody else could write meanwhile.",
    ("what",),
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)
READS = Family(
    "identity_lagging_reads",
    "Answers for which a standby of the database is allowed, by endpoint and where they came from: standby, primary.",
    ("endpoint", "source"),
)
STANDBY_AGE = Family(
    "identity_standby_age_seconds",
    "For answers from a standby: for how long at most it had been without what the primary had.",
    bounds=(0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0),
)
REPLACED = Family(
    "identity_workers_replaced",
    "Workers of identity serve that took the place of one that ended unasked or was hanging.",
    common=True,
)
#: What is counted while requests are answered.
COUNTED = (
    REQUESTS,
    REQUEST_SECONDS,
    GRANTS,
    SIGN_INS,
    EVENTS,
    PASSWORD_SECONDS,
    SIGNATURE_SECONDS,
    STATEMENT_SECONDS,
    PURGE_SECONDS,
    READS,
    STANDBY_AGE,
    REPLACED,
)

IN_USE = Family(
    "identity_in_use",
    'Places in use: of "passwords" those that are hashed at this moment, of "reading" and "writing" connections to the'
    ' database, and of "standby" those to its standby.',
    ("what",),
    gauge=True,
)
PLACES = Family("identity_places", "How many places of the kind there are, in all processes.", ("what",), gauge=True)
WAITING = Family("identity_waiting", "How many wait for such a place.", ("what",), gauge=True)
PROCESSES = Family("identity_processes", "Processes that answer requests and share these figures.", gauge=True)
MEMORY = Family(
    "identity_process_resident_bytes", "Memory of these processes, what they share counted in each.", gauge=True
)
#: What is so in the processes when they are asked.
LIVE = (IN_USE, PLACES, WAITING, PROCESSES, MEMORY)

UP = Family("identity_storage_up", "1 if the storage answered just now, else 0.", gauge=True)
ANSWER = Family("identity_storage_answer_seconds", "How long the storage took for the figures below.", gauge=True)
KEPT = Family(
    "identity_kept",
    "What is stored, over or not, by kind; from 10000 on an estimate, on SQLite the span of row numbers.",
    ("what",),
    gauge=True,
)
OVERDUE = Family(
    "identity_purge_backlog",
    "What should have been purged an interval ago, by kind; 10000 stands for as many and more.",
    ("what",),
    gauge=True,
)
OUTBOX_FAILING = Family(
    "identity_outbox_failing", "Messages that could not be sent and are tried again, by way.", ("way",), gauge=True
)
OUTBOX_GIVEN_UP = Family(
    "identity_outbox_given_up", "Messages that were given up lately, by way.", ("way",), gauge=True
)
OUTBOX_AGE = Family(
    "identity_outbox_oldest_seconds", "For how long the oldest of both has waited, by way.", ("way",), gauge=True
)
BACKGROUND_AGE = Family(
    "identity_background_waiting_seconds",
    "For how long the oldest item has waited for background work, by what works it off.",
    ("work",),
    gauge=True,
)
KEY_AGE = Family("identity_signing_key_age_seconds", "How long the active signing key has signed.", gauge=True)
KEY_DUE = Family(
    "identity_signing_key_due_seconds", "The age at which the next signing key takes over, as it is set.", gauge=True
)
EXPIRING = Family(
    "identity_expiring_keys",
    "Keys of service users and personal access tokens with less than seven days left, by kind; up to 1000.",
    ("what",),
    gauge=True,
)
#: What stands in the storage.
STORED = (
    UP,
    ANSWER,
    KEPT,
    OVERDUE,
    OUTBOX_FAILING,
    OUTBOX_GIVEN_UP,
    OUTBOX_AGE,
    BACKGROUND_AGE,
    KEY_AGE,
    KEY_DUE,
    EXPIRING,
)

FAMILIES = (*COUNTED, *LIVE, *STORED)
