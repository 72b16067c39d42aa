"""Files that wait on an FTP server, a real one of our own."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from penstock import SYSTEM
from penstock.errors import InvalidInput, NotFound, Permanent, Retryable
from penstock.ingest import SourceSettings
from penstock.ingest.sources.addresses import source_of
from penstock.ingest.sources.contract import Waiting
from penstock.ingest.sources.ftp import Account, Server
from penstock.settings import read_settings
from tests.ingest.conftest import FtpServer
from tests.ingest.ftps_server import certificate, ftps_server

NOW = 2_000_000_000.0
Start = Callable[..., FtpServer]


def put(path: Path, content: bytes = b"12345", *, age: float = 60) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOW - age, NOW - age))
    return path


def source(account: Account, path: str = "/", **options: Any) -> Server:
    return Server(account, path, now=lambda: NOW, timeout_seconds=10, **options)


def names(server: Server) -> list[str]:
    return [one.name for one in server.waiting()]


def only(server: Server) -> Waiting:
    (one,) = server.waiting()
    return one


@pytest.mark.parametrize("without", [(), ("MLSD",)], ids=["MLSD", "NLST"])
def test_files_come_oldest_first_and_are_read(tmp_path: Path, ftp_servers: Start, without: tuple[str, ...]) -> None:
    put(tmp_path / "in" / "young ü.csv", b"young", age=10)
    put(tmp_path / "in" / "deep" / "old%20.csv", b"old", age=30)
    put(tmp_path / "in" / "x.part")
    put(tmp_path / "in" / ".hidden")
    put(tmp_path / "elsewhere.csv")
    (tmp_path / "in" / "empty").mkdir()
    account = ftp_servers(tmp_path, without=without).account
    server = source(account, "/in")
    found = list(server.waiting())
    assert [one.name for one in found] == ["old%20.csv", "young ü.csv"]
    assert found[0].address == f"ftp://127.0.0.1:{account.port}/in/deep/old%2520.csv"
    assert found[0].version == "20330518033250-3"
    for one, content in zip(found, [b"old", b"young"], strict=True):
        with server.open(one) as reader:
            assert reader.read() == content


def test_one_file_is_a_source_too(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "x.csv")
    put(tmp_path / "y.csv")
    server = source(ftp_servers(tmp_path).account, "/x.csv")
    with server.open(only(server)) as reader:
        assert reader.read() == b"12345"


def test_a_file_waits_until_it_has_settled(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "x.csv", age=3)
    account = ftp_servers(tmp_path).account
    # The server's dates have whole seconds: three seconds ago may be two and a bit.
    assert names(source(account, settle_seconds=2)) == []
    assert names(source(account, settle_seconds=1)) == ["x.csv"]


def test_a_file_half_written_is_found_out_while_it_is_read(tmp_path: Path, ftp_servers: Start) -> None:
    # Its date is old, as on a server that keeps the date of the sender: settling alone does not see it.
    path = put(tmp_path / "x.csv", b"half ")
    server = source(ftp_servers(tmp_path).account)
    one = only(server)
    put(path, b"half and the rest")
    with pytest.raises(Retryable) as caught, server.open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_CHANGED"


@pytest.mark.parametrize("to_the_end", [True, False])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, ftp_servers: Start, to_the_end: bool) -> None:
    path = put(tmp_path / "x.csv", b"12345")
    server = source(ftp_servers(tmp_path).account)
    with pytest.raises(Retryable) as caught, server.open(only(server)) as reader:  # noqa: PT012
        assert reader.read(1) == b"1"
        put(path, b"1234567", age=50)
        if to_the_end:
            reader.read()
    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_a_file_that_went_away(tmp_path: Path, ftp_servers: Start) -> None:
    path = put(tmp_path / "x.csv")
    server = source(ftp_servers(tmp_path).account)
    one = only(server)
    path.unlink()
    with pytest.raises(NotFound) as caught, server.open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_GONE"


def test_a_large_file_is_read_in_pieces(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "x.bin", bytes(20 << 20))
    server = source(ftp_servers(tmp_path).account)
    with server.open(only(server)) as reader:
        sizes = [len(piece) for piece in iter(lambda: reader.read(1 << 16), b"")]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 16


def test_a_reader_may_stop_early(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "x.bin", b"begin" + bytes(20 << 20))
    server = source(ftp_servers(tmp_path).account)
    with server.open(only(server)) as reader:
        assert reader.read(5) == b"begin"


def test_a_server_that_goes_away_in_the_middle(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "x.bin", bytes(20 << 20))
    running = ftp_servers(tmp_path)
    server = source(running.account)
    with pytest.raises(Retryable) as caught, server.open(only(server)) as reader:  # noqa: PT012
        assert reader.read(10) == bytes(10)
        running.stop()
        reader.read()
    assert caught.value.code == "SOURCE_UNAVAILABLE"
    with pytest.raises(Retryable) as caught:
        names(server)
    assert caught.value.code == "SOURCE_UNAVAILABLE"


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        account = Account("127.0.0.1", silent.getsockname()[1])
        with pytest.raises(Retryable) as caught:
            names(Server(account, "/", timeout_seconds=0.05))
    assert caught.value.code == "SOURCE_UNAVAILABLE"


def test_a_wrong_password_is_refused_and_not_repeated(tmp_path: Path, ftp_servers: Start) -> None:
    account = replace(ftp_servers(tmp_path).account, user="nobody", password="open barley")
    with pytest.raises(Permanent) as caught:
        names(source(account))
    assert caught.value.code == "SOURCE_REFUSED"
    assert "barley" not in str(caught.value) + repr(account)


def test_a_folder_that_is_not_there(tmp_path: Path, ftp_servers: Start) -> None:
    with pytest.raises(InvalidInput) as caught:
        names(source(ftp_servers(tmp_path).account, "/nothing"))
    assert caught.value.code == "SOURCE_MISSING"


def test_the_bounds(tmp_path: Path, ftp_servers: Start) -> None:
    put(tmp_path / "a" / "x.csv")
    put(tmp_path / "y.csv")
    account = ftp_servers(tmp_path).account
    assert len(names(source(account, max_entries=3, deepest=2))) == 2
    bounds: list[dict[str, Any]] = [{"max_entries": 2}, {"deepest": 1}]
    for bound in bounds:
        with pytest.raises(InvalidInput) as caught:
            names(source(account, **bound))
        assert caught.value.code == "SOURCE_TOO_LARGE"


def test_a_name_that_is_not_utf8_can_be_kept_as_json_and_read(tmp_path: Path, ftp_servers: Start) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")))
    server = source(ftp_servers(tmp_path).account)
    one = only(server)
    assert one.address.endswith("/caf%E9.csv")
    assert orjson.dumps([one.name, one.address])
    with server.open(one) as reader:
        assert reader.read() == b"12345"


@pytest.mark.parametrize("path", ["/other/x.csv", "/in/../x.csv", "/inside.csv"])
def test_a_file_of_another_folder_is_refused(path: str) -> None:
    server = source(Account("127.0.0.1", 1), "/in")
    with pytest.raises(InvalidInput) as caught, server.open(Waiting("x", f"ftp://127.0.0.1:1{path}", 1, "1")):
        pass
    assert caught.value.code == "SOURCE_ADDRESS_WRONG"


# With TLS


@pytest.fixture(scope="module")
def own_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("keys") / "own.pem")


def secure(port: int, password: str = "open sesame", trusted: Path | None = None) -> Server:
    context = ssl.create_default_context(cafile=trusted)
    return source(Account("127.0.0.1", port, "ann", password, context), "/in")


def test_a_file_is_listed_and_read_over_tls(tmp_path: Path, own_certificate: Path) -> None:
    put(tmp_path / "in" / "old ü.csv", b"x" * 300_000)
    put(tmp_path / "in" / "deep" / "young.csv", b"young", age=10)
    with ftps_server(tmp_path, own_certificate) as running:
        server = secure(running.port, trusted=own_certificate)
        first, second = server.waiting()
        assert (first.name, first.size, second.name) == ("old ü.csv", 300_000, "young.csv")
        assert first.address == f"ftps://127.0.0.1:{running.port}/in/old ü.csv"
        for one, content in ((first, b"x" * 300_000), (second, b"young")):
            with server.open(one) as reader:
                assert reader.read() == content
    in_the_clear = {verb for verb in running.heard if verb.startswith("!")}
    assert in_the_clear == {"!AUTH"}
    assert {"USER", "PASS", "PROT", "MLSD", "RETR"} <= set(running.heard)


def test_the_certificates_of_the_machine_decide_for_an_address(
    tmp_path: Path, own_certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(put(tmp_path / "in" / "x.csv"), (1_000_000_000, 1_000_000_000))
    monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
    with ftps_server(tmp_path, own_certificate) as running:
        environment = {
            "PENSTOCK_INGEST_FTP_HOSTS": f"127.0.0.1:{running.port}",
            "PENSTOCK_INGEST_FTP_USER": "ann",
            "PENSTOCK_INGEST_FTP_PASSWORD": "open sesame",
        }
        found = source_of(
            f"ftps://127.0.0.1:{running.port}/in",
            caller=SYSTEM,
            roots=[],
            settings=read_settings(SourceSettings, **environment),
        )
        assert [one.version for one in found.waiting()] == ["20010909014640-5"]


def test_a_certificate_nobody_vouches_for_is_refused_before_the_password_is_said(
    tmp_path: Path, own_certificate: Path
) -> None:
    put(tmp_path / "in" / "x.csv")
    another = certificate(tmp_path / "another.pem")
    with ftps_server(tmp_path, own_certificate) as running:
        for trusted in (None, another):
            with pytest.raises(Permanent) as caught:
                names(secure(running.port, trusted=trusted))
            assert caught.value.code == "SOURCE_REFUSED"
            assert "certificate" in caught.value.message
    assert set(running.heard) == {"!AUTH"}


def test_a_wrong_password_is_refused_over_tls(tmp_path: Path, own_certificate: Path) -> None:
    with ftps_server(tmp_path, own_certificate) as running, pytest.raises(Permanent) as caught:
        names(secure(running.port, "open barley", own_certificate))
    assert caught.value.code == "SOURCE_REFUSED"
