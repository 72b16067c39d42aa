"""The process pool in parents of other kinds, each a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from tests.integration.pool_calls import PATIENCE, SOURCE, dies, heard


def run_parent(tmp_path: Path, program: str, *, script: bool = True) -> subprocess.Popen[str]:
    program = "from penstock.runners.processes import *\nFREE = Limits(None, None)\n" + textwrap.dedent(program)
    path = tmp_path / "parent.py"
    path.write_text(program)
    arguments = [str(path)] if script else ["-c", program]
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def test_children_die_with_a_parent_that_was_killed(tmp_path: Path, fifo: Path) -> None:
    parent = run_parent(
        tmp_path,
        f"""
        import ctypes, os
        def spin(fifo):
            open(fifo, "w").write(str(os.getpid()))
            ctypes.PyDLL(None).pause()
        if __name__ == "__main__":
            pool = ProcessPool(2)
            pool.submit(abs, 1, FREE).result()
            pool.submit(spin, {str(fifo)!r}, FREE).result()
        """,
    )
    (child,) = heard(fifo)
    children = [process.pid for process in psutil.Process(parent.pid).children()]
    parent.kill()
    parent.communicate(timeout=PATIENCE)
    assert child in children
    assert all(dies(pid) for pid in children)


def test_where_the_kernel_does_not_a_thread_notices_that_the_parent_is_gone(tmp_path: Path, fifo: Path) -> None:
    child = (
        "import os, sys, threading; from penstock.runners import process_child\n"
        "threading.Thread(target=process_child._watch_parent, args=(os.getppid(), 0.05)).start()\n"
        f"open({str(fifo)!r}, 'w').write(str(os.getpid()))\n"
    )
    parent = run_parent(
        tmp_path,
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)",
    )
    (pid,) = heard(fifo)
    assert psutil.pid_exists(pid)
    parent.kill()
    parent.communicate(timeout=PATIENCE)
    assert dies(pid)


def test_a_parent_may_end_without_closing_its_pool(tmp_path: Path, fifo: Path) -> None:
    parent = run_parent(
        tmp_path,
        f"""
        import os, subprocess, time
        def hang(fifo):
            program = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            open(fifo, "w").write(f"{{os.getpid()}} {{program.pid}}")
            time.sleep(1000)
        if __name__ == "__main__":
            pool = ProcessPool(1)
            pool.submit(hang, {str(fifo)!r}, FREE)
            open({str(fifo)!r} + ".seen", "w").write(open({str(fifo)!r}).read())
        """,
    )
    _, errors = parent.communicate(timeout=PATIENCE)
    assert (parent.returncode, errors) == (0, "")
    child, program = heard(Path(f"{fifo}.seen"))
    assert dies(child)
    assert dies(program)


@pytest.mark.parametrize("unread", ["the answer", "that it has begun"])
def test_a_child_whose_parent_hangs_up_ends_without_a_word(tmp_path: Path, fifo: Path, unread: str) -> None:
    # Unread bytes make the end of the connection a reset for the child that reads, a broken pipe for one that writes.
    parent = run_parent(
        tmp_path,
        f"""
        import pickle, socket, threading
        from concurrent.futures import Future
        from pathlib import Path
        from penstock.runners.process_handle import Call, Child
        WAITS = {unread == "that it has begun"}
        child = Child(1000)
        call = (Path.read_text, Path({str(fifo)!r})) if WAITS else (abs, -1)
        child.give(Call(Future(), pickle.dumps(call), FREE), 0.0, None)
        child.connection.setblocking(True)
        child.flush()
        lengths = 1 if WAITS else 2
        while lengths > child.connection.recv(1000, socket.MSG_PEEK).count(bytes(7)):
            pass
        child.connection.close()
        if WAITS:
            Path({str(fifo)!r}).write_text("on")
        print(child.reap())
        """,
    )
    said, errors = parent.communicate(timeout=PATIENCE)
    assert errors == ""
    assert said.startswith("was killed by SIGKILL"), "it ends its whole group, and so itself"


def test_a_parent_given_on_the_command_line_works(tmp_path: Path) -> None:
    parent = run_parent(tmp_path, "print(ProcessPool(1).submit(abs, -7, FREE).result())", script=False)
    assert parent.communicate(timeout=PATIENCE) == ("7\n", "")


def test_a_child_does_not_read_what_was_typed_for_its_parent(tmp_path: Path) -> None:
    parent = run_parent(
        tmp_path, "import os; print(ProcessPool(1).submit(os.readlink, '/proc/self/fd/0', FREE).result())", script=False
    )
    assert parent.communicate("typed", timeout=PATIENCE) == ("/dev/null\n", "")


def test_main_is_imported_only_by_calls_that_refer_to_it(tmp_path: Path) -> None:
    parent = run_parent(
        tmp_path,
        """
        print("imported", __name__, flush=True)
        def twice(number):
            return number * 2
        if __name__ == "__main__":
            pool = ProcessPool(1)
            print(pool.submit(abs, -7, FREE).result(), flush=True)
            print(pool.submit(twice, 4, FREE).result(), flush=True)
        """,
    )
    out, errors = parent.communicate(timeout=PATIENCE)
    assert (out.split("\n"), errors) == (["imported __main__", "7", "imported __mp_main__", "8", ""], "")


def test_a_main_without_a_guard_is_refused_and_does_not_multiply(tmp_path: Path) -> None:
    parent = run_parent(
        tmp_path,
        """
        def twice(number):
            return number * 2
        pool = ProcessPool(1)
        print(type(pool.submit(twice, 4, FREE).exception()).__name__, flush=True)
        pool.close(0)
        """,
    )
    out, _ = parent.communicate(timeout=PATIENCE)
    # The child's own attempt was refused with the first line, so its import came to an end and its call was run.
    assert out.split() == ["NotStarted", "NoneType"]
