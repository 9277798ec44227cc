"""Who is trusted in a cluster on loopback? One authority, and certificates that it signs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_VALID_FOR = timedelta(days=365)  # Kueue renews what ends within 90 days
_USAGES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate as a file has it."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as a file has it."""
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
        return self.key.private_bytes(encoding, form, serialization.NoEncryption())

    def write(self, folder: Path, name: str = "tls") -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key`; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate_pem)
        key.write_bytes(self.key_pem)
        return certificate, key


def authority(name: str) -> Certificate:
    """Make an authority that signs for itself. Its name is a host name of it too: Kueue looks for it there."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = _name(name)
    builder = _builder(subject, subject, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    builder = builder.add_extension(x509.SubjectAlternativeName([_host(name)]), False)
    usage = x509.KeyUsage(True, False, True, False, False, True, True, False, False)
    return Certificate(builder.add_extension(usage, True).sign(key, hashes.SHA256()), key)


def signed(by: Certificate, user: str, group: str = "", hosts: tuple[str, ...] = ()) -> Certificate:
    """Make a certificate for a user of a group (a client), or for host names and addresses (a server)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    builder = _builder(_name(user, group), by.certificate.subject, key)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(_USAGES), False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
    return Certificate(builder.sign(by.key, hashes.SHA256()), key)


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),  # also where an embedded stack keeps its own time
        not_valid_after=now + _VALID_FOR,
    )


def _name(user: str, group: str = "") -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
