"""Certificates of a test's own authority, made by openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """`certificate` is what its clients trust."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    def issue(self, host: str) -> tuple[Path, Path]:
        """Certificate and key of the server of that name."""
        key, request, certificate = (self.folder / f"{host}.{suffix}" for suffix in ("key", "csr", "crt"))
        _openssl("req", *CURVE, "-keyout", key, "-out", request, "-subj", f"/CN={host}")
        names = self.folder / f"{host}.ext"
        names.write_text(f"subjectAltName=DNS:{host}\n")
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key",
                 "-CAcreateserial", "-days", "2", "-extfile", names, "-out", certificate)  # fmt: skip
        return certificate, key


def authority(folder: Path) -> Authority:
    """A new one."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Authority(folder)
    _openssl("req", "-x509", *CURVE, "-keyout", folder / "ca.key", "-out", made.certificate, "-days", "2",
             "-subj", "/CN=authority of a test")  # fmt: skip
    return made


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
