"""All metrics: name, help text and labels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class MetricFamily:
    """A metric: a histogram of seconds with ``buckets``, a gauge if ``is_gauge``, else a counter."""

    name: str
    documentation: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


REQUESTS = MetricFamily(
    "identity_requests", "Requests that were answered, by the name of the route and status.", ("endpoint", "status")
)
REQUEST_SECONDS = MetricFamily(
    "identity_request_seconds",
    "How long answers took, by the name of the route.",
    ("endpoint",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
GRANTS = MetricFamily(
    "identity_grants",
    'Requests for tokens, by grant type and outcome: "issued", an error code of the protocol, or "failed" for a failure'
    " of ours.",
    ("grant_type", "outcome"),
)
SIGN_INS = MetricFamily(
    "identity_sign_ins",
    "Ways to prove who one is that were tried, by way and outcome: succeeded, refused, held back (after too many"
    " failures), busy (too many passwords wait), failed (by us).",
    ("method", "outcome"),
)
AUDIT_EVENTS = MetricFamily(
    "identity_audit_events",
    "Audit events that were written, by name. Of refusals some are written in a minute, not each.",
    ("event",),
)
PASSWORD_SECONDS = MetricFamily(
    "identity_password_seconds",
    "How long passwords took to be hashed, with the wait for a place.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
SIGNATURE_SECONDS = MetricFamily(
    "identity_signature_seconds",
    "How long signatures took, by algorithm.",
    ("algorithm",),
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05),
)
SIGNER_CALLS = MetricFamily(
    "identity_signer_calls",
    "Calls of signers outside the process, such as hardware security modules, by name and outcome: succeeded, failed.",
    ("signer", "outcome"),
)
STATEMENT_SECONDS = MetricFamily(
    "identity_statement_seconds",
    "How long the database took for a statement, by its first word; COMMIT stands for commits by themselves.",
    ("statement",),
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)
PURGE_SECONDS = MetricFamily(
    "identity_purge_batch_seconds",
    "How long batches of a purge took with their commit, by what went. On SQLite nobody else could write meanwhile.",
    ("what",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)
LAGGING_READS = MetricFamily(
    "identity_lagging_reads",
    "Answers for which a standby of the database is allowed, by endpoint and where they came from: standby, primary.",
    ("endpoint", "source"),
)
STANDBY_AGE = MetricFamily(
    "identity_standby_age_seconds",
    "For answers from a standby: for how long at most it had been without what the primary had.",
    buckets=(0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0),
)
WORKERS_REPLACED = MetricFamily(
    "identity_workers_replaced",
    "Workers of identity serve that took the place of one that ended unasked or was hanging.",
)
#: Counted by each process while requests are handled.
COUNTED_FAMILIES = (
    REQUESTS,
    REQUEST_SECONDS,
    GRANTS,
    SIGN_INS,
    AUDIT_EVENTS,
    PASSWORD_SECONDS,
    SIGNATURE_SECONDS,
    SIGNER_CALLS,
    STATEMENT_SECONDS,
    PURGE_SECONDS,
    LAGGING_READS,
    STANDBY_AGE,
)
COUNTER_FAMILIES = (*COUNTED_FAMILIES, WORKERS_REPLACED)

POOL_IN_USE = MetricFamily(
    "identity_in_use",
    'Places in use: of "passwords" those that are hashed at this moment, of "reading" and "writing" connections to the'
    ' database, and of "standby" those to its standby.',
    ("what",),
)
POOL_SIZE = MetricFamily("identity_places", "How many places of the kind there are, in all processes.", ("what",))
POOL_QUEUED = MetricFamily("identity_waiting", "How many wait for such a place.", ("what",))
PROCESSES = MetricFamily("identity_processes", "Processes that answer requests and share these figures.")
MEMORY = MetricFamily("identity_process_resident_bytes", "Memory of these processes, what they share counted in each.")
#: Gauges of processes, read on scrape.
PROCESS_FAMILIES = (POOL_IN_USE, POOL_SIZE, POOL_QUEUED, PROCESSES, MEMORY)

STORAGE_UP = MetricFamily("identity_storage_up", "1 if the storage answered just now, else 0.")
STORAGE_SECONDS = MetricFamily("identity_storage_answer_seconds", "How long the storage took for the figures below.")
STORED_ROWS = MetricFamily(
    "identity_kept",
    "What is stored, over or not, by kind; from 10000 on an estimate, on SQLite the span of row numbers.",
    ("what",),
)
PURGE_BACKLOG = MetricFamily(
    "identity_purge_backlog",
    "What should have been purged an interval ago, by kind; 10000 stands for as many and more.",
    ("what",),
)
OUTBOX_FAILING = MetricFamily(
    "identity_outbox_failing", "Messages that could not be sent and are tried again, by way.", ("way",)
)
OUTBOX_EXPIRED = MetricFamily("identity_outbox_given_up", "Messages that were given up lately, by way.", ("way",))
OUTBOX_AGE = MetricFamily(
    "identity_outbox_oldest_seconds", "For how long the oldest of both has waited, by way.", ("way",)
)
BACKGROUND_LAG = MetricFamily(
    "identity_background_waiting_seconds",
    "For how long the oldest item has waited for background work, by what works it off.",
    ("work",),
)
SIGNING_KEY_AGE = MetricFamily("identity_signing_key_age_seconds", "How long the active signing key has signed.")
SIGNING_KEY_DUE = MetricFamily(
    "identity_signing_key_due_seconds", "The age at which the next signing key takes over, as it is set."
)
EXPIRING_KEYS = MetricFamily(
    "identity_expiring_keys",
    "Keys of service users and personal access tokens with less than seven days left, by kind; up to 1000.",
    ("what",),
)
#: Gauges of the storage.
STORAGE_FAMILIES = (
    STORAGE_UP,
    STORAGE_SECONDS,
    STORED_ROWS,
    PURGE_BACKLOG,
    OUTBOX_FAILING,
    OUTBOX_EXPIRED,
    OUTBOX_AGE,
    BACKGROUND_LAG,
    SIGNING_KEY_AGE,
    SIGNING_KEY_DUE,
    EXPIRING_KEYS,
)

FAMILIES = (*COUNTER_FAMILIES, *PROCESS_FAMILIES, *STORAGE_FAMILIES)
