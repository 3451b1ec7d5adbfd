"""A bill of materials of what a server installs: CycloneDX 1.6 JSON, made of the lock alone.

    python .ci/sbom.py requirements/server.txt > sbom.json

Each component has its version and the hashes that pip insists on, so that what runs somewhere can
be compared with what was pinned. Offline, and the same for the same lock.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

PIN = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)((?: *\\\n +--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE
)
HASH = re.compile(r"sha256:([0-9a-f]{64})")


def bom_of(lock: str) -> Bom:
    """The components that a lock names, in its order."""
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, lock))
    bom.metadata.component = Component(name="tallystick", type=ComponentType.APPLICATION)
    for name, version, hashes in PIN.findall(lock):
        url = PackageURL("pypi", None, name.lower().replace("_", "-"), version)
        bom.components.add(
            Component(
                name=name,
                version=version,
                type=ComponentType.LIBRARY,
                purl=url,
                bom_ref=url.to_string(),
                hashes=[
                    HashType(alg=HashAlgorithm.SHA_256, content=h) for h in HASH.findall(hashes)
                ],
            )
        )
    return bom


if __name__ == "__main__":
    lock = Path(sys.argv[1]).read_text(encoding="utf-8")
    sys.stdout.write(JsonV1Dot6(bom_of(lock)).output_as_string(indent=1) + "\n")
