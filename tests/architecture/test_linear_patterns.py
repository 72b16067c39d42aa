"""Every pattern of the source takes time in proportion to the text it sees, whatever that text is.

Each compiled pattern is taken apart. For everything in it that repeats, two texts are made that nearly match: what
comes before, then that part again and again, then a character that fits nowhere; and the same beginning again and
again. A pattern that looks at each character a bounded number of times needs four times as long for four times the
text; one that goes back needs sixteen times as long. Processor time is measured, the least of several, and only where
it is long enough to be measured.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
import penstock_apps

parser: Any = importlib.import_module("re._parser")
constants: Any = importlib.import_module("re._constants")

SMALL = 2_000
LARGE = 4 * SMALL
MEASURABLE = 0.004
FAR_TOO_LONG = 0.5
GROWTH = 8.0
"""Between four, which is in proportion, and sixteen, which is the square of it."""
CANDIDATES = " a1.,-/<>()[]{}\"'=:;x\t\n_+é€\u2022" + "".join(map(chr, range(33, 127)))
MISFIT = "\x00"
WAYS = ("search", "match", "fullmatch")
AS_SEARCH = dict.fromkeys(("search", "sub", "subn", "findall", "finditer", "split"), "search")
REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
LEFT_OUT = ("penstock.testing", "penstock.store.migrations")
"""What strangers' texts never reach."""


def modules() -> Iterator[str]:
    for package in (penstock, penstock_apps):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if (
                not found.name.startswith(LEFT_OUT)
                and ".migrations." not in found.name
                and "__main__" not in found.name
            ):
                yield found.name


def patterns() -> list[Any]:
    """The patterns of all modules with the ways they are used: those with a name, and those inside of functions."""
    found: dict[tuple[Any, int, str], str] = {}
    for name in modules():
        module = importlib.import_module(name)
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        for variable, value in vars(module).items():
            if isinstance(value, re.Pattern):
                uses = re.findall(rf"\b{variable}\.({'|'.join(AS_SEARCH)}|match|fullmatch)\(", source)
                # Where it is handed to somebody else, it may be used in any way.
                for use in sorted({AS_SEARCH.get(use, use) for use in uses} or WAYS):
                    found.setdefault((value.pattern, value.flags, use), f"{name}.{variable}")
            elif isinstance(owner := getattr(value, "__self__", None), re.Pattern):
                found.setdefault((owner.pattern, owner.flags, value.__name__), f"{name}.{variable}")
        for use, pattern in inline_patterns(source):
            found.setdefault((pattern, 0, use), f"{name}: {pattern!r}")
    return [pytest.param(*key, id=f"{name} {key[2]}") for key, name in found.items()]


def inline_patterns(source: str) -> Iterator[tuple[str, Any]]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=use),
                args=[ast.Constant(value=str() | bytes() as text), *_],
            ) if use != "compile":
                yield AS_SEARCH.get(use, use), text


def test_there_are_patterns_to_look_at() -> None:
    found = patterns()
    assert len(found) > 80
    assert any("dozen" in str(param.values[0]) for param in found), "those inside of functions count, too"


@pytest.mark.parametrize(("pattern", "flags", "use"), patterns())
def test_a_pattern_is_linear(pattern: Any, flags: int, use: str) -> None:
    apply = getattr(re.compile(pattern, flags), use)
    for attack in attacks(pattern, flags):
        problem = grows(apply, attack, is_bytes=isinstance(pattern, bytes))
        assert problem is None, problem


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"<\s*br\s*/?\s*>", "search"), (r"<script>(.*?)</script>", "search"), (r"type=\s*[\"']?\s*json", "match"),
        (r"\s+$", "search"), (r"[a1]*a*", "fullmatch"), (r",\s*\s*]", "search"),
    ],
)  # fmt: skip
def test_the_test_sees_what_it_looks_for(pattern: str, use: str) -> None:
    apply = getattr(re.compile(pattern), use)
    assert any(grows(apply, attack) for attack in attacks(pattern, 0))


