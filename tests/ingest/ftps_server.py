"""A small FTP server with explicit TLS, over one folder: what a client of ours says to it, and no more."""

from __future__ import annotations

import ipaddress
import os
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.ingest.conftest import BOUND_SECONDS


def certificate(path: Path) -> Path:
    """Write a key and a certificate for this machine that vouches for itself; valid long enough for a test."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime.now(UTC) - timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + made.public_bytes(Encoding.PEM))
    return path


@dataclass
class FtpsServer:
    """Where it listens, and what it was told: a command that came in the clear has a ``!`` before it."""

    port: int
    heard: list[str] = field(default_factory=list)


@contextmanager
def ftps_server(root: Path, vouched_by: Path) -> Iterator[FtpsServer]:
    """The server for the length of a ``with`` block; it lets in ann with "open sesame"."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(vouched_by)

    class Conversation(socketserver.BaseRequestHandler):
        request: socket.socket  # the control connection

        def handle(self) -> None:
            self.secure = self.private_data = False
            self.said, self.waiting = b"", socket.create_server(("127.0.0.1", 0))
            self.request.settimeout(BOUND_SECONDS)
            try:
                self.answer("220 ready")
                while (line := self.line()) is not None:
                    verb, _, rest = line.partition(" ")
                    running.heard.append(("" if self.secure else "!") + verb)
                    self.obey(verb, rest)
            except OSError:
                return  # the client went away, or does not like our certificate
            finally:
                self.waiting.close()
                self.request.close()

        def line(self) -> str | None:
            while b"\r\n" not in self.said:
                if not (piece := self.request.recv(4096)):
                    return None
                self.said += piece
            line, _, self.said = self.said.partition(b"\r\n")
            return os.fsdecode(line)

        def answer(self, text: str) -> None:
            self.request.sendall(os.fsencode(text) + b"\r\n")

        def obey(self, verb: str, rest: str) -> None:
            path = root / rest.strip("/")
            if verb == "AUTH":
                self.answer("234 go on")
                self.request = context.wrap_socket(self.request, server_side=True)
                self.secure = True
            elif not self.secure:
                self.answer("530 not in the clear")
            elif verb in ("USER", "QUIT"):
                self.answer("331 and the password" if verb == "USER" else "221 goodbye")
            elif verb == "PASS":
                self.answer("230 welcome" if rest == "open sesame" else "530 no")
            elif verb in ("PBSZ", "PROT", "TYPE", "OPTS"):
                self.private_data = self.private_data or f"{verb} {rest}" == "PROT P"
                self.answer("200 good")
            elif verb == "CWD":
                self.answer("250 there" if path.is_dir() else "550 no such folder")
            elif verb in ("PASV", "EPSV"):
                port = self.waiting.getsockname()[1]
                high, low = divmod(port, 256)
                self.answer(f"227 at (127,0,0,1,{high},{low})" if verb == "PASV" else f"229 at (|||{port}|)")
            elif verb == "MLSD":
                self.send(b"".join(os.fsencode(self.facts(one)) for one in sorted(path.iterdir())))
            elif verb in ("SIZE", "MDTM"):
                self.answer(f"213 {path.stat().st_size if verb == 'SIZE' else modified(path)}")
            elif verb == "RETR":
                self.send(path.read_bytes())
            else:
                self.answer("502 not known")

        def facts(self, path: Path) -> str:
            kind = "dir" if path.is_dir() else "file"
            return f"type={kind};size={path.stat().st_size};modify={modified(path)}; {path.name}\r\n"

        def send(self, content: bytes) -> None:
            if not self.private_data:
                self.answer("521 only in private")
                return
            self.answer("150 here it comes")
            plain, _ = self.waiting.accept()
            plain.settimeout(BOUND_SECONDS)
            with context.wrap_socket(plain, server_side=True) as data:
                data.sendall(content)
                data.unwrap()
            self.answer("226 whole")

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Listener(("127.0.0.1", 0), Conversation) as server:
        running = FtpsServer(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        server.shutdown()
        thread.join(BOUND_SECONDS)


def modified(path: Path) -> str:
    """The date of a file's last change as FTP writes it."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y%m%d%H%M%S")
