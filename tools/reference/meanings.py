"""What the code does not say of itself: the meanings of its words, columns, options and variables.

Each table names exactly what the code has; the generator refuses a name too many or too few.
"""

from __future__ import annotations

ROLES = {
    "plan": "makes the other items; position 0",
    "item": "one unit of the work; positions 1 to n",
    "finalize": "runs once, after the last of the others; position n + 1",
}

PHASES = {
    "init": "nothing has been claimed yet",
    "batching": "the plan runs, and items are written as it yields them",
    "processing": "items run",
    "finalizing": "the finalize item is in line or runs",
}

KILLED_BY = {
    "user": "an owner or an admin canceled it",
    "system": "a program that named no user canceled it",
    "timeout": "the handler ran past `timeout`, or the job past `run_limit`",
    "worker_crash": "the process that ran the handler died, or its worker did",
    "oom": "the handler took more memory than `memory_limit`",
}

ERROR_TYPES = {
    "RETRYABLE": "another try may do better: an item that waits for its next one, or a job refused for want of room",
    "TERMINAL": "no further try follows: it is final by nature, or the tries are used up",
}

ACTORS = {
    "owner": "the user whose job it is; `None` is a guest",
    "admin": "someone who may see and stop everything",
    "worker": "a worker process, by its name",
    "system": "Penstock itself, and programs that name no user",
}

KIND_OPTIONS = {
    "retries": "further tries after the first that failed",
    "backoff": "the wait between tries: `1s fixed`, `1s exponential up to 5m`, or a `Backoff`",
    "not_found_retries": "further tries after `NotFound`, for things that may still appear",
    "timeout": "the longest one call of the handler may take; a process is killed, a task canceled, a thread given up",
    "memory_limit": 'the most resident memory a call\'s process may take; needs `runs_in="processes"`',
    "runs_in": "`event_loop`, `threads` or `processes`; without it async functions run on the loop and others in "
    "threads",
    "concurrency": "calls at the same time in one worker; without it 32 on the loop, 8 threads, one process a core",
    "slows_down": "whether refusals and errors make the kind run fewer calls at once; not where each item asks another "
    "host",
    "reprocess": "whether items of a finished job may run again in a new run",
    "priority": "jobs of the kind with a higher number go first, from -32768 to 32767",
    "queue_limit": "the most jobs of the kind that may wait; one more fails at once with `QUEUE_OVERLOAD`",
    "hold_limit": "the longest a job that was only created may wait to be submitted; then the system cancels it",
    "wait_limit": "the longest a job may wait for a worker; then it fails with `QUEUE_WAIT_EXCEEDED`",
    "run_limit": "the longest a job may run; then it fails with `JOB_TIMEOUT`",
    "abandon_after": "how long a result waits to be committed before the job is abandoned",
    "prune_result": "whether an abandoned job's result is deleted; only the sweep does so, not `abandon()`",
    "classify": "a function from the exception a handler raised to the one that counts",
}

OTHER_VARIABLES = {
    "COLUMNS": "how wide the command line's tables are where the output is not a terminal; 160 when it is not set",
    "NO_COLOR": "no colours in log lines and tables on a terminal, whatever its value",
}

TABLES = {
    "jobs": "What users asked for, one row each, with everything a claim and an answer need.",
    "job_items": "The units of work of every job. There is no foreign key to `jobs`: "
    "[decision 0010](../decisions/0010-no-foreign-keys-on-items-and-events.md).",
    "job_events": "The history: one row for each change of a job's state, never changed afterwards.",
    "idempotency_keys": "Requests that came with a key, so that one that is sent again is answered as the first was: "
    "[single flight](../explanation/single-flight.md). Rows are not removed.",
    "files": "What was uploaded. The bytes are on disk, by their SHA-256.",
    "lane_samples": "What each lane did lately and how its controllers were set, for people to look at. A day of it is "
    "kept, and nothing decides by it: [decision 0024](../decisions/0024-steering-by-samples.md).",
    "workers": "The workers that are alive, with what they hold, for people to look at. One that has not been seen "
    "for an hour is forgotten.",
    "worker_deaths": "The workers that died, or stopped responding, while they held items: one row each, kept.",
    "job_tasks": "The tasks of jobs that another engine moves, each as far as anybody has heard of it: "
    "[Celery's own tasks, as one job](../explanation/tracked-celery-tasks.md).",
    "outbox": "Messages written in the transaction of the change they tell of, and sent afterwards.",
    "inbox": "Messages that had their effect, each written in the transaction of it; deleted after two weeks.",
    "pruned_jobs": "Jobs that were kept for long enough: who asks for one is told for a month. See [how to keep and "
    "prune](../how-to/keep-and-prune.md).",
    "pruned_counts": "How many jobs, and items of theirs, were pruned since the database was made.",
    "schedules": "What is submitted again and again, as programs declared it: [later, and again and "
    "again](../how-to/run-later-and-again.md).",
    "ended_sessions": "Whose tokens are void although they have not run out. See [sessions that "
    "end](../explanation/server.md#sessions-that-end).",
}

