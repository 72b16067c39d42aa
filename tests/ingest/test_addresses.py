"""Which addresses lead to a source."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import SYSTEM, Caller, admin, owner
from penstock.errors import ConfigurationError, InvalidInput, NotAllowed
from penstock.ingest import SourceSettings, require_known_places
from penstock.ingest.sources import Source, source_of
from penstock.ingest.sources.contract import quote_path, unquote_path
from penstock.settings import read_settings

ALLOWED = {
    "PENSTOCK_INGEST_BUCKETS": "inbox, outbox",
    "PENSTOCK_INGEST_FTP_HOSTS": "files.example, other.example:2121",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "hush",
}


def found(
    address: str,
    roots: list[Path] | None = None,
    environment: dict[str, str] | None = None,
    caller: Caller = SYSTEM,
) -> Source:
    return source_of(
        address,
        caller=caller,
        roots=roots or [],
        settings=read_settings(SourceSettings, **(ALLOWED if environment is None else environment)),
    )


@pytest.mark.parametrize(
    "address",
    [
        "s3://inbox/",
        "s3://outbox/a/50%25 #?.csv",
        "ftp://files.example/in",
        "ftps://files.example/in/x@home.csv",
        "ftp://other.example:2121/",
    ],
)
def test_what_is_allowed_is_found_under_its_own_address(address: str) -> None:
    assert found(address).address == address


def test_port_21_and_capitals_are_the_same_server() -> None:
    assert found("FTP://Files.Example:21/in").address == "ftp://files.example/in"


def test_folders_and_files_below_a_root(tmp_path: Path) -> None:
    (tmp_path / "in 50%").mkdir()
    for address in (f"{tmp_path}/in 50%", f"folder:{tmp_path}/in 50%25", f"{tmp_path}/in 50%/../in 50%"):
        assert found(address, [tmp_path]).address == f"folder:{tmp_path}/in 50%25"
    (tmp_path / "x.csv").touch()
    os.utime(tmp_path / "x.csv", (1, 1))
    assert [one.name for one in found(f"{tmp_path}/x.csv", [tmp_path]).waiting()] == ["x.csv"]


def test_a_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert found(f"{tmp_path}/root", [tmp_path / "root"]).address == f"folder:{tmp_path}/real"


def test_what_is_not_below_a_root_is_not_allowed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "root-not").mkdir()
    (root / "away").symlink_to(tmp_path)
    for path in (f"{tmp_path}", f"{root}/../root-not", f"{root}-not", f"{root}/away", "/etc/passwd"):
        for address in (path, f"folder:{path}"):
            with pytest.raises(NotAllowed) as caught:
                found(address, [root])
            assert caught.value.code == "SOURCE_NOT_ALLOWED"
    with pytest.raises(NotAllowed):
        found(str(root), [])


@pytest.mark.parametrize(
    "address",
    ["s3://other/x", "s3:///x", "ftp://evil.example/", "ftp://files.example:2222/", "ftp://other.example/", "ftp:///x"],
)
def test_buckets_and_servers_that_are_not_listed(address: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        found(address)
    assert caught.value.code == "SOURCE_NOT_ALLOWED"
    with pytest.raises(NotAllowed):
        found(address, environment={})


@pytest.mark.parametrize(
    "address",
    [
        "ftp://ann:pa55word@files.example/in",
        "ftps://ann:pa55word/more@files.example/in",
        "s3://key:pa55word@inbox/x",
        "sftp://ann:pa55word@files.example/in",
        "ann:pa55word@files.example",
    ],
)
def test_an_address_with_a_password_is_refused_and_the_password_not_repeated(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        found(address)
    assert caught.value.code == "SOURCE_ADDRESS_WRONG"
    assert caught.value.field == "source"
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "inbox",
        "http://files.example/",
        "file:///etc/passwd",
        "s3:inbox",
        "folder:inbox",
        "folder:/a%00b",
        "ftp://files.example/a%0D%0ADELE x",
        "ftp://files.example/../x",
        "ftp://files.example:port/",
        "ftp://[files.example/",
    ],
)
def test_wrong_addresses(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        found(address)
    assert caught.value.code == "SOURCE_ADDRESS_WRONG"


def test_s3_without_keys_says_which_to_set() -> None:
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        found("s3://inbox/", environment={"PENSTOCK_INGEST_BUCKETS": "inbox"})


def test_the_settling_time_and_the_password_are_handed_on(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    for settle_seconds, names in ((3600.0, []), (-3600.0, ["x.csv"])):
        source = source_of(
            str(tmp_path), caller=SYSTEM, roots=[tmp_path], settings=SourceSettings(), settle_seconds=settle_seconds
        )
        assert [one.name for one in source.waiting()] == names


@given(st.binary(max_size=40))
def test_every_path_can_be_written_and_read_back(raw: bytes) -> None:
    path = raw.decode("utf-8", "surrogateescape")
    assert unquote_path(quote_path(path)) == path
    assert quote_path(path).encode("utf-8").isascii() or quote_path(path).isprintable()


# Whose a place is.

OWNED = ALLOWED | {"PENSTOCK_INGEST_OWNERS": '{"s3://inbox": ["ada"], "ftp://Files.example:21": ["*"]}'}
ADA, BEN, GUEST = owner("ada"), owner("ben"), owner(None)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("s3://inbox/a", {ADA}),
        ("s3://outbox/a", set()),
        ("ftp://files.example/in", {ADA, BEN}),
        ("ftps://files.example/in", {ADA, BEN}),
        ("ftp://other.example:2121/", set()),
    ],
)
def test_a_bucket_or_a_server_is_for_its_owners_and_for_admins(address: str, allowed: set[Caller]) -> None:
    for caller in (ADA, BEN, GUEST):
        if caller in allowed:
            assert found(address, environment=OWNED, caller=caller).address
        else:
            with pytest.raises(NotAllowed) as caught:
                found(address, environment=OWNED, caller=caller)
            assert caught.value.code == "SOURCE_NOT_ALLOWED"
    for caller in (admin("root"), SYSTEM):
        assert found(address, environment=OWNED, caller=caller).address


def test_a_folder_is_for_who_owns_a_root_above_it(tmp_path: Path) -> None:
    roots = [tmp_path / "all", tmp_path / "all" / "ben"]
    roots[1].mkdir(parents=True)
    (tmp_path / "link").symlink_to(roots[1])
    owners = {"PENSTOCK_INGEST_OWNERS": json.dumps({f"{roots[0]}/": ["ada"], str(tmp_path / "link"): ["ben"]})}
    for path, allowed in ((roots[0], {ADA}), (roots[1], {ADA, BEN})):
        for caller in (ADA, BEN, GUEST):
            if caller in allowed:
                assert found(str(path), roots, owners, caller).address
            else:
                with pytest.raises(NotAllowed):
                    found(str(path), roots, owners, caller)


def test_who_may_not_read_a_place_cannot_tell_it_from_one_that_nobody_may_read() -> None:
    said = []
    for address in ("s3://inbox/a", "s3://nothing/a"):
        with pytest.raises(NotAllowed) as caught:
            found(address, environment=OWNED, caller=BEN)
        said.append(caught.value.message.replace("inbox", "…").replace("nothing", "…"))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "place", ["/srv/other", "inbox", "s3://other", "ftp://files.example:2222", "ftp://evil.example"]
)
def test_owners_of_a_place_that_nobody_may_read_are_refused(place: str) -> None:
    settings = read_settings(SourceSettings, **ALLOWED, PENSTOCK_INGEST_OWNERS=json.dumps({place: ["ada"]}))
    with pytest.raises(ConfigurationError, match=re.escape(repr(place))):
        require_known_places([Path("/srv/inbox")], settings)


@pytest.mark.parametrize("text", ["ada", "[]", '{"s3://inbox": "ada"}', '{"s3://inbox": [1]}', '{"s3://inbox": [""]}'])
def test_owners_that_cannot_be_read_are_refused_by_the_name_of_their_setting(text: str) -> None:
    with pytest.raises(ConfigurationError, match="PENSTOCK_INGEST_OWNERS"):
        read_settings(SourceSettings, PENSTOCK_INGEST_OWNERS=text)


def test_owners_of_known_places_are_taken() -> None:
    require_known_places([], read_settings(SourceSettings, **OWNED))
