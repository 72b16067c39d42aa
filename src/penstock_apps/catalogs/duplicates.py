"""Which photos are the same, and which nearly so, without comparing each with each.

Two hashes that differ in at most ``k`` bits agree in at least one of ``k + 1`` stretches of bits: so only those that
share a stretch are compared. Where too many share one (pictures of a white wall do), they are divided again by the bits
that are left. Groups are what is connected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from penstock_apps.catalogs.hash_bits import BITS, NO_HASH

_MAX_COMPARED = 64


@dataclass(frozen=True, slots=True)
class Photo:
    """What matters of a photo here."""

    path: str
    sha256: str
    perceptual_hash: int
    pixels: int
    size: int
    taken_at: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Photos that are copies of one another; the best one first."""

    exact: bool
    photos: tuple[Photo, ...]

    @property
    def best(self) -> Photo:
        """The copy to keep: most pixels, then most bytes, then the one taken first."""
        return self.photos[0]


def groups_of(
    photos: Iterable[Photo], *, distance: int = 4, near: Iterable[tuple[int, int]] | None = None
) -> list[Group]:
    """Groups of two or more: exact where all have the same bytes, near where they look alike.

    ``near`` are the pairs of hashes that are near each other, where somebody has found them already.
    """
    all_photos = list(photos)
    by_hash: defaultdict[int, list[int]] = defaultdict(list)
    for number, photo in enumerate(all_photos):
        by_hash[photo.perceptual_hash].append(number)
    sets = _DisjointSets(len(all_photos))
    by_bytes: dict[str, int] = {}
    for number, photo in enumerate(all_photos):
        sets.join(by_bytes.setdefault(photo.sha256, number), number)
    by_hash.pop(NO_HASH, None)  # of these nothing but the bytes can be compared
    for alike in by_hash.values():
        for number in alike[1:]:
            sets.join(alike[0], number)
    for first, second in near_pairs(list(by_hash), distance) if near is None else near:
        if first in by_hash and second in by_hash:  # a scan may have removed one since they were compared
            sets.join(by_hash[first][0], by_hash[second][0])
    groups = []
    for numbers in sets.groups():
        members = sorted((all_photos[number] for number in numbers), key=_worth)
        groups.append(Group(len({photo.sha256 for photo in members}) == 1, tuple(members)))
    return sorted(groups, key=lambda group: group.best.path)


def near_pairs(hashes: Sequence[int], distance: int) -> Iterator[tuple[int, int]]:
    """Pairs of different hashes that differ in at most ``distance`` bits; a pair may come more than once."""
    yield from _near(list(hashes), list(range(BITS)), distance)


def near_pairs_of_part(
    hashes: Iterable[int], distance: int, stretch: int, part: int, parts: int
) -> Iterator[tuple[int, int]]:
    """What :func:`near_pairs` finds in one of its stretches, divided into parts that can be done side by side."""
    bits = list(range(BITS))
    stretch_bits = bits[stretch :: distance + 1]
    other_bits = [bit for bit in bits if bit not in stretch_bits]
    for number, sharing in enumerate(_sharing(sorted(set(hashes)), stretch_bits)):
        if number % parts == part and len(sharing) > 1:
            yield from _near(sharing, other_bits, distance)


def _near(hashes: list[int], bits: list[int], distance: int) -> Iterator[tuple[int, int]]:
    """The same among hashes that agree in all bits but ``bits``."""
    stretches = distance + 1
    if len(hashes) <= _MAX_COMPARED or len(bits) < 2 * stretches:
        for first, second in combinations(hashes, 2):
            if (first ^ second).bit_count() <= distance:
                yield first, second
        return
    for number in range(stretches):
        # Every stretches-th bit: what is next to each other in a picture is alike, what is spread out is not.
        stretch = bits[number::stretches]
        other_bits = [bit for bit in bits if bit not in stretch]
        for sharing in _sharing(hashes, stretch):
            if len(sharing) > 1:
                yield from _near(sharing, other_bits, distance)


def _sharing(hashes: Iterable[int], stretch: list[int]) -> Iterable[list[int]]:
    mask = sum(1 << bit for bit in stretch)
    by_bits: defaultdict[int, list[int]] = defaultdict(list)
    for number in hashes:
        by_bits[number & mask].append(number)
    return by_bits.values()


class _DisjointSets:
    """Sets of photos that belong together (union-find)."""

    def __init__(self, count: int) -> None:
        self._leader = list(range(count))

    def join(self, first: int, second: int) -> None:
        """These two belong together, and all that belong to them."""
        self._leader[self._lead(second)] = self._lead(first)

    def groups(self) -> Iterable[list[int]]:
        """Those of two or more."""
        members: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(self._leader)):
            members[self._lead(number)].append(number)
        return [group for group in members.values() if len(group) > 1]

    def _lead(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number


def _worth(photo: Photo) -> tuple[object, ...]:
    """The best copy comes first."""
    return (-photo.pixels, -photo.size, photo.taken_at or "9999", photo.path)
