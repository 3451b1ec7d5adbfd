"""Commands on this machine's data: migrate, bootstrap, jobs, audit, trace replay."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from nacl.signing import SigningKey

from api.door import keys
from cli.signing import make_key
from domain.authority.governors import ProposeGovernorChange
from domain.authority.register import GOVERNORS
from domain.authority.vote import governor_id
from ledger.log.handle import Ledger
from ledger.tree.checkpoint import VerifierKey
from tests.scenes.governors import ANNA
from tests.scenes.shell import Machine, tallystick
from tests.scenes.told import BLINDING_KEY

NODES = "sn,gpu,model\nnode-a,4,T4\nnode-b,1,V100M32\n"
TASKS = (
    "name,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
    "whole,1,1000,,0,5400,0\n"
    "half,1,500,,60,3660,60\n"
    "pair,2,1000,T4,120,720,120\n"
    "no-gpu,0,0,,0,60,0\n"
    "never,1,1000,V100M32,0,60,\n"
)


@pytest.fixture
def machine(tmp_path: Path, database: str) -> Machine:
    return Machine(tmp_path / "data", database)


def test_migrate_may_be_run_twice(tmp_path: Path, empty_database: str) -> None:
    machine = Machine(tmp_path, empty_database)
    applied = machine.run("migrate", "--json").document["applied"]
    assert applied
    assert applied[0] == "0001_market.sql"
    assert machine.run("migrate", "--json").document == {"applied": []}


def test_bootstrap_enrols_the_first_governor_so_that_no_thief_of_the_key_can(
    machine: Machine, tmp_path: Path
) -> None:
    """From the first append on a further governor takes a vote of the first one."""
    file = tmp_path / "me.key"
    public = make_key(file)
    assert machine.run("admin", "bootstrap", "--governor", str(file), "--json").code == 0
    with Ledger(machine.database, blinding_key=BLINDING_KEY) as ledger:
        register = ledger.world().state(GOVERNORS)
        assert register.keys == {governor_id(public): public}
        thief = ANNA.enrolment(register.network, register.now.version)
        command = ProposeGovernorChange(network=register.network, **thief, by="mem_op", at_us=2)
        ledger.handle(command, key=None, now_us=2)
        after = ledger.world().state(GOVERNORS)
    assert after.now.members == (governor_id(public),), "it is only proposed"
    assert [one.status for one in after.changes] == ["proposed"]


def test_the_first_operator_is_made_once_and_its_key_shown_once(machine: Machine) -> None:
    made = machine.run("admin", "bootstrap", "--json")
    assert made.code == 0
    key = made.document["api_key"]
    assert keys.key_id(key) == made.document["key_id"]
    again = machine.run("admin", "bootstrap", "--json")
    assert again.code == 1
    assert again.document["refused"] == "operator_exists"
    assert "use its API key" in again.err
    with psycopg.connect(machine.database) as connection:
        stored = connection.execute(
            "SELECT string_agg(encode(state, 'escape'), '') FROM market_events"
        )
        text = str(stored.fetchone())
    assert key not in text
    assert keys.digest(key) in text


def test_a_lost_key_of_the_operator_is_announced_anew_and_works_later(machine: Machine) -> None:
    refused = machine.run("admin", "recover-key", "--json")
    assert (refused.code, refused.document["refused"]) == (1, "account_unknown")
    machine.run("admin", "bootstrap")
    made = machine.run("admin", "recover-key", "--member", "operator", "--json")
    assert made.code == 0
    told = made.document
    assert (told["recovery"], told["member_id"]) == (1, "operator")
    assert keys.key_id(told["api_key"]) == told["key_id"]
    again = machine.run("admin", "recover-key", "--json")
    assert (again.code, again.document["refused"]) == (1, "key_recovery_state")
    assert "tallystick key cancel-recovery 1" in again.err


def test_jobs_once_says_what_each_did(machine: Machine) -> None:
    machine.run("admin", "bootstrap")
    done = machine.run("jobs", "--once", "--json").document
    assert done["tree"] > 0
    assert done["pin"] == 1


# --- audit -----------------------------------------------------------------------------------


def test_an_export_verifies_offline_and_a_changed_byte_does_not(
    machine: Machine, tmp_path: Path
) -> None:
    machine.run("admin", "bootstrap")
    machine.run("jobs", "--once")
    bundle = tmp_path / "bundle"
    exported = machine.run("audit", "export", bundle, "--json").document
    verified = tallystick("audit", "verify", bundle, "--key", exported["log_key"], "--json")
    assert verified.code == 0
    assert verified.document["verified"] is True
    assert verified.document["facts"] == exported["facts"]
    assert verified.document["root"] == exported["root"]

    apart = tallystick("audit", "verify", bundle, "--executor", "processes:2", "--json")
    assert (apart.code, apart.document["digest"]) == (0, verified.document["digest"])
    for command in ("verify", "replay"):
        nowhere = tallystick("audit", command, bundle, "--executor", "processes:none")
        assert nowhere.code == 2
        assert "needed a count from 1 to 1024" in nowhere.err

    file = next(bundle.glob("log/market-*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    changed = tallystick("audit", "verify", bundle, "--json")
    assert changed.code == 1
    assert changed.document["verified"] is False
    assert changed.document["problems"]


def test_an_export_is_never_written_over_another(machine: Machine, tmp_path: Path) -> None:
    machine.run("admin", "bootstrap")
    (tmp_path / "bundle").mkdir()
    ran = machine.run("audit", "export", tmp_path / "bundle")
    assert ran.code == 2
    assert "there already" in ran.err


def test_an_empty_log_has_nothing_to_export(machine: Machine, tmp_path: Path) -> None:
    ran = machine.run("audit", "export", tmp_path / "bundle")
    assert ran.code == 1
    assert "tallystick jobs" in ran.err
    assert not (tmp_path / "bundle").exists()


def test_a_proof_convinces_with_the_log_key_and_with_no_other(
    machine: Machine, tmp_path: Path
) -> None:
    machine.run("admin", "bootstrap")
    machine.run("jobs", "--once")
    file = tmp_path / "one.tlog-proof"
    proved = machine.run("audit", "prove", 1, "--out", file, "--json").document
    assert file.read_text() == proved["proof"]
    good = tallystick("audit", "verify", file, "--key", proved["log_key"], "--json")
    assert good.document["verified"] is True
    assert good.document["position"] == 1
    name = proved["log_key"].split("+")[0]
    other = VerifierKey(name, bytes(SigningKey(bytes(32)).verify_key))
    stranger = tallystick("audit", "verify", file, "--key", other, "--json")
    assert stranger.code == 1
    assert stranger.document["verified"] is False


def test_prove_checks_a_file_offline_and_that_it_is_of_this_event(
    machine: Machine, tmp_path: Path
) -> None:
    machine.run("admin", "bootstrap")
    machine.run("jobs", "--once")
    file = tmp_path / "one.tlog-proof"
    key = machine.run("audit", "prove", 1, "--out", file, "--json").document["log_key"]
    words = ("audit", "prove", 1, "--check", file)
    good = tallystick(*words, "--key", key, "--json")
    assert (good.code, good.document["verified"], good.document["position"]) == (0, True, 1)
    for other in (2, "1/1"):
        wrong = tallystick("audit", "prove", other, "--check", file, "--key", key, "--json")
        assert (wrong.code, wrong.document["verified"]) == (1, False)
    content = file.read_bytes()
    file.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    assert tallystick(*words, "--key", key, "--json").document["verified"] is False
    for unusable in (
        words,
        (*words, "--key", key, "--out", file),
        (*words, "--key", "x"),
        ("audit", "prove", 1, "--check", tmp_path / "none", "--key", key),
        ("audit", "prove", 1, "--key", key),
    ):
        assert tallystick(*unusable).code == 2, unusable


def test_what_is_not_signed_yet_has_no_proof(machine: Machine) -> None:
    machine.run("admin", "bootstrap")
    ran = machine.run("audit", "prove", 1)
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("event", ["x", "1/x", "1/2/3", "64/1"])
def test_an_event_that_is_no_position_is_wrong_usage(machine: Machine, event: str) -> None:
    assert machine.run("audit", "prove", event).code == 2


# --- traces ----------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> tuple[Path, Path]:
    nodes, tasks = tmp_path / "nodes.csv", tmp_path / "tasks.csv"
    nodes.write_text(NODES)
    tasks.write_text(TASKS)
    return nodes, tasks


def test_a_trace_replays_into_an_empty_database_only(
    machine: Machine, trace: tuple[Path, Path]
) -> None:
    words = ("trace", "replay", "--format", "openb", "--nodes", trace[0], "--tasks", trace[1])
    first = machine.run(*words, "--json")
    assert first.code == 0, first.err
    told = first.document
    assert (told["tasks"], told["leases_settled"]) == (5, 3)
    assert (told["tasks_without_gpu"], told["tasks_never_scheduled"]) == (1, 1)
    assert told["gpu_microseconds_metered"] == str((5_400 + 1_800 + 1_200) * 1_000_000)
    assert int(told["charged_units"]) == int(told["providers_units"]) + int(told["platform_units"])
    assert told["books_balanced"] is True
    again = machine.run(*words, "--json")
    assert (again.code, "begins with an empty one" in again.document["failed"]) == (1, True)
    assert "empty database" in again.err
    embedded = tallystick(*words, "--json", DATA_DIR=machine.folder)
    assert embedded.document["log_head"] == told["log_head"], "the same input, the same log"


def test_a_trace_that_is_none_is_named_by_file_and_line(
    machine: Machine, trace: tuple[Path, Path]
) -> None:
    trace[0].write_text("sn,gpu,model\nnode-a,none,T4\n")
    ran = machine.run("trace", "replay", "--nodes", trace[0], "--tasks", trace[1])
    assert (ran.code, ran.out) == (2, "")
    assert f"{trace[0]}:2" in ran.err


# --- books for other tools ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["hledger", "beancount"])
def test_the_books_are_written_to_a_new_file_and_summed_up(
    machine: Machine, tmp_path: Path, form: str
) -> None:
    machine.run("admin", "bootstrap")
    output = tmp_path / "books"
    done = machine.run("export", "journal", "--format", form, "--output", output, "--json")
    assert done.code == 0, done.err
    told = done.document
    assert (told["output"], told["format"], told["postings"]) == (str(output), form, 1)
    assert told["bytes"] == output.stat().st_size > 0
    assert told["accounts"] == 2, "the hard cap is booked from the first policy on"
    again = machine.run("export", "journal", "--output", output)
    assert again.code == 2
    assert "is there already" in again.err
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".part")] == []