def grows(use: Callable[[Any], object], attack: Callable[[int], str], *, is_bytes: bool = False) -> str | None:
    """What is wrong with a pattern, by this attack."""
    small, large = (text.encode("latin-1", "replace") if is_bytes else text for text in (attack(SMALL), attack(LARGE)))
    if least_seconds(use, small, 1) > FAR_TOO_LONG:
        return f"{small[:60]!r}… takes seconds"
    if least_seconds(use, large, 1) < MEASURABLE:
        return None
    ratio = least_seconds(use, large, 2) / max(least_seconds(use, small, 3), 1e-6)
    if ratio <= GROWTH:
        return None
    return f"{small[:60]!r}…: {LARGE / SMALL:g} times the text takes {ratio:.0f} times as long"


def least_seconds(use: Callable[[Any], object], text: Any, times: int) -> float:
    seconds = []
    for _ in range(times):
        begun = time.thread_time()
        use(text)
        seconds.append(time.thread_time() - begun)
    return min(seconds)


# Making texts that nearly match -----------------------------------------------------------------------------------


def attacks(pattern: Any, flags: int) -> Iterator[Callable[[int], str]]:
    """For each part that repeats: the text before it and much of it, and much of both."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    for before, inner in repeated_parts(
        parser.parse(text, flags & ~re.UNICODE if isinstance(pattern, bytes) else flags)
    ):
        pump = sample(inner)
        if not pump:
            continue
        yield lambda size, before=before, pump=pump: before + pump * (size // len(pump)) + MISFIT  # type: ignore[misc]
        beginning = before + pump
        yield lambda size, beginning=beginning: beginning * (size // len(beginning)) + MISFIT  # type: ignore[misc]


def repeated_parts(parsed: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Each part that may come often, with an example of what is before it."""
    for operation, argument in parsed:
        if operation in REPEATS:
            least, most, inner = argument
            if most > 30:
                yield before, inner
            yield from repeated_parts(inner, before)
            before += sample(inner) * max(least, 1 if least else 0)
            continue
        if operation is constants.SUBPATTERN:
            yield from repeated_parts(argument[3], before)
        elif operation is constants.ATOMIC_GROUP:
            yield from repeated_parts(argument, before)
        elif operation is constants.BRANCH:
            for branch in argument[1]:
                yield from repeated_parts(branch, before)
        before += sample([(operation, argument)])


def sample(parsed: Any) -> str:
    """A text that a part of a pattern matches."""
    text = ""
    for operation, argument in parsed:
        if operation is constants.LITERAL:
            text += chr(argument)
        elif operation is constants.NOT_LITERAL:
            text += next(char for char in CANDIDATES if ord(char) != argument)
        elif operation is constants.ANY:
            text += " "
        elif operation is constants.IN:
            text += next((char for char in CANDIDATES if is_in(char, argument)), first_of(argument))
        elif operation in REPEATS:
            text += sample(argument[2]) * max(argument[0], 0 if argument[0] == 0 else 1)
        elif operation is constants.SUBPATTERN:
            text += sample(argument[3])
        elif operation is constants.ATOMIC_GROUP:
            text += sample(argument)
        elif operation is constants.BRANCH:
            text += sample(argument[1][0])
    return text


def is_in(char: str, items: Any) -> bool:
    negated = items[0][0] is constants.NEGATE
    return any(_fits(char, operation, argument) for operation, argument in items) is not negated


def _fits(char: str, operation: Any, argument: Any) -> bool:
    if operation is constants.LITERAL:
        return bool(ord(char) == argument)
    if operation is constants.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if operation is constants.CATEGORY:
        name = str(argument)
        fits = {"SPACE": char.isspace(), "DIGIT": char.isdigit(), "WORD": char.isalnum() or char == "_"}
        kind = next(kind for kind in fits if name.endswith(kind))
        return bool(fits[kind]) is not ("NOT_" in name)
    return False


def first_of(items: Any) -> str:
    operation, argument = items[0]
    return (
        chr(argument[0] if operation is constants.RANGE else argument)
        if operation is not constants.NEGATE
        else "\u2603"
    )
