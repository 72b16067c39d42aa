"""Groups of photos that are copies: the same as by comparing each with each, but without doing so."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance

from penstock_apps.catalogs.duplicates import Photo, groups_of, near_pairs
from penstock_apps.catalogs.hash_bits import NO_HASH
from penstock_apps.catalogs.perceptual_hash import perceptual_hash


def photo(number: int, looks: int, *, data: str | None = None, pixels: int = 100, size: int = 10) -> Photo:
    return Photo(f"{number:06}.jpg", data or f"{number}", looks, pixels, size)


def each_with_each(hashes: list[int], distance: int) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in combinations(hashes, 2) if (pair[0] ^ pair[1]).bit_count() <= distance}


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=30, unique=True),
    st.lists(st.tuples(st.integers(0, 29), st.sets(st.integers(0, 63), max_size=6)), max_size=60),
    st.integers(0, 6),
)
@settings(max_examples=150, deadline=None)
def test_it_finds_what_comparing_each_with_each_finds(
    seeds: list[int], changes: list[tuple[int, set[int]]], distance: int
) -> None:
    hashes = list(dict.fromkeys([*seeds, *(
        seeds[number % len(seeds)] ^ sum(1 << bit for bit in bits) for number, bits in changes if seeds
    )]))  # fmt: skip
    found = {frozenset(pair) for pair in near_pairs(hashes, distance)}
    assert found == each_with_each(hashes, distance)


def test_many_that_share_most_of_their_bits_are_found_too() -> None:
    chance = random.Random(7)
    hashes = list({chance.getrandbits(12) << 50 for _ in range(800)})
    assert {frozenset(pair) for pair in near_pairs(hashes, 3)} == each_with_each(hashes, 3)


def test_a_group_is_what_is_connected_and_its_best_copy_is_first() -> None:
    photos = [
        photo(1, 0b1 << 60, pixels=100),
        photo(2, 0b1 << 60 | 0b1111, pixels=400, size=5),
        photo(3, 0b1 << 60 | 0b11111111, pixels=400, size=9),
        photo(4, 2**40 - 1, data="same"),
        photo(5, 2**50 - 1, data="same"),
        photo(6, 0x5555_0000_0000_0000),
    ]
    near, exact = groups_of(photos, distance=4)
    assert ([one.path for one in near.photos], near.exact) == (["000003.jpg", "000002.jpg", "000001.jpg"], False)
    assert ([one.path for one in exact.photos], exact.exact) == (["000004.jpg", "000005.jpg"], True)
    assert near.best.path == "000003.jpg"
    assert groups_of([]) == []


@pytest.mark.parametrize("change", ["smaller", "compressed", "brighter"])
def test_a_picture_that_was_changed_a_little_looks_the_same(tmp_path: Path, change: str) -> None:
    chance = random.Random(3)
    picture = Image.new("L", (64, 64))
    picture.putdata([chance.randrange(256) for _ in range(64 * 64)])
    picture = picture.resize((640, 480), Image.Resampling.BICUBIC).convert("RGB")
    match change:
        case "smaller":
            other = picture.resize((200, 150))
        case "brighter":
            other = ImageEnhance.Brightness(picture).enhance(1.1)
        case _:
            picture.save(tmp_path / "a.jpg", quality=30)
            other = Image.open(tmp_path / "a.jpg")
    assert (perceptual_hash(picture) ^ perceptual_hash(other)).bit_count() <= 4
    upside_down = picture.rotate(180)
    assert (perceptual_hash(picture) ^ perceptual_hash(upside_down)).bit_count() > 10
    other.close()


def test_a_picture_that_shows_nothing_is_like_no_other() -> None:
    blank = Image.new("L", (400, 300), 200)
    strip, gradient, dot = blank.copy(), Image.linear_gradient("L").rotate(90), blank.copy()
    ImageDraw.Draw(strip).rectangle((0, 0, 60, 300), fill=20)
    ImageDraw.Draw(dot).ellipse((180, 130, 210, 160), fill=20)
    noise = Image.effect_noise((400, 300), 4)
    hashes = [perceptual_hash(picture) for picture in (blank, strip, gradient, dot, noise)]
    assert hashes == [NO_HASH] * 5
    photos = [photo(number, looks) for number, looks in enumerate([*hashes, 0b11])]
    assert groups_of(photos, distance=4) == []
    [group] = groups_of([*photos, photo(9, NO_HASH, data="0")])
    assert (group.exact, len(group.photos)) == (True, 2), "the same bytes are the same picture"


def test_a_pair_whose_photo_is_gone_by_now_is_left_out() -> None:
    assert groups_of([photo(1, 5)], near=[(5, 7), (7, 5), (8, 9)]) == []
