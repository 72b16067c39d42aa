"""The codes that no class of ``penstock.errors`` and no ``DocumentFailure`` has: the one list of them.

``tests/docs/test_error_codes.py`` reads every code out of src and compares: a code that is added there and not here
fails the test, and so does one that is here and not there any more.
"""

from __future__ import annotations

from typing import NamedTuple


class OnJobs(NamedTuple):
    """A code that a job or an item is left with."""

    where: str
    error_type: str
    killed_by: str
    meaning: str


ON_JOBS = {
    "QUEUE_OVERLOAD": OnJobs(
        "job", "RETRYABLE", "", "more jobs of its kind waited than `queue_limit` allows; submit again later"
    ),
    "QUEUE_WAIT_EXCEEDED": OnJobs(
        "job", "RETRYABLE", "", "no worker took it within `wait_limit`; submit again later, or start more workers"
    ),
    "JOB_TIMEOUT": OnJobs("job", "TERMINAL", "timeout", "it ran longer than its kind's `run_limit`"),
    "WORKER_TIMEOUT": OnJobs(
        "item, job", "by tries", "timeout", "the handler ran past `timeout` (`TimeLimitExceeded`)"
    ),
    "WORKER_OOM": OnJobs(
        "item, job", "by tries", "oom", "the handler's process passed `memory_limit` (`MemoryLimitExceeded`)"
    ),
    "WORKER_CRASH": OnJobs(
        "item, job",
        "by tries",
        "worker_crash",
        "the process that ran the handler died (`WorkerCrashed`), or its worker did and the lease ran out",
    ),
    "PROCESSING_ERROR": OnJobs(
        "item, job",
        "by tries",
        "",
        "the handler raised something that is not an error of Penstock's; the message begins with its class",
    ),
    "OUTCOME_UNREADABLE": OnJobs(
        "item, job",
        "by tries",
        "",
        "what the handler raised cannot be read, or its kind's `classify` did not answer in time",
    ),
    "CALL_LOST": OnJobs(
        "item, job", "by tries", "", "the worker lost sight of the call: a fault of Penstock's, please report it"
    ),
    "KIND_UNKNOWN": OnJobs(
        "item, job", "TERMINAL", "", "the job was recorded with a step that its kind, as deployed now, does not have"
    ),
    "DISK_FULL": OnJobs("item, job", "by tries", "", "there was no room on the disk (`OSError` of that number)"),
    "REDIS_UNAVAILABLE": OnJobs("item, job", "by tries", "", "Redis could not be reached (an error of `redis`)"),
    "GPU_OOM": OnJobs("item, job", "by tries", "", "the GPU's memory was used up (`OutOfMemoryError` of `torch`)"),
    "TASK_REVOKED": OnJobs("job", "TERMINAL", "system", "somebody revoked a Celery task past Penstock"),
    "TASK_EXPIRED": OnJobs("job", "TERMINAL", "", "a Celery task expired before a worker could run it"),
    "TASK_REJECTED": OnJobs("job", "TERMINAL", "", "a Celery task rejected its message, or a worker could not read it"),
    "TASK_UNKNOWN": OnJobs("job", "TERMINAL", "", "the Celery worker that got the task has none of that name"),
    "TASK_NOT_SENT": OnJobs("job", "TERMINAL", "", "it was never confirmed that a Celery task reached the broker"),
    "NOT_ALL_SENT": OnJobs("job", "TERMINAL", "", "the block of `tracked.job(…)` raised before it had sent its tasks"),
    "CALLBACK_LOST": OnJobs("job", "TERMINAL", "", "all other Celery tasks have ended, and the callback was not sent"),
    "WORKER_LOST": OnJobs(
        "job", "TERMINAL", "worker_crash", "the Celery process that ran a task was killed, or its worker is silent"
    ),
    "RETRYABLE": OnJobs("item, job", "by tries", "", "the handler raised `Retryable` and gave no code of its own"),
    "PERMANENT": OnJobs("item, job", "TERMINAL", "", "the handler raised `Permanent` and gave no code of its own"),
    "NOT_FOUND": OnJobs("item, job", "TERMINAL", "", "the handler raised `NotFound` and gave no code of its own"),
    "SKIPPED": OnJobs("item", "", "", "the handler raised `Skip` and gave no code of its own; it is not a failure"),
    "INVALID_INPUT": OnJobs("item, job", "TERMINAL", "", "the handler raised `InvalidInput`, or let it through"),
    "PAYLOAD_NOT_STORABLE": OnJobs(
        "item, job", "TERMINAL", "", "the result is not JSON that can be kept, or cannot be sent between processes"
    ),
    "PAYLOAD_TOO_LARGE": OnJobs(
        "item, job",
        "TERMINAL",
        "",
        "the result is larger than `PENSTOCK_MAX_PAYLOAD_BYTES`, or than a process may send",
    ),
    "RESULT_NOT_STORABLE": OnJobs(
        "item, job", "TERMINAL", "", "the database refused the result; the other outcomes of its batch are kept"
    ),
    "CELL_TOO_LONG": OnJobs(
        "item", "TERMINAL", "", "a cell of its row is longer than `INGEST_MAX_CELL_CHARACTERS`; the other rows go on"
    ),
    "COMPRESSION_SUSPICIOUS": OnJobs(
        "item", "TERMINAL", "", "a file of an archive unpacks to far more than a picture does; it was not unpacked"
    ),
    "FILE_BROKEN": OnJobs(
        "item", "TERMINAL", "", "a file of an archive is damaged, or packed in a way that is not read"
    ),
    "IMAGE_CRASHES_READER": OnJobs(
        "item", "by tries", "", "the process that looked for a barcode in the picture died over it"
    ),
    "IMAGE_TOO_COMPLEX": OnJobs(
        "item",
        "TERMINAL",
        "",
        "the picture takes more than `PRODUCT_PICTURE_TIMEOUT` or `PRODUCT_PICTURE_MEMORY` to look at",
    ),
    "IMAGE_TOO_LARGE": OnJobs("item", "TERMINAL", "", "the picture has too many pixels to look for a barcode in"),
    "NOT_AN_IMAGE": OnJobs(
        "item", "TERMINAL", "", "the file is not a picture that can be read, whatever its name says"
    ),
    "NO_BARCODE": OnJobs("item", "by tries", "", "NOT_FOUND: no barcode can be seen in the picture"),
    "NO_GTIN": OnJobs("item", "by tries", "", "NOT_FOUND: the picture has a barcode, but not that of a product"),
    "NO_PROVIDER": OnJobs(
        "item", "TERMINAL", "", "no retailer is described: set `PRODUCT_PROVIDERS`, then reprocess with `permanent`"
    ),
    "NO_PROVIDER_UNDERSTANDS": OnJobs(
        "item",
        "TERMINAL",
        "",
        "no retailer has an address for what is known of the product: give its row a number, a barcode or a title that "
        "one is asked by, or add the address, then reprocess with `permanent`",
    ),
    "PRODUCT_NOT_FOUND": OnJobs("item", "by tries", "", "NOT_FOUND: no retailer has it by what was asked last"),
    "PROVIDER_ANSWER_UNREADABLE": OnJobs(
        "item", "TERMINAL", "", "a retailer's answer is no JSON, too large or not as described"
    ),
    "PROVIDER_REFUSED": OnJobs("item", "TERMINAL", "", "a retailer refuses the question, or leads on to another host"),
    "PROVIDER_THROTTLED": OnJobs(
        "item", "by tries", "", "a retailer answers 429, or asked for a pause that is not over"
    ),
    "PROVIDER_TIMEOUT": OnJobs("item", "by tries", "", "a retailer did not answer within its `timeout_seconds`"),
    "PROVIDER_UNAVAILABLE": OnJobs("item", "by tries", "", "a retailer cannot be reached, or answers 5xx"),
    "ROW_HAS_NO_PRODUCT": OnJobs("item", "TERMINAL", "", "the row has no usable sku, gtin or title to look up"),
    "ROW_TOO_LONG": OnJobs("item", "TERMINAL", "", "the row has more cells than the table has headers, or cannot end"),
    "ROW_UNREADABLE": OnJobs("item", "TERMINAL", "", "the row cannot be read; the other rows go on"),
    "TABLE_BROKEN": OnJobs("job", "TERMINAL", "", "a workbook is damaged further on; what was read before it is kept"),
    "TOO_MANY_ROWS": OnJobs("job", "TERMINAL", "", "the table has more rows than `INGEST_MAX_FILE_ROWS`"),
}

