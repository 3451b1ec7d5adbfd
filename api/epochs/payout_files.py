"""Where payout files are kept: written by the chain jobs, served to whoever claims."""

from __future__ import annotations

from pathlib import Path


def payout_path(data_dir: Path, epoch: int) -> Path:
    """The payout file of an epoch."""
    return data_dir / "payouts" / f"{epoch}.json"
