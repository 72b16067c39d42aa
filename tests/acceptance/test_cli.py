"""The ``penstock`` program as people use it: every command, good and bad input, exit codes."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path

from sqlalchemy import insert, update

from penstock import JobState, owner
from penstock.app import Schedule
from penstock.operations.schedules import declare
from penstock.store.tables import job_events, jobs
from tests.acceptance.terminal import Said, Terminal

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def test_help_and_version_come_without_an_engine(real_terminal: Terminal) -> None:
    bare = real_terminal.run()
    assert bare.code == 0
    assert "penstock demo" in bare.out
    version = real_terminal.run("--version")
    assert version.code == 0
    assert re.fullmatch(r"penstock \d+\.\d+\.\d+\n", version.out)
    commands = re.findall(r"^  ([a-z]+)  ", bare.out.partition("Commands:")[2], re.MULTILINE)
    assert len(commands) >= 19
    for command, told in zip(commands, real_terminal.run_each(*[[name, "--help"] for name in commands]), strict=True):
        assert told.code == 0
        assert f"penstock {command}" in told.out.partition("\n")[2], f"the help of {command} shows no use"


def test_submit_prints_the_id_alone_and_the_job_can_be_watched(terminal: Terminal) -> None:
    said = terminal.run(
        "submit", "greet", '{"name": "world"}', "--owner", "alice", "--priority", "7", "--title", "a greeting"
    )
    assert said.code == 0
    assert [job.title for job in terminal.app.jobs.list()] == ["a greeting"]
    assert ID.fullmatch(said.out.strip())
    assert "penstock watch" in said.err
    terminal.app.drain()
    short = said.out.strip()[-12:]
    watched = terminal.run("watch", short)
    assert (watched.code, "succeeded" in watched.out, "hello world" in watched.out) == (0, True, True)
    as_json, as_table, result = terminal.run_each(["show", short, "--json"], ["show", short], ["result", short])
    shown = json.loads(as_json.out)
    assert (shown["state"], shown["user_id"], shown["priority"]) == ("succeeded", "alice", 7)
    assert shown["actions"] == ["commit", "abandon"]
    assert shown["progress"]["fraction"] == 1.0
    assert re.search(r"^you may +commit, abandon$", as_table.out, re.MULTILINE)
    assert json.loads(result.out) == "hello world"


def test_params_come_from_a_file_or_standard_input(terminal: Terminal) -> None:
    (terminal.directory / "params.json").write_text('{"name":\n "file"}')
    assert terminal.run("submit", "greet", "@params.json").code == 0
    assert terminal.run("submit", "greet", "-", stdin='{"name": "pipe"}').code == 0
    assert [terminal.app.jobs.get(job.id).params for job in terminal.app.jobs.list()] == [
        {"name": "pipe"},
        {"name": "file"},
    ]


def test_submit_with_keys_answers_with_the_job_that_is_there(terminal: Terminal) -> None:
    first, again, same, refused = terminal.run_each(
        ["submit", "greet", "{}", "--unique-key", "k", "--idempotency-key", "i", "--owner", "alice"],
        ["submit", "greet", "{}", "--unique-key", "k", "--owner", "alice"],
        ["submit", "greet", "{}", "--unique-key", "k", "--idempotency-key", "i", "--owner", "alice"],
        ["submit", "greet", "{}", "--fresh-for", "5m"],
    )
    assert first.out == again.out == same.out
    assert "was there already" in again.err
    assert (refused.code, "(INVALID_INPUT)" in refused.err) == (2, True)


def test_submit_with_items_then_look_export_and_reprocess(terminal: Terminal) -> None:
    (terminal.directory / "rows.jsonl").write_text('1\n2\n\n3\n"=cmd()"\n')
    job_id = terminal.run("submit", "squares", "--items", "rows.jsonl").out.strip()
    terminal.app.drain()
    shown, failed, table, page, lines, written, workbook, nowhere, refused, again, told = terminal.run_each(
        ["show", job_id],
        ["items", job_id, "--status", "ERROR", "--json"],
        ["items", job_id],
        ["items", job_id, "--limit", "2", "--after", "1"],
        ["export", job_id],
        ["export", job_id, "--format", "csv", "--output", "items.csv"],
        ["export", job_id, "--format", "xlsx", "--output", "failed.xlsx", "--status", "ERROR"],
        ["export", job_id, "--format", "xlsx"],
        ["reprocess", job_id, "--code", "FOUR", "--code", ""],
        ["reprocess", job_id, "--status", "ERROR", "--code", "THREE", "--reason", "three is better now"],
        ["history", job_id],
    )
    assert "3 done, 1 failed" in shown.out
    assert [json.loads(line)["error_code"] for line in failed.out.splitlines()] == ["THREE"]
    assert "THREE: =three is not liked" in table.out
    assert "more: penstock items" in page.out
    assert page.out.splitlines()[1].split()[0] == "2"
    exported = [json.loads(line) for line in lines.out.splitlines()]
    assert [(one["position"], one["status"], one["result"]) for one in exported] == [
        (1, "DONE", 1),
        (2, "DONE", 4),
        (3, "ERROR", None),
        (4, "DONE", "=cmd()"),
    ]
    assert written.out == "4 items written to items.csv\n"
    with (terminal.directory / "items.csv").open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    assert (rows[3]["row"], rows[3]["status"], rows[3]["result"]) == ("4", "DONE", "'=cmd()")
    assert (rows[2]["error"], rows[2]["error_code"]) == ("'=three is not liked", "THREE")
    assert workbook.out == "1 item written to failed.xlsx\n"
    assert "NOTHING_TO_REPROCESS" in refused.err
    assert (terminal.directory / "failed.xlsx").read_bytes().startswith(b"PK")
    assert (nowhere.code, "--output" in nowhere.err) == (2, True)
    assert not (terminal.directory / "items.csv.part").exists()
    assert (again.code, "queued, run 2" in again.out) == (0, True)
    assert "admin tester" in told.out
    assert "three is better now" in told.out


def test_exports_more_than_a_page(terminal: Terminal) -> None:
    job = terminal.app.submit("squares", items=range(1_201)).job
    said = terminal.run("export", job.id)
    assert [json.loads(line)["position"] for line in said.out.splitlines()] == list(range(1, 1_202))


def test_history_and_show_know_the_end_of_a_long_history(terminal: Terminal) -> None:
    app = terminal.app
    job = app.acting_as(owner("alice")).submit("greet").job
    line = {"job_id": job.id, "run": 1, "from_state": "paused", "to_state": "queued", "actor": "owner"}
    lines = [{**line, "at": job.created_at, "sequence": number} for number in range(2, 1_200)]
    with app.store.engine.begin() as connection:
        connection.execute(insert(job_events), lines)
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(event_sequence=1_199))
    app.acting_as(owner("alice")).jobs.cancel(job.id)
    told, shown = terminal.run_each(["history", job.id, "--json"], ["show", job.id])
    assert [json.loads(line)["sequence"] for line in told.out.splitlines()] == list(range(1, 1_201))
    assert re.search(r"^canceled by +owner alice$", shown.out, re.MULTILINE)


def test_jobs_lists_filters_and_pages(terminal: Terminal) -> None:
    app = terminal.app
    assert terminal.run("jobs").out == "no jobs\n"
    ids = [app.acting_as(owner("alice")).submit("greet", {"name": str(number)}).job.id for number in range(3)]
    other = app.submit("refuse", owner="bob").job.id
    app.drain(kinds=["refuse"])

    newest_first = [str(other), *map(str, reversed(ids))]
    *listed, table = terminal.run_each(
        ["jobs", "--json"],
        ["jobs", "--json", "--state", "failed", "--state", "canceled"],
        ["jobs", "--json", "--kind", "greet", "--owner", "alice"],
        ["jobs", "--json", "--owner", "alice", "--state", "failed"],
        ["jobs", "--json", "--limit", 2],
        ["jobs", "--json", "--limit", 2, "--after", newest_first[1]],
        ["jobs", "--limit", 2],
    )
    found = [[json.loads(line)["id"] for line in said.out.splitlines()] for said in listed]
    assert found == [newest_first, newest_first[:1], newest_first[1:], [], newest_first[:2], newest_first[2:]]
    assert str(other)[-12:] in table.out
    assert "CLOSED" in table.out
    assert f"--after {newest_first[1][-12:]}" in table.out


def test_pause_resume_cancel_commit_and_abandon(terminal: Terminal) -> None:
    first = terminal.app.submit("greet", {"name": "a"}, owner="alice").job.id
    second, third = (terminal.app.submit("greet", {"name": name}, owner="alice").job.id for name in "bc")
    paused, resumed, canceled, watched, twice = terminal.run_each(
        ["pause", first],
        ["resume", first, "--as", "alice"],
        ["cancel", str(first)[-12:], "--reason", "wrong file", "--as", "alice"],
        ["watch", first],
        ["cancel", first],
    )
    assert "is paused" in paused.out
    assert "is queued" in resumed.out
    assert (canceled.code, "is canceled" in canceled.out) == (0, True)
    assert (watched.code, "by owner alice: wrong file" in watched.out) == (3, True)
    assert (twice.code, "(TRANSITION_REFUSED)" in twice.err) == (2, True)
    fourth = terminal.app.submit("greet", {"name": "d"}, owner="alice").job.id
    both, deployed, shown = terminal.run_each(
        ["cancel", fourth, "--system", "--as", "alice"],
        ["cancel", fourth, "--system", "--reason", "a deployment"],
        ["show", fourth],
    )
    assert (both.code, "(INVALID_INPUT)" in both.err) == (2, True)
    assert "is canceled" in deployed.out
    facts = {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in shown.out.splitlines()}
    assert (facts["killed by"], facts["reason"]) == ("system", "a deployment")
    assert facts["elapsed"].endswith("waiting)")
    terminal.app.drain()
    committed, abandoned = terminal.run_each(["commit", second, "--as", "alice"], ["abandon", third])
    assert "is committed" in committed.out
    assert "is abandoned" in abandoned.out
    assert terminal.app.jobs.get(third).state is JobState.ABANDONED


def test_a_failed_job_exits_1_and_has_no_result(terminal: Terminal) -> None:
    job = terminal.app.submit("refuse").job
    unfinished = terminal.run("result", job.id)
    assert (unfinished.code, "(NO_RESULT)" in unfinished.err) == (2, True)
    terminal.app.drain()
    watched, result = terminal.run_each(["watch", job.id], ["result", job.id])
    assert (watched.code, "CLOSED: closed on Mondays" in watched.out) == (1, True)
    assert "CLOSED: closed on Mondays" in result.err


def test_migrate_sweep_and_config(terminal: Terminal) -> None:
    assert terminal.run("config", "--check").code == 0
    assert not (terminal.directory / "penstock.db").exists(), "looking must not create anything"
    migrated, swept = terminal.run_each(["migrate"], ["sweep"])
    assert (migrated.out, swept.out) == ("the schema is up to date\n", "nothing to repair\n")
    shown = terminal.run(
        "config",
        PENSTOCK_POOL_SIZE="11",
        PENSTOCK_DATABASE_URL="postgresql://u:s3cret@h/d?password=s3cret&connect_timeout=3",
        PENSTOCK_LISTEN_URL="postgresql://h/d?user=u&sslpassword=s3cret",
        PENSTOCK_JWT_SECRET="s3cret" * 6,
        PENSTOCK_LLM_URL="https://u:s3cret@llm.example/v1?api_key=s3cret",
        PENSTOCK_LLM_MODEL="any",
        PENSTOCK_LLM_KEY="s3cret",
    ).out
    assert "PENSTOCK_POOL_SIZE = 11  (environment)" in shown
    assert "postgresql://u:***@h/d?password=***&connect_timeout=3" in shown
    assert "s3cret" not in shown


def test_config_check_says_everything_that_is_wrong(terminal: Terminal) -> None:
    (terminal.directory / "taken").write_text("a file")
    said = terminal.run(
        "config",
        "--check",
        PENSTOCK_DATABASE_URL="postgresql://u:secret@127.0.0.1:1/none?password=secret",
        PENSTOCK_FILES_DIRECTORY="taken/files",
    )
    assert said.code == 2
    assert "(DB_CONN_REFUSED)" in said.err
    assert "(FILES_NOT_WRITABLE)" in said.err
    assert "secret" not in said.err


MISTAKES: list[tuple[list[str], dict[str, str], str]] = [
    (["show", "zzzzzzzz"], {}, "JOB_NOT_FOUND"),
    (["show", "1234"], {}, "JOB_NOT_FOUND"),
    (["show", "deadbeef0123"], {}, "JOB_NOT_FOUND"),
    (["watch", "01890a5d-ac96-774b-bcce-b302099a8057"], {}, "JOB_NOT_FOUND"),
    (["submit", "unheard-of"], {}, "KIND_UNKNOWN"),
    (["submit", "greet", '{"name": '], {}, "BAD_JSON"),
    (["submit", "greet", "@nowhere.json"], {}, "FILE_NOT_READABLE"),
    (["submit", "greet", "--items", "nowhere.jsonl"], {}, "FILE_NOT_READABLE"),
    (["submit", "greet", "{}", "{}"], {}, "INVALID_INPUT"),
    (["worker", "--kind", "unheard-of"], {}, "KIND_UNKNOWN"),
    (["worker", "--app", "workshop:nothing"], {}, "NO_KINDS"),
    (["jobs", "--app", "workshop"], {}, "APP_NOT_LOADED"),
    (["jobs", "--app", "nowhere:app"], {}, "APP_NOT_LOADED"),
    (["jobs", "--app", "workshop:nobody"], {}, "APP_NOT_LOADED"),
    (["jobs", "--app", "workshop:number"], {}, "APP_NOT_LOADED"),
    (["jobs", "--app", "broken:app"], {}, "APP_NOT_LOADED"),
    (["jobs", "--limit", "0"], {}, "USAGE"),
    (["jobs", "--state", "asleep"], {}, "USAGE"),
    (["frobnicate"], {}, "USAGE"),
    (["show"], {}, "USAGE"),
    (["jobs"], {"PENSTOCK_POOL_SIZE": "many"}, "CONFIGURATION_ERROR"),
    (["jobs"], {"PENSTOCK_LOG_LEVEL": "LOUD"}, "CONFIGURATION_ERROR"),
    (["jobs", "--app", "penstock.applications:app"], {"DOCUMENTS_TIMEOUT": "soon"}, "CONFIGURATION_ERROR"),
    (["jobs"], {"PENSTOCK_DATABASE_URL": "nonsense"}, "CONFIGURATION_ERROR"),
    (["jobs"], {"PENSTOCK_DATABASE_URL": "sqlite:///workshop.py"}, "DB_CONN_REFUSED"),
    (["jobs"], {"PENSTOCK_DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/none"}, "DB_CONN_REFUSED"),
]


def test_a_users_mistake_is_one_line_and_exit_2(terminal: Terminal) -> None:
    (terminal.directory / "broken.py").write_text("app = Nobody()\n")
    answers = terminal.run_each_in([(arguments, environment) for arguments, environment, _ in MISTAKES])
    for (arguments, _, code), said in zip(MISTAKES, answers, strict=True):
        assert (said.code, said.out) == (2, ""), arguments
        assert re.fullmatch(rf"penstock: [^\n]+ \({code}\)\n", said.err), (arguments, said.err)
        assert "secret" not in said.err


def test_a_mistake_ends_the_real_program_too(real_terminal: Terminal) -> None:
    said = real_terminal.run("submit", "unheard-of")
    known = "greet, patient, refuse, squares, stubborn"
    line = f"penstock: no kind 'unheard-of' is registered here (known: {known}) (KIND_UNKNOWN)\n"
    assert said == Said(2, "", line)


def test_another_users_job_is_not_there(terminal: Terminal) -> None:
    job = terminal.app.submit("greet", {"name": "a"}, owner="alice").job
    commands = ("show", "history", "items", "result", "cancel", "export", "watch")
    for command, said in zip(
        commands, terminal.run_each(*[[name, job.id, "--as", "bob"] for name in commands]), strict=True
    ):
        assert (said.code, "(JOB_NOT_FOUND)" in said.err) == (2, True), command
    assert terminal.app.jobs.get(job.id).state is JobState.QUEUED


def test_what_strangers_send_cannot_steer_the_terminal(terminal: Terminal) -> None:
    job = terminal.app.submit("greet", {"name": "\x1b]0;owned\x07\x1b[2J"}, owner="\x1b[31mred").job
    for said in terminal.run_each(["jobs"], ["show", job.id], ["history", job.id], ["items", job.id]):
        assert said.code == 0
        assert "\x1b" not in said.out


def test_the_schema_of_a_server_is_migrated_by_hand(terminal: Terminal, postgres_url: str) -> None:
    there = {"PENSTOCK_DATABASE_URL": postgres_url}
    *refused, migrated, checked, listed = terminal.run_each(
        ["jobs"], ["config", "--check"], ["worker"], ["migrate"], ["config", "--check"], ["jobs"], **there
    )
    for said in refused:
        assert (said.code, "penstock migrate" in said.err, "(SCHEMA_OUT_OF_DATE)" in said.err) == (2, True, True)
    assert (migrated.code, checked.code, listed.out) == (0, 0, "no jobs\n")


def test_documents_are_submitted_by_name(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("five words are in here")
    (tmp_path / "empty.txt").touch()
    apart = {"PENSTOCK_APP": "penstock.applications:app"}
    with terminal.running("worker", "--kind", "document", **apart):
        said = terminal.run("submit", "document", "note.txt", "empty.txt", "--owner", "alice", "--wait", **apart)
    assert said.code == 1
    first = said.out.splitlines()[0]
    assert "note.txt: SUCCEEDED" in said.out
    assert "DOCUMENT_EMPTY" in said.out
    assert terminal.run("result", first, "--text", **apart).out == "five words are in here\n"
    missing = terminal.run("submit", "document", "note.txt", "nowhere.pdf", **apart)
    assert (missing.code, missing.out, "(FILE_NOT_READABLE)" in missing.err) == (2, "", True)
    assert len(terminal.app.jobs.list()) == 2, "nothing is submitted when one file cannot be read"


def test_params_that_would_not_come_back_equal_are_refused_with_the_path(terminal: Terminal) -> None:
    (terminal.directory / "rows.jsonl").write_text('1\n{"price": NaN}\n')
    params, items = terminal.run_each(
        ["submit", "greet", r'{"name": ["a\u0000"]}'], ["submit", "squares", "--items", "rows.jsonl"]
    )
    assert (params.code, items.code) == (2, 2)
    assert "params.name[0] cannot be kept: it has the character NUL" in params.err
    assert "item 2: items[1].price cannot be kept: it is NaN" in items.err
    assert terminal.app.jobs.list() == []


def test_later_and_again(terminal: Terminal) -> None:
    later = terminal.run("submit", "greet", '{"name": "you"}', "--delay", "2h")
    assert later.code == 0
    terminal.app.drain()
    [job] = terminal.app.jobs.list()
    assert (job.state, job.run_at is not None) == (JobState.CREATED, True)
    nightly = Schedule("nightly", "0 3 * * *", "greet", {"name": "night"})
    terminal.app.store.write(partial(declare, schedules=[nightly], max_bytes=1_000))
    shown, paused, run, listed, unknown, both = terminal.run_each(
        ["show", str(job.id)],
        ["schedules", "nightly", "--pause"],
        ["schedules", "nightly", "--run"],
        ["schedules", "--json"],
        ["schedules", "weekly", "--resume"],
        ["schedules", "nightly", "--run", "--pause"],
    )
    assert re.search(r"^run at +20\d\d-", shown.out, re.MULTILINE)
    assert "paused" in paused.out
    assert terminal.app.jobs.get(run.out.strip()).title == "nightly"
    assert json.loads(listed.out)["is_paused"] is True
    assert (unknown.code, "SCHEDULE_UNKNOWN" in unknown.err) == (2, True)
    assert (both.code, "contradict" in both.err) == (2, True)