OF_CALLS = {
    "APPLICATION_BROKEN": ("ConfigurationError", "the entry point of an application leads to none"),
    "APPLICATION_UNKNOWN": ("ConfigurationError", "`PENSTOCK_APPLICATIONS` names an application that is not installed"),
    "BUSY": ("PenstockError", "the work of a key changed hands ten times during one call; call again"),
    "CATALOG_FOLDER_MISSING": (
        "Permanent",
        "none of a catalog's folders is there just now; nothing is forgotten for that",
    ),
    "CATALOG_JOB_RUNS": (
        "Permanent, TransitionRefused",
        "another job does this to the catalog: a canceled one keeps nothing, and one that runs hears no `max_removed`",
    ),
    "CATALOG_NOT_FOUND": ("JobNotFound", "there is no such catalog, or it belongs to somebody else"),
    "CATALOG_ROOT_REFUSED": ("InvalidInput", "a catalog's folder is not below `PENSTOCK_CATALOG_ROOTS`"),
    "PAGE_EMPTY": ("InvalidInput", "a page that a client has opened itself was sent without a word of it"),
    "PICTURE_COUNT": ("InvalidInput", "no photo of a recipe was sent, or more than 8 of one"),
    "PICTURE_NOT_FOUND": ("FileNotFound", "a job has no such photo, or it is somebody else's, or not kept any more"),
    "RECIPE_NOT_FOUND": ("FileNotFound", "there is no such saved recipe, or it belongs to somebody else"),
    "URL_INVALID": ("InvalidInput", "what was given is not the address of a page"),
    "OLD_QUEUE_UNREADABLE": ("ConfigurationError", "the table `recipe_parse_jobs` of the old queue cannot be read"),
    "PHOTO_NOT_FOUND": ("FileNotFound", "there is no such photo in the catalog"),
    "THUMBNAIL_NOT_MADE": ("FileNotFound", "no thumbnails job has made this one yet"),
    "CRON_NOT_UNDERSTOOD": (
        "ConfigurationError",
        "a schedule's cron expression cannot be read; the message has one that can",
    ),
    "SCHEDULE_UNKNOWN": ("InvalidInput", "there is no schedule of that name; `penstock schedules` lists them"),
    "TIME_ZONE_MISSING": ("InvalidInput", "`run_at` says no time zone: it may be any of two dozen moments"),
    "TIME_ZONE_UNKNOWN": ("ConfigurationError", "a schedule's `tz` is no time zone"),
    "CONNECTION_AUTOCOMMIT": ("ConfigurationError", "the connection of a caller commits each statement by itself"),
    "CONNECTION_UNSUPPORTED": (
        "ConfigurationError",
        "`connection=` is no SQLAlchemy connection, or one to another database or by another driver than Penstock's",
    ),
    "DATABASE_CORRUPT": ("StoreUnavailable", "the database says that its files are damaged: bring back a backup"),
    "DATABASE_FILE_GONE": ("StoreUnavailable", "the SQLite file was deleted or moved away; it works when it is back"),
    "DATABASE_FILE_REPLACED": (
        "StoreUnavailable",
        "another file is where the SQLite file was; said once, then the new one is used if that is safe",
    ),
    "DATABASE_FULL": ("StoreUnavailable", "the database's disk is full; it works when there is room again"),
    "DATABASE_IO_ERROR": ("StoreUnavailable", "the database's disk could not be read or written"),
    "DATABASE_READ_ONLY": ("StoreUnavailable", "the database may only be read; it works when it may be written"),
    "COMMIT_UNKNOWN": (
        "StoreUnavailable",
        "the connection broke during the commit: nobody knows whether it happened; with an idempotency key, ask again",
    ),
    "DB_TIMEOUT": (
        "StoreUnavailable",
        "the database server did not answer within `PENSTOCK_DATABASE_TIMEOUT_SECONDS`; nothing was recorded",
    ),
    "STATEMENT_TIMEOUT": (
        "StoreUnavailable",
        "the server ended a statement because it took longer than its `statement_timeout`; nothing was recorded",
    ),
    "DB_POOL_BUSY": ("StoreUnavailable", "all of `PENSTOCK_POOL_SIZE` connections were in use for half a minute"),
    "FILE_CRASHES_READER": (
        "InvalidInput",
        "the process that looked at an uploaded file died over it; of a job: the one that read it, which is repeated",
    ),
    "FILE_TOO_COMPLEX": (
        "InvalidInput",
        "an uploaded file takes more time or memory to look at, or to read, than the `PENSTOCK_INGEST_…` limits allow",
    ),
    "FILE_TOO_LARGE": ("PayloadTooLarge", "an uploaded file is larger than the caller allows"),
    "IDEMPOTENCY_KEY_REUSED": ("InvalidInput", "the key was used for another request already"),
    "JOB_SHARED": (
        "TransitionRefused",
        "pause: others wait for the same work, or another job does it; reprocess: another job did it",
    ),
    "JOB_TRACKED": (
        "TransitionRefused",
        "Celery moves the job: it is not paused, reprocessed, run again or kicked off; cancel it, or send its task",
    ),
    "JOB_ID_TAKEN": ("InvalidInput", "there is a job of the id that was given already"),
    "NOT_ALLOWED": ("TransitionRefused", "the lifecycle does not let this caller make that transition"),
    "NOTHING_TO_REPROCESS": ("TransitionRefused", "no item of the job is in the statuses that were asked for"),
    "REPROCESS_NOT_ALLOWED": ("TransitionRefused", "the job's kind does not allow it: `reprocess` is false"),
    "ARCHIVE_EMPTY": ("InvalidInput", "an uploaded ZIP holds no files"),
    "CONTENT_TYPE_UNKNOWN": ("InvalidInput", "an upload is neither multipart nor JSON"),
    "DECOMPRESSED_TOO_LARGE": ("PayloadTooLarge", "an XLSX or a ZIP unfolds to over `INGEST_MAX_DECOMPRESSED_BYTES`"),
    "DELIMITER_UNKNOWN": ("InvalidInput", "what was named as a table's delimiter cannot be one"),
    "ENCODING_UNKNOWN": ("InvalidInput", "what was named as a table's encoding is not known"),
    "FILE_EMPTY": ("InvalidInput", "an uploaded file has no bytes"),
    "FILE_MISSING": ("InvalidInput", "an upload has no part named `file`, or no file waits at the source"),
    "FILE_TYPE_UNKNOWN": ("InvalidInput", "an uploaded file is no table, no picture and no ZIP"),
    "INGEST_DISABLED": ("SwitchedOff", "uploads are switched off just now by `DB_INGEST_ENABLED`"),
    "JOB_TYPE_MISSING": ("InvalidInput", "an upload does not say in `jobType` which kind it is for, and has to"),
    "JOB_TYPE_UNKNOWN": ("InvalidInput", "`jobType` names no kind that takes files"),
    "JOB_TYPE_WRONG": ("InvalidInput", "`jobType` says one thing and the file is another"),
    "MAPPING_INVALID": (
        "InvalidInput",
        "`mapping` is no JSON object, does not fit the columns or the fields, or comes with a file that is no table",
    ),
    "MIXED_FILES": ("InvalidInput", "tables, archives and pictures were sent together; send them apart"),
    "NOT_AN_ARCHIVE": ("InvalidInput", "a file that begins like a ZIP cannot be read as one"),
    "NOT_A_TABLE": ("InvalidInput", "a file is no table: binary, an old or locked workbook, or without an end"),
    "NO_COLUMNS": ("InvalidInput", "a workbook was asked for without any columns"),
    "NO_PRODUCT_COLUMN": ("InvalidInput", "no column of a table was taken for a sku, a gtin or a title"),
    "DATABASE_FOLDER_MISSING": ("ConfigurationError", "the folder for the database's file is not there; make it"),
    "KIND_REGISTERED_TWICE": ("ConfigurationError", "two handlers have the same kind; the message names both places"),
    "NO_CALLER": (
        "InvalidInput",
        "`acting_as` was given no `Caller`; write `owner('ann')`, `admin('root')` or `SYSTEM`",
    ),
    "OUT_OF_BOUNDS": (
        "InvalidInput or ConfigurationError",
        "a text is too long, or a number too large, to be kept by every database: [limits](limits.md)",
    ),
    "PAGE_TOO_DEEP": ("InvalidInput", "a numbered page lies behind more than 10,000 items; follow `next` instead"),
    "PENDING_DASHBOARD_DISABLED": ("SwitchedOff", "the list of all that waits is off: `PENDING_DASHBOARD_ENABLED`"),
    "SHEET_UNKNOWN": ("InvalidInput", "a workbook has no sheet of that name"),
    "SOURCE_ADDRESS_WRONG": ("InvalidInput", "the address of a source cannot be read, or holds a password"),
    "SOURCE_FILE_CHANGED": ("Retryable", "a file changed after it was listed; it may still be written to"),
    "SOURCE_FILE_GONE": ("NotFound", "a file was listed, and then moved or deleted"),
    "SOURCE_KEY_WRONG": ("InvalidInput", "a bucket holds a key that cannot be asked for, such as `a//b`"),
    "SOURCE_MISSING": ("InvalidInput", "there is nothing at the address of a source"),
    "SOURCE_NOT_ALLOWED": ("NotAllowed", "this folder, bucket or FTP server is not allowed, or not this user's"),
    "SOURCE_REFUSED": ("Permanent", "a source refuses to be read: permissions, keys or a certificate"),
    "SOURCE_TOO_LARGE": ("InvalidInput", "a source holds more files, or deeper folders, than one listing takes"),
    "SOURCE_UNAVAILABLE": ("Retryable", "a source cannot be reached now, or broke off"),
    "TOO_MANY_LOOKS": ("TooManyRequests", "so many uploads are being looked at that one more would have to wait long"),
    "TOO_MANY_SCANS": ("TooManyRequests", "two scans of sources are running on this server already"),
    "TABLE_EMPTY": ("InvalidInput", "a table has no headers"),
    "TOO_MANY_COLUMNS": ("InvalidInput or PayloadTooLarge", "a table has more than `INGEST_MAX_COLUMNS`"),
    "TOO_MANY_FILES": ("InvalidInput or PayloadTooLarge", "more files at once, or in an archive, than are taken"),
    "BROKER_REFUSED": ("PenstockError", "the message broker does not take a message, for a reason that it names"),
    "DEAD_LETTER_LEFT_OUT": ("InvalidInput", "a dead letter was too large to be kept whole, so it cannot be replayed"),
    "KAFKA_MISCONFIGURED": ("ConfigurationError", "the settings of Kafka are incomplete or contradict each other"),
    "NO_SUBSCRIBER": ("PenstockError", "a message was handed to a process that has no subscriber for its topic"),
    "TOPIC_UNKNOWN": ("PenstockError", "the broker has no topic of that name; create it"),
    "UNIQUE_KEY_IN_USE": ("TransitionRefused", "another active job does the work of the job's key"),
}

