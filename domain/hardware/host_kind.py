"""What kind of machine a node is: its kernel's version, what it runs on, how it is reached.

    kernel_number("6.1.0-13-amd64") == 6_001_000        major x 10^6 + minor x 10^3 + patch

Versions compare as these numbers. A substrate is what lies under the node, the lowest first: a
Kubernetes node on ESXi is ("esxi", "kubernetes"), and meets a demand for either. Network classes
are levels: each gives what the ones before it give. Source: rows V-15 and V-17.
"""

from __future__ import annotations

import re

NETWORK_CLASSES = ("internet", "local", "switched")
"""Over the internet; in the local network of its site; in a switched data-centre network."""
SUBSTRATES_MAX = 8
"""Layers that a node tells, in words of its own: "bare_metal", "esxi", "kvm", "kubernetes", ..."""

_RELEASE = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?![0-9])", re.ASCII)


def kernel_number(release: str | None) -> int | None:
    """A release as a number that compares; None where it names no version."""
    found = None if release is None else _RELEASE.match(release)
    if found is None:
        return None
    major, minor, patch = (int(part or 0) for part in found.groups())
    return major * 1_000_000 + minor * 1_000 + patch


def kernel_version(number: int) -> str:
    """The number as a version: 5010000 is 5.10.0."""
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"


def version_rule(value: str) -> str | None:
    """What is wrong with a version that is asked for, or None."""
    return None if _RELEASE.fullmatch(value) else "a version, like 5.10 or 6.1.2"
