"""What this machine runs on, the lowest layer first: bare metal or a hypervisor, then Kubernetes.

Read from the processor's flags, the firmware's names and the marks that Kubernetes leaves; what
nothing tells is left out, and nothing at all is None, never a guess. Source: row V-17.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path("/")
HYPERVISORS = (
    # VMware's own name stands in the firmware whichever of its hypervisors it is.
    ("vmware", "esxi"),
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("google compute engine", "kvm"),
    ("amazon ec2", "kvm"),
    ("microsoft corporation virtual machine", "hyperv"),
    ("xen", "xen"),
    ("virtualbox", "virtualbox"),
)
"""Words of the firmware's vendor and product, in lower case, and the hypervisor they mean."""
UNKNOWN_HYPERVISOR = "virtual"
KUBERNETES_MARKS = (
    "var/run/secrets/kubernetes.io/serviceaccount",
    "var/lib/kubelet/config.yaml",
    "etc/kubernetes/kubelet.conf",
)
"""Of a pod, and of a machine that is a node of a cluster."""


def substrate(root: Path = ROOT, environ: Mapping[str, str] | None = None) -> list[str] | None:
    """The layers under this node that can be told apart from here; None: nothing tells."""
    environment = os.environ if environ is None else environ
    lowest = _lowest(root)
    layers = [] if lowest is None else [lowest]
    in_pod = "KUBERNETES_SERVICE_HOST" in environment
    if in_pod or any((root / mark).exists() for mark in KUBERNETES_MARKS):
        layers.append("kubernetes")
    return layers or None


def _lowest(root: Path) -> str | None:
    firmware = f"{_text(root, 'sys_vendor')} {_text(root, 'product_name')}".lower()
    known = next((name for words, name in HYPERVISORS if words in firmware), None)
    flags = _flags(root)
    if flags is None:  # a processor that does not say whether it is virtual
        return known
    if "hypervisor" in flags:
        return known or UNKNOWN_HYPERVISOR
    return "bare_metal"


def _text(root: Path, name: str) -> str:
    try:
        return (root / "sys/class/dmi/id" / name).read_text(errors="replace").strip()
    except OSError:
        return ""


def _flags(root: Path) -> set[str] | None:
    """Of the first processor; None where it has no such line, as on ARM."""
    try:
        lines = (root / "proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    flags = next((line for line in lines if line.startswith("flags")), None)
    return None if flags is None else set(flags.partition(":")[2].split())