OF_HTTP = {
    "ADMINS_ONLY": (403, "the token is good, but not an admin's"),
    "BODIES_UNDER_WAY": (
        429,
        "your bodies under way take more than a quarter of `PENSTOCK_BODY_MEMORY_BYTES`; 503 if all take all of it",
    ),
    "BODY_TOO_LARGE": (
        413,
        "the body is larger than the address takes: `PENSTOCK_MAX_JSON_BYTES`, or `PENSTOCK_MAX_BODY_BYTES` with files",
    ),
    "HEAD_TOO_LARGE": (431, "the first line and the headers are larger than `PENSTOCK_MAX_HEAD_BYTES`"),
    "INTERNAL_ERROR": (500, "a mistake of ours; the `request_id` leads to it in the server's log"),
    "KEYS_UNAVAILABLE": (503, "the keys at `PENSTOCK_JWKS_URL` cannot be had just now; ask again"),
    "HOST_NOT_ALLOWED": (400, "the `Host` header names another server than those in `PENSTOCK_ALLOWED_HOSTS`"),
    "IDENTITY_INVALID": (500, "the application's own `authenticate` answered with something that is no `Identity`"),
    "METHOD_NOT_ALLOWED": (405, "the address is right, the method is not"),
    "NO_SUCH_ADDRESS": (404, "there is nothing at this address"),
    "OTHER_ORIGIN": (403, "a browser's session came with a change that a page of somebody else asked for"),
    "REQUEST_MALFORMED": (400, "what came is no HTTP"),
    "REQUEST_TOO_SLOW": (
        408,
        "a head or a body did not come within `PENSTOCK_HEAD_SECONDS` or `PENSTOCK_STALL_SECONDS`",
    ),
    "REQUEST_REFUSED": (400, "the request is not one the server understands"),
    "SESSIONS_FROM_ELSEWHERE": (422, "sessions are the business of the application that signs people in"),
    "SESSION_ENDED": (401, "somebody signed out, or the sessions of this user were ended; sign in again"),
    "TOKEN_EXPIRED": (401, "the token was good once; get a new one"),
    "TOKEN_TOO_LONG": (401, "the token is longer than a browser keeps in a cookie; get one with fewer claims"),
    "TOKEN_INVALID": (401, "the token is forged, for somebody else, or no token at all"),
    "TOO_MANY_CONNECTIONS": (
        429,
        "one address has `PENSTOCK_CONNECTIONS_PER_ADDRESS`; 503 if all of `PENSTOCK_MAX_CONNECTIONS` are busy",
    ),
    "TOO_MANY_STREAMS": (429, "the user has `PENSTOCK_STREAMS_PER_USER` live streams open already"),
}

