"""Certificates of a broker and of a client, both signed by an authority that nobody else knows."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.private_brokers import HOST


class Certificates:
    """The files of one broker."""

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "authority.pem"
        self.broker = folder / "broker.pem"
        """Its key, and its certificate behind it, as Kafka reads them."""
        self.client = folder / "client.pem"
        self.client_key = folder / "client.key"

    def write(self) -> None:
        """Make all of them."""
        authority_key = _new_key()
        authority = _sign(_name("an authority of the tests"), authority_key, authority_key, is_authority=True)
        self.authority.write_bytes(_pem(authority))
        broker_key, client_key = _new_key(), _new_key()
        broker = _sign(_name("a broker of the tests"), broker_key, authority_key)
        self.broker.write_bytes(_key_pem(broker_key) + _pem(broker))
        self.client.write_bytes(_pem(_sign(_name("a client of the tests"), client_key, authority_key)))
        self.client_key.write_bytes(_key_pem(client_key))


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    authority_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_name("an authority of the tests"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
