"""How long a lost market takes to come back, proved: logs and views of a restore are compared.

    python -m benchmarks.log.restore            full: 5,000,000 facts
    python -m benchmarks.log.restore --short    200,000 facts
    python -m benchmarks.log.restore --tiny     whether it runs at all

A month of leases is written into an embedded, durable database, all views are built and a head is
signed. Then, with the commands of an operator: `tallystick backup`, the data folder is gone,
`tallystick restore`. The restore checks every byte of the
backup, hashes every fact again, compares the heads that were signed, books every fact again in
ranges, and builds every view anew to compare its rows. In the same run the limit: the same restore
with nothing proved of its views (`--no-views`), and the bytes of the backup read and hashed by one
process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import psycopg

from api.audit.tree_timer import run_trees
from api.door import keys
from api.process import secret_files
from api.process.key_files import BLINDING
from api.process.service import Service
from api.settings import Settings
from benchmarks.books.statements import HOURS, write_log
from benchmarks.size import Size, size_asked
from projections import tables

FIGURE_S: Final = 300
FACTS: Final = {Size.FULL: 5_000_000, Size.SHORT: 200_000, Size.TINY: 300}
HOURS_OF: Final = {Size.FULL: HOURS, Size.SHORT: HOURS, Size.TINY: 26}


def run(size: Size) -> dict[str, Any]:
    """Seconds of backup and restore, and what the restore proved."""
    with tempfile.TemporaryDirectory(prefix="tally", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        written = _market(folder / "market", size)
        (folder / "backups").mkdir(mode=0o700)
        backup = _told(folder / "market", "backup", str(folder / "backups"))
        # It is lost. Beside both restores it would need about 100 GB.
        shutil.rmtree(folder / "market")
        read = _read(folder / "backups")
        restores = {}
        for how in ("--no-views", "--views"):
            restored = folder / how.strip("-")
            restores[how] = _told(restored, "restore", str(folder / "backups"), how)
            shutil.rmtree(restored)
    proved = restores["--views"]["told"]
    assert proved["whole"], proved
    assert proved["facts"] >= written["facts"], proved
    return {
        "figure": f"{FACTS[Size.FULL]:,} facts restored and proved in {FIGURE_S} s",
        "conditions": {"cores": os.cpu_count(), "load_average": os.getloadavg(), **written},
        "backup_seconds": backup["seconds"],
        "restore_seconds": restores["--views"]["seconds"],
        "restore_without_views_seconds": restores["--no-views"]["seconds"],
        "limit_read_and_hash": read,
        "proved": proved,
    }


def _market(data_dir: Path, size: Size) -> dict[str, Any]:
    with (
        Service.open(Settings(data_dir=data_dir)) as service,
        psycopg.connect(service.conninfo, autocommit=True) as connection,
    ):
        blinding = secret_files.read(secret_files.folder_of(data_dir) / BLINDING)
        began = time.perf_counter()
        facts = write_log(connection, FACTS[size], keys.new(live=False), HOURS_OF[size], blinding)
        seconds = time.perf_counter() - began
        connection.execute("VACUUM ANALYZE")
        with service.connect() as own:
            for each in tables.PROJECTIONS:
                print(f"view {each.name}", file=sys.stderr, flush=True)
                tables.rebuild(own, each)
            run_trees(service, own, time.time_ns() // 1_000)
        row = connection.execute("SELECT pg_database_size(current_database()) >> 20").fetchone()
    assert row is not None
    return {"facts": facts, "write_seconds": round(seconds, 1), "database_mib": row[0]}


def _told(data_dir: Path, *command: str) -> dict[str, Any]:
    """What a command says with `--json`, and its seconds. Raises AssertionError when it fails."""
    tallystick = Path(sys.executable).with_name("tallystick")
    print(" ".join(command), file=sys.stderr, flush=True)
    began = time.perf_counter()
    done = subprocess.run(
        [tallystick, *command, "--json"],
        env={**os.environ, "TALLYSTICK_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = round(time.perf_counter() - began, 1)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return {"seconds": seconds, "told": json.loads(done.stdout or "{}")}


def _read(folder: Path) -> dict[str, Any]:
    began, size = time.perf_counter(), 0
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest = sha256()
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
                    size += len(chunk)
    return {"mib": size >> 20, "seconds": round(time.perf_counter() - began, 1)}


if __name__ == "__main__":
    print(json.dumps(run(size_asked(__doc__)), indent=2))