OF_THE_COMMAND_LINE = {
    "ADDRESS_IN_USE": "another program listens at the server's port; stop it, or choose another with `--port`",
    "ADDRESS_NOT_USABLE": "the server cannot listen there: the address is not this machine's, or not for this account",
    "APP_NOT_LOADED": "`--app` or `PENSTOCK_APP` does not lead to a `Penstock` object",
    "DIRECTORY_GONE": "the working directory was removed; change into another one",
    "DATABASE_NOT_SHARED": "handlers run in processes of others, which cannot reach a database in memory",
    "ENGINE_UNKNOWN": "`penstock dispatch` names an engine on which no kind of the app runs",
    "BAD_JSON": "an argument or a file is not JSON",
    "FILES_NOT_WRITABLE": "the files directory cannot be written",
    "FILE_NOT_READABLE": "a file that was named cannot be read",
    "FILE_NOT_WRITABLE": "the file to export to cannot be written",
    "SCHEMA_IN_USE": "workers are at work on tables in the first layout, which only move while nobody is",
    "SCHEMA_LOCKED": "others hold tables that are to be changed; the message names them, and nothing was changed",
    "SCHEMA_NOT_ALLOWED": "`PENSTOCK_DATABASE_SCHEMA` is not there, and the database's user may not create it",
    "SCHEMA_TOO_NEW": "a newer version has changed the schema so that this one cannot work on it",
    "SQLITE_TOO_OLD": "the SQLite of this Python is older than Penstock needs",
    "DATABASE_ENCODING": "the SQLite file was made for UTF-16 by somebody else; begin with a new one",
    "INGEST_OWNERS_WRONG": "`PENSTOCK_INGEST_OWNERS` names a place that nothing is taken in from",
    "JWT_AUDIENCE_MISSING": "`PENSTOCK_JWKS_URL` needs `PENSTOCK_JWT_AUDIENCE`, or `PENSTOCK_JWT_ANY_AUDIENCE=true`",
    "JWT_SECRET_MISSING": "a server that others can reach, or on a database server, needs `PENSTOCK_JWT_SECRET`",
    "JOB_AMBIGUOUS": "the part of an id that was typed fits more than one job",
    "NO_KINDS": "the app has no kinds for a worker to work on, or `run_on_celery` was given none",
    "NO_RESULT": "the job has no result, or not yet",
    "NO_TEXT": "the result has no text to print",
    "REFUSED_BY_SYSTEM": "the operating system refused to read or write something, such as on a full disk",
    "SECRET_NOT_KEPT": "the tokens' secret cannot be kept beside the database; set `PENSTOCK_JWT_SECRET`",
    "SETTING_UNKNOWN": "in `penstock config --check`: a variable looks like a setting and is none",
    "SECRET_NOT_PRIVATE": "the file that keeps the tokens' secret can be read by others, or holds none",
    "TOKENS_FROM_ELSEWHERE": "tokens come from the identity provider at `PENSTOCK_JWKS_URL`; Penstock makes none",
    "TICKET_FAILED": "in a Celery worker's log: there was no memory to work off a ticket; its items run again",
    "TICKET_INVALID": "in a Celery worker's log: somebody sent a ticket that names no kind of ours, or no size",
    "USAGE": "the command line itself is wrong",
}

OF_THE_DEMONSTRATION = {
    "LINE_BUSY": "`penstock demo` makes some of its lines fail once, to show a retry",
    "LINE_UNREADABLE": "`penstock demo` makes some of its lines fail for good, to show an error",
}
