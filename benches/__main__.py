"""``python -m benches``: ask every question of every database, and print the table."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from benches import (
    adaptive_run,
    claim_in_large_table,
    duplicates_of_photos,
    export_of_a_job,
    first_view,
    handlers_on_celery,
    held_snapshot,
    hostile_crowd,
    ingest_of_a_table,
    items_of_one_job,
    machine,
    messages_to_kafka,
    pages_of_items,
    pick_up,
    pruning,
    recipe_reads,
    single_step_jobs,
    status_reads,
    thumbnails_of_photos,
    tracked_chord,
    workbook_reading,
)
from benches.databases import NAMES, Databases, databases
from benches.plan import LeftOut, Plan, say
from benches.report import Answer, machine_lines, notes, table, write_docs, write_json
from benches.workload import be_quiet

QUESTIONS: dict[str, Callable[[Databases, Plan], list[Answer]]] = {
    one.NAME: one.ask
    for one in (
        items_of_one_job, single_step_jobs, pick_up, claim_in_large_table, status_reads, first_view,
        duplicates_of_photos, thumbnails_of_photos, recipe_reads, ingest_of_a_table, export_of_a_job,
        pages_of_items, adaptive_run, held_snapshot, hostile_crowd, messages_to_kafka, handlers_on_celery,
        tracked_chord, workbook_reading, pruning,
    )
}  # fmt: skip
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 0 unless a bench crashed, whatever the figures say."""
    options = _options(arguments)
    be_quiet()
    plan = Plan.quick() if options.quick else Plan()
    facts = machine.facts()
    answers: list[Answer] = []
    crashed = 0
    left_out: list[str] = []
    for name in options.databases:
        with databases(name) as where:
            facts |= where.facts()
            for question in options.only or QUESTIONS:
                say(f"{question} on {name} …")
                begun = time.perf_counter()
                try:
                    answers += QUESTIONS[question](where, plan)
                except LeftOut as reason:
                    left_out.append(f"LEFT OUT: {question} on {name}: {reason}")
                except Exception:  # noqa: BLE001 - the other questions are still worth asking
                    crashed += 1
                    traceback.print_exc()
                say(f"{question} on {name}: {time.perf_counter() - begun:.0f} s")
    answers.sort(key=lambda one: list(QUESTIONS).index(one.question))
    facts["size"] = "quick" if options.quick else "full"
    print(f"{table(answers)}\n\n{notes(answers)}\n\n{machine_lines(facts)}")
    if options.json is not None:
        write_json(options.json, answers, facts)
    for line in left_out:
        say(line)
    if crashed:
        say(f"{crashed} of the benches crashed: the table is not whole")
        return 1
    if options.write_docs and not left_out:
        write_docs(PAGE, answers, facts)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(QUESTIONS), help="this question; may be repeated")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: to see that it works")
    parser.add_argument("--json", type=Path, help="write all figures and samples to this file")
    parser.add_argument("--databases", type=_names, default=NAMES, help=f"of {','.join(NAMES)}; default all")
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    if options.write_docs and (options.only or set(options.databases) != set(NAMES)):
        parser.error("--write-docs replaces the whole table: it needs every question and every database")
    return options


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such database: {', '.join(unknown)} (there are {', '.join(NAMES)})")
    return names


if __name__ == "__main__":
    sys.exit(main())
