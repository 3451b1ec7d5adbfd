"""The demo: one GPU-second from a signed report to a claimed token, on embedded parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from api.replay import demo
from domain.gpu_time import charge_for
from tests.processes import free_port
from tests.scenes.shell import tallystick

LAST = "stop it with Ctrl-C"
AT_LEAST = {
    "nodes",
    "leases",
    "usage_reports",
    "gpu_microseconds_metered",
    "charged",
    "providers_earned",
    "platform_earned",
    "tokens_burned",
    "tokens_minted",
    "epoch",
    "payout_root",
    "claims",
    "tokens_claimed",
    "books_balanced",
    "chain_reconciled",
    "audit_verified",
    "seconds",
}


@dataclass(frozen=True)
class Served:
    """What `tallystick demo --serve` printed, and said on a terminal until it waited."""

    result: dict[str, Any]
    said: list[str]

    def exported(self, name: str) -> list[str]:
        begin = f"  export {name}="
        return [line.removeprefix(begin) for line in self.said if line.startswith(begin)]


@pytest.fixture(scope="module")
def served() -> Generator[Served, None, None]:
    with TemporaryDirectory(prefix="demo") as folder, (Path(folder) / "out").open("w+") as out:
        ours, terminal = os.openpty()
        # The commands are not on a newcomer's path.
        environment = {**os.environ, "PATH": os.defpath, "TERM": "dumb", "COLUMNS": "200"}
        demo = subprocess.Popen(
            [sys.executable, "-m", "cli", "demo", "--serve", "--json"],
            stdout=out,
            stderr=terminal,
            env=environment,
        )
        os.close(terminal)
        try:
            with open(ours, encoding="utf-8") as screen:
                said = [line.rstrip("\n") for line in iter(screen.readline, f"{LAST}\n")]
                yield Served(json.loads(Path(out.name).read_text(encoding="utf-8")), said)
                demo.send_signal(signal.SIGINT)
                assert demo.wait(60) == 0
        finally:
            demo.kill()
            demo.wait()


@pytest.fixture(scope="module")
def result(served: Served) -> dict[str, Any]:
    return served.result


def test_the_demo_can_be_looked_around_by_the_lines_that_it_prints(served: Served) -> None:
    (path,), (url,) = served.exported("PATH"), served.exported("TALLYSTICK_URL")
    (command,) = [line.strip() for line in served.said if line.startswith("  tallystick ")]
    assert httpx.get(url).status_code == 200
    keys = served.exported("TALLYSTICK_API_KEY")
    assert len(keys) > 3
    for key in keys:
        environment = {"TALLYSTICK_URL": url, "TALLYSTICK_API_KEY": key}
        told = subprocess.run(
            ["/bin/sh", "-c", f"export PATH={path.replace('$PATH', os.defpath)}; {command}"],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert (told.returncode, told.stderr) == (0, "")
        assert "compute" in told.stdout
        assert "paid            0.0" not in told.stdout, "a node that earned is more to look at"


def test_doctor_in_a_newcomers_shell_looks_at_the_demos_server(
    served: Served, tmp_path: Path
) -> None:
    """It asked another address, and had a database that this machine need not have as failed."""
    (url,) = served.exported("TALLYSTICK_URL")
    ran = tallystick("doctor", "--json", URL=url, DATA_DIR=tmp_path, PORT=free_port())
    told = {each["name"]: each for each in ran.document["checks"]}
    assert ran.code == 0, told
    assert told["server of TALLYSTICK_URL"]["said"] == f"ready on {url}/readyz"
    assert told["database"]["state"] == "absent"
    away = f"http://127.0.0.1:{free_port()}"
    ran = tallystick("doctor", "--json", URL=away, DATA_DIR=tmp_path, PORT=free_port())
    told = {each["name"]: each for each in ran.document["checks"]}
    assert (ran.code, told["server of TALLYSTICK_URL"]["state"]) == (1, "failed")


def test_the_demo_names_what_to_do_next_and_counts_in_words(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any("2 of 3 leases settled" in line for line in served.said), "not: 1 leases settled"
    assert any("docs/howto/run-work.md" in line for line in served.said)
    monkeypatch.setattr(demo, "run", lambda *_, **__: served.result)
    ran = tallystick("demo")
    assert "tallystick demo --serve" in ran.err
    assert "docs/tutorial.md" in ran.err
    assert served.result["rewarded_node_ids"] == served.result["node_ids"][1:]


def test_the_demo_prints_at_least_what_checks_rely_on(result: dict[str, Any]) -> None:
    assert result.keys() >= AT_LEAST
    assert json.loads(json.dumps(result)) == result


def test_everything_balances_reconciles_and_verifies(result: dict[str, Any]) -> None:
    assert result["books_balanced"]
    assert result["chain_reconciled"]
    assert result["audit_verified"]


def test_what_was_charged_is_what_providers_and_platform_got(result: dict[str, Any]) -> None:
    charged, providers, platform = (
        int(result[name]["units"]) for name in ("charged", "providers_earned", "platform_earned")
    )
    assert charged == providers + platform > 0


def test_the_metered_time_is_the_time_leased(result: dict[str, Any]) -> None:
    """9,000 s of a GPU, 3,600 s of 0.37 of one, 10,800 s of two."""
    assert int(result["gpu_microseconds_metered"]) == (9_000 + 1_332 + 21_600) * 1_000_000


def test_each_line_of_the_statement_can_be_recomputed(result: dict[str, Any]) -> None:
    assert len(result["statement"]) == result["leases"] > 0
    for line in result["statement"]:
        gpu_us = int(line["gpu_seconds"]) * 1_000_000
        price = int(line["price_per_gpu_hour"]["units"])
        assert int(line["charge"]["units"]) == charge_for(gpu_us, price)


def test_the_claims_are_compute_rewards_and_treasury(result: dict[str, Any]) -> None:
    """Of 1,000 TOKEN: for compute 95 % of what was burned for it, 15 CREDIT's part of 30 TOKEN for
    60; 100 for the treasury; 200 carried for availability; the rest was never minted.
    """
    assert result["claims"] == 2
    assert int(result["tokens_claimed"]) == 107_12500000, (
        "100 of the treasury, and 95 % of the 7.5 burned"
    )
    assert int(result["tokens_minted"]) == 307_12500000


def test_the_timelock_was_waited_for(served: Served) -> None:
    assert served.result["payout_root"].startswith("0x")
    assert any("timelock refuses" in line for line in served.said)


@pytest.mark.long
def test_a_second_run_charges_and_pays_the_same(result: dict[str, Any]) -> None:
    with TemporaryDirectory(prefix="demo") as folder:
        Path(folder).chmod(0o755)
        again = demo.run(Path(folder) / "data", lambda _line: None)
    assert again["charged"] == result["charged"]
    assert again["tokens_claimed"] == result["tokens_claimed"]