COLUMNS = {
    "jobs": {
        "id": "UUIDv7, so that ids sort by time",
        "kind": "the name of its kind",
        "user_id": "its owner; null for a guest",
        "state": "see [lifecycle](lifecycle.md)",
        "previous_state": "the state before the last transition; it lets one guarded `UPDATE` answer where it "
        "came from",
        "phase": "what it is busy with, for people",
        "run": "counts from 1; a reprocess opens the next",
        "priority": "higher goes first",
        "params": "what was submitted",
        "result": "what the only step or the finalize step answered",
        "unique_key": "jobs of one kind with the same key ask for the same work",
        "idempotency_key": "only programs of the version before write it; see `idempotency_keys`",
        "leader_id": "the job that does the work for this one, or whose result it was given a copy of",
        "has_followers": "whether others wait for this one's work, or have",
        "single_step": "one item and nothing else: its outcome is the job's",
        "planned": "whether all items are known",
        "has_finalizer": "whether a finalize item comes after the last one",
        "total_items": "items known so far; plan and finalize are not counted",
        "processed_items": "items that ended, however",
        "failed_items": "of those, ERROR",
        "not_found_items": "of those, NOT_FOUND",
        "skipped_items": "of those, SKIPPED",
        "returned_items": "items that came back and wait to be claimed again",
        "last_claimed": "the last position handed out",
        "last_claimable": "the last position that may be handed out",
        "next_claim_at": "when it may next be served; null when it has nothing to hand out",
        "attempts": "how often it was started",
        "retries": "how often a single-step job was retried in this run",
        "deaths": "how often in this run a worker died while it held items of the running job; no try is used up",
        "max_retries": "its kind's retries when it was submitted",
        "last_error": "for a person",
        "error_code": "for a program: see [errors](errors.md)",
        "error_type": "RETRYABLE or TERMINAL",
        "failed_phase": "the phase in which it failed",
        "killed_by": "who or what ended it early",
        "killed_reason": "why, in words",
        "message": "the last thing its plan or finalize step said",
        "last_heartbeat": "the last sign of life of its work",
        "file_id": "the uploaded file it works on",
        "ip_address": "where the submission came from, if the caller said so",
        "title": "what people call it: the name of a file, an address; shown and searched, and nothing else",
        "event_sequence": "the number of its last line of history",
        "created_at": "when it was recorded",
        "queued_at": "when it last became queued",
        "started_at": "when it last became running",
        "completed_at": "when it succeeded or failed",
        "committed_at": "when its result was used",
        "abandoned_at": "when its result was given up",
        "canceled_at": "when it was stopped",
        "updated_at": "when the row last changed",
        "result_at": "for a copy of a result that was there already: when that was made",
        "error_class": "the class of what was raised; null where nothing was",
        "state_since": "when its state changed last; null for a job that has not changed since, or of another system",
        "waiting_seconds": "how long it was created, queued or retrying, up to then",
        "active_seconds": "how long it ran, up to then",
        "paused_seconds": "how long it was paused, up to then",
        "recent_items": "items that ended lately; older ones count less and less",
        "recent_seconds": "in how many seconds they did",
        "recent_at": "up to when; what comes next is counted from there",
        "engine": "who moves it, where it is not a worker of ours: `celery`",
        "run_at": "when it is released by itself; of a schedule's job, the tick it is for",
    },
    "idempotency_keys": {
        "key": "a digest of the owner, or a guest's address, and the key",
        "request": "a digest of the request; null where it was brought over from an older version",
        "job_id": "the job the request led to, once it has",
        "resource_id": "what it led to where that is no job but something an application keeps",
        "created_at": "when it was used first",
    },
    "job_items": {
        "id": "a number that counts up",
        "job_id": "its job",
        "user_id": "its job's owner, kept here for listings",
        "kind": "its job's kind, kept here for the sweep",
        "role": "plan, item or finalize",
        "position": "0 for the plan, 1 to n for items, n + 1 for finalize",
        "status": "see [lifecycle](lifecycle.md)",
        "attempts": "tries so far; one handed back unfinished, or lost with its worker, is taken off again",
        "not_found_attempts": "how many of these ended because nothing was found; they have a bound of their own",
        "earlier_not_found": "the same of the tries it had before a reprocess gave it new ones",
        "deaths": "how often a worker died while it held the item; a plan that adds rows begins again at zero",
        "alone": "the lease under which it ran with nothing else in its worker's hands",
        "ready_at": "for an item that came back: from when it may be claimed",
        "lease": "the fence: who writes about the item must name it",
        "locked_by": "the worker that holds it",
        "locked_at": "when that worker claimed it",
        "lock_expires_at": "when others may take it from that worker",
        "input_json": "what it works on; null where that is the job's params",
        "normalized_json": "the input in canonical fields, if the plan gives it; grids show it until a result is there",
        "result_json": "what the handler answered",
        "last_error": "for a person",
        "error_code": "for a program",
        "error_type": "RETRYABLE or TERMINAL",
        "killed_by": "what ended the last try early",
        "error_class": "the class of what the last try raised",
        "traceback": "the end of the last failure's traceback, where it has one",
        "updated_at": "when the row last changed",
    },
    "job_events": {
        "job_id": "its job",
        "sequence": "counts from 1 in each job",
        "run": "the run it happened in",
        "from_state": "null for the first line",
        "to_state": "the state it led to",
        "actor": "owner, admin, worker or system",
        "actor_id": "which one",
        "reason": "why, in words",
        "data": "reserved for details: nothing writes it yet",
        "at": "when",
    },
    "files": {
        "id": "UUIDv7",
        "user_id": "whose it is; null for a guest",
        "name": "the last part of the name it was sent with",
        "media_type": "what its sender called it",
        "size_bytes": "its length",
        "sha256": "where its bytes are",
        "created_at": "when it was kept",
    },
    "lane_samples": {
        "kind": "the lane's kind",
        "at": "when the sample was taken",
        "worker": "the worker whose lane it is",
        "data": "settings and signals by name: `claim_size`, `concurrency`, `ingest_rows`, `items_sec` and others",
    },
    "job_tasks": {
        "job_id": "whose it is",
        "task_id": "the engine's own id of it",
        "name": "what the engine calls it",
        "version": "which use of its id: replacements and retries use it again",
        "status": "0 expected, 10 about to be sent, 20 sent, 30 started, 40 ignored, 50 revoked, 60 failed, "
        "70 succeeded; it never gets smaller within a version",
        "leads_to": "the task that comes after it: the next of a chain, the callback of a chord",
        "is_root": "is it the one by which the job is known, or the block that sends its tasks?",
        "is_awaited": "was it expected: a callback, or a further step of a chain?",
        "is_counted": "is it work, and not a helper of the engine's?",
        "acks_late": "does the broker hand it to another worker when its own is gone?",
        "worker": "the worker that started it, and its process",
        "error": "why it did not end well",
        "error_code": "the same for programs",
        "error_class": "the class of what was raised",
        "killed_by": "what ended it, if it did not end by itself",
        "result": "what a root or a callback returned",
        "checked_at": "when it was heard of, or asked about, last",
        "updated_at": "when it was heard of last",
    },
    "worker_deaths": {
        "worker": "its name",
        "at": "when it was noticed",
        "items": "how many items were taken back from it",
    },
    "workers": {
        "name": "host, process and a few random characters",
        "started_at": "when it began",
        "seen_at": "its last sign of life",
        "data": "its kinds, how many items of each it has in hand, and the topics it subscribes to",
    },
    "outbox": {
        "id": "a number that counts up; none is given twice",
        "topic": "what it is about",
        "key": "messages of one topic and key go out in their order",
        "payload": "the message",
        "attempts": "tries so far",
        "last_error": "why the last one failed",
        "ready_at": "when it may be tried, or tried again; while a relay has it, until when it does",
        "created_at": "when it was written",
        "sent_at": "null until it was sent; deleted a week later",
        "lease": "the token of the relay that took it: only who has it may say that it was sent",
    },
    "inbox": {
        "subscriber": "whose effect it was",
        "topic": "the message's",
        "message_id": "the same however often the message comes",
        "accepted_at": "when",
    },
    "pruned_jobs": {
        "id": "the job's",
        "user_id": "whose it was: others are told that there is no such job",
        "file_id": "the file it had, which goes when no other job has it",
        "has_leftovers": "whether its items and its history are still to be deleted",
        "pruned_at": "when",
    },
    "pruned_counts": {
        "kind": "what kind of job",
        "state": "how they ended",
        "jobs": "how many",
        "items": "and the items that they had",
    },
    "ended_sessions": {
        "subject": "`everybody`, `user:` and a name, or `session:` and the digest of a token",
        "issued_before": "tokens of it that were issued until then are void",
        "ended_at": "when, by the database's clock: servers read what is new",
        "forget_at": "when the token of a session has run out, and the row may go; null for users",
    },
    "schedules": {
        "name": "what it is known by",
        "kind": "of the jobs that are submitted",
        "definition": "the cron expression, the time zone, the params and the rest of what was declared",
        "is_paused": "nothing is submitted until it is resumed",
        "next_at": "its next tick",
        "last_at": "the tick that was run last",
        "last_job_id": "the job it led to",
        "last_error": "why the last tick could not be submitted",
        "updated_at": "the last change of this row",
    },
}
