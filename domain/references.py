"""Names of things that are kept elsewhere: keys, checkpoints, datasets, models. None is a secret.

    accepted  =>  it holds no credential that we know the look of, no password and no signed address

The log forgets nothing, so a text that looks like a secret is refused and is not repeated (C-40).
"""

from __future__ import annotations

import re

REFERENCE_MAX = 512
THIRD_PARTY_KEY, CHECKPOINT, DATASET = "third_party_key", "checkpoint", "dataset"
WORKSPACE = "workspace"
REFERENCE_KINDS = (THIRD_PARTY_KEY, CHECKPOINT, DATASET, WORKSPACE)
"""What a job refers to. Of a key: its name in a secret store; of a workspace: its digest
(`domain/jobs/workspace.py`); of the others an address without a query.
"""

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEY_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,63}(/[0-9A-Za-z_.-]{1,64}){0,3}", re.ASCII)
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,15}://)?[0-9A-Za-z][0-9A-Za-z_.:/+@-]{0,400}", re.ASCII
)
_SECRETS = re.compile(
    r"(?i)(?:AKIA|ASIA)[0-9A-Z]{16}|sk[-_](?:live|test|proj|ant)?[-_]?[0-9A-Za-z]{16}"
    r"|gh[opsu]_[0-9A-Za-z]{20}|hf_[0-9A-Za-z]{20}|ts_(?:live|test|node)_|xox[abp]-"
    r"|eyJ[0-9A-Za-z_-]{16}|BEGIN [A-Z ]*PRIVATE KEY"
)
"""What credentials of widespread services look like: none of them is the name of one."""


def holds_secret(text: str) -> bool:
    """Whether a text looks like a credential of a widespread service."""
    return _SECRETS.search(text) is not None


def reference_rule(kind: str, name: str) -> str | None:
    """The rule that a reference breaks; None: it may be one. What is refused is never repeated: it
    may be a secret.
    """
    if holds_secret(name):
        return "a reference names a secret and holds none: this looks like one"
    if kind == THIRD_PARTY_KEY:
        return None if _KEY_NAME.fullmatch(name) else "the name of a key in a secret store"
    if kind == WORKSPACE:
        return None if _DIGEST.fullmatch(name) else "the digest of a workspace, 64 hex digits"
    if _ADDRESS.fullmatch(name) is None:
        return "an address without query or fragment: signed addresses are secrets"
    authority = name.partition("://")[2].partition("/")[0]
    return "an address without user and password" if "@" in authority else None
