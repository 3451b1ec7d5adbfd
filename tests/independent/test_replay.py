"""`audit replay` on a real log: a synthetic year is executed again, and nothing forged passes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from api.audit.replay import replay_bundle
from domain.chain.payout_root import EpochMintConfirmed, PayoutRootBuilt
from domain.epochs.epoch import EpochClosing, EpochSealed, RewardsCredited, RewardsMatured
from ledger.bundle.epoch_replay import EpochReplay, executed
from ledger.bundle.export import export_bundle
from ledger.bundle.shape import result_root
from ledger.tree.checkpoint import VerifierKey
from tests.conftest import Databases
from tests.independent import bundle_sql
from tests.independent.year import Year, live
from tests.scenes.audit import LOG_SEED, ORIGIN, open_scene
from tests.scenes.shell import tallystick

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))
EPOCHS, NODES = 6, 20
YEAR = live(EPOCHS, NODES)
Facts = list[tuple[Any, Any]]


def exported(postgres: Databases, template: str, folder: Path, year: Year, facts: Facts) -> Path:
    """A bundle of a log with these facts, made the way an operator makes one."""
    name = "replay_" + sha256(str(folder).encode()).hexdigest()[:12]
    conninfo = postgres.create_database(name, template=template)
    scene = open_scene(conninfo)
    with closing(scene.conn):
        for first in range(0, len(facts), 40):
            scene.facts(facts[first : first + 40])
        scene.sign(folder)
        export_bundle(
            conninfo, folder / "bundle", KEY, "0.1.0", epochs=year.epoch_files, payouts=year.payouts
        )
    postgres.drop_database(name)
    return folder / "bundle"


@pytest.fixture(scope="module")
def original(postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    return exported(postgres, template, folder, YEAR, YEAR.world.facts)


# --- transport: any flipped byte --------------------------------------------------------------


def test_a_flipped_byte_anywhere_in_a_bundle_is_seen(original: Path, tmp_path: Path) -> None:
    """At 40 places of the manifest, and at a few of every other file."""
    bundle = tmp_path / "bundle"
    shutil.copytree(original, bundle)
    small = bundle / "manifest.json"
    for path in sorted(bundle.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        step = max(len(content) // (40 if path == small else 3), 1)
        for at in range(0, len(content), step):
            changed = bytearray(content)
            changed[at] ^= 1 << at % 8
            path.write_bytes(changed)
            found = replay_bundle(bundle)
            assert not found.ok, (path, at)
            assert found.first is not None
        path.write_bytes(content)
    assert replay_bundle(bundle).ok


# --- a dishonest operator, who signs what he likes --------------------------------------------


def _change(kind: type[Any], change: Callable[[Any], Any]) -> Callable[[Facts], Facts]:
    """The last but one fact of a kind, changed."""

    def changed(facts: Facts) -> Facts:
        found = [n for n, (_, fact) in enumerate(facts) if isinstance(fact, kind)][-2]
        stream, fact = facts[found]
        return [*facts[:found], (stream, change(fact)), *facts[found + 1 :]]

    return changed


def _to_a_friend(fact: RewardsCredited | RewardsMatured) -> Any:
    first, second, *rest = fact.rewards
    one = first.amount.units // 2
    taken = replace(first, amount=replace(first.amount, units=first.amount.units - one))
    given = replace(second, amount=replace(second.amount, units=second.amount.units + one))
    return replace(fact, rewards=(taken, given, *rest))


def _more(name: str) -> Callable[[Any], Any]:
    def more(fact: Any) -> Any:
        amount = getattr(fact, name)
        return replace(fact, **{name: replace(amount, units=amount.units + 1)})

    return more


def _resealed(change: Callable[[Any], None]) -> Callable[[Facts], tuple[Facts, bytes]]:
    """The last epoch's file is changed, and its seal says the hash of that."""

    def forged(facts: Facts) -> tuple[Facts, bytes]:
        document = json.loads(YEAR.epoch_files[EPOCHS])
        change(document)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        data = text.encode()
        told = sha256(data).hexdigest()
        return [
            (stream, replace(fact, file_sha256=told))
            if isinstance(fact, EpochSealed) and fact.epoch == EPOCHS
            else (stream, fact)
            for stream, fact in facts
        ], data

    return forged


def _opens(name: str, units: int) -> Callable[[Facts], tuple[Facts, bytes]]:
    return _resealed(
        lambda file: file["openings"].update({name: str(int(file["openings"][name]) + units)})
    )


def _told(change: Callable[[Facts], Facts]) -> Callable[[Facts], tuple[Facts, bytes]]:
    return lambda facts: (change(facts), YEAR.epoch_files[EPOCHS])


def _pay_more(document: Any) -> None:
    document["rewards"][0][1] = str(int(document["rewards"][0][1]) + 1)


FORGERIES: dict[str, Callable[[Facts], tuple[Facts, bytes]]] = {
    "RewardsCredited 1 is not what the epoch pays": _told(_change(RewardsCredited, _to_a_friend)),
    "RewardsMatured 1 is not what the epoch pays": _told(_change(RewardsMatured, _to_a_friend)),
    "RewardsCredited 2 is out of order": _told(
        _change(RewardsCredited, lambda fact: replace(fact, chunk=2))
    ),
    "EpochSealed compute_weight is 1": _told(
        _change(EpochSealed, lambda fact: replace(fact, compute_weight=1))
    ),
    "minted": _told(_change(EpochMintConfirmed, _more("amount"))),
    "is not the pin that closed it": _told(
        _change(EpochClosing, lambda fact: replace(fact, epoch=9))
    ),
    "opens with compute_carry": _opens("compute_carry", 1),
    "opens with availability_carry": _opens("availability_carry", 1),
    "opens with unissued": _opens("unissued", -1),
    "opens with recyclable": _opens("recyclable", 7),
    "opens with other adjustments": _resealed(
        lambda file: file["openings"].update(adjustments=[["acct_00001", "5"]])
    ),
    "its policy is not": _resealed(lambda file: file["policy"].update(holdback_epochs=1)),
    "rewards is": _resealed(_pay_more),
    "cannot be executed": _resealed(lambda file: file.update(nodes=[[]])),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_an_operator_forged_is_named(what: str) -> None:
    facts, file = FORGERIES[what](YEAR.world.facts)
    assert any(what in problem for problem in _executed(facts, file))


def test_nothing_is_wrong_with_what_nobody_forged() -> None:
    assert list(_executed(YEAR.world.facts, YEAR.epoch_files[EPOCHS])) == []


def _executed(facts: Facts, last: bytes) -> list[str]:
    work = EpochReplay(lambda epoch: executed(epoch, {**YEAR.epoch_files, EPOCHS: last}.get(epoch)))
    return [what for at, (_, fact) in enumerate(facts, 1) for what in work.take(at, fact)]


def test_roots_that_do_not_follow_are_named_at_their_fact_in_a_log_signed_by_the_forger(
    postgres: Databases, template: str, tmp_path: Path
) -> None:
    forge = _change(
        PayoutRootBuilt, lambda fact: _more("committed")(replace(fact, root="0x" + "ab" * 32))
    )
    facts = forge(YEAR.world.facts)
    position = 1 + next(n for n, (_, fact) in enumerate(facts) if fact not in YEAR.world.facts[n])
    bundle = exported(postgres, template, tmp_path, YEAR, facts)
    ran = tallystick("audit", "replay", bundle, "--json")
    assert ran.code == 1
    assert ran.document["verified"] is True, "signed by the operator's own key"
    assert ran.document["first_difference"].startswith(f"market position {position}: ")
    problems = "\n".join(ran.document["problems"])
    for what in ("root is 0x", "committed is ", "PayoutRootBuilt says 0xabab"):
        assert what in problems


# --- what is missing --------------------------------------------------------------------------


def test_a_bundle_without_its_files_is_not_replayed(
    postgres: Databases, template: str, tmp_path: Path
) -> None:
    year = replace(YEAR, epoch_files={}, payouts={})
    bundle = exported(postgres, template, tmp_path, year, YEAR.world.facts)
    ran = tallystick("audit", "replay", bundle, "--json")
    assert ran.code == 1
    assert ran.document["verified"] is True
    assert "its file is not in the bundle" in ran.document["first_difference"]


# --- somebody else's reading ------------------------------------------------------------------


def test_sql_over_the_files_of_a_bundle_comes_to_the_same_epochs_and_roots(
    original: Path, tmp_path: Path
) -> None:
    assert bundle_sql.differences(original) == []
    shutil.copytree(original, tmp_path / "bundle")
    for name in (f"payouts/{EPOCHS}.json", f"epochs/{EPOCHS}.json"):
        shutil.copy(original / name, tmp_path / "bundle" / name.replace(str(EPOCHS), "5"))
        assert bundle_sql.differences(tmp_path / "bundle") != []


NEITHER_NETWORK_NOR_DRIVER = """
import socket, sys
for name in ("psycopg", "psycopg_binary", "psycopg_pool", "eventsourcing", "web3", "fastapi"):
    sys.modules[name] = None
def refuse(*_, **__):
    raise OSError("no network here")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
"""

NO_DRIVER_IS_THERE = "if python3 -c 'import psycopg' 2>/dev/null; then exit 9; fi\n"


@pytest.mark.guides(
    "::test_sql_over_the_files_of_a_bundle_comes_to_the_same_epochs_and_roots",
    "::test_a_flipped_byte_anywhere_in_a_bundle_is_seen",
)
def test_the_page_for_strangers_does_what_it_says_without_network_and_driver(
    original: Path, tmp_path: Path
) -> None:
    """`docs/howto/verify-an-epoch.md`: its commands, on a bundle that somebody was given."""
    here = Path(__file__).parents[2]
    page = (here / "docs/howto/verify-an-epoch.md").read_text()
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (tmp_path / "bundle").symlink_to(original)
    (tmp_path / "sitecustomize.py").write_text(NEITHER_NETWORK_NOR_DRIVER)
    shutil.copy(original / "checkpoint", tmp_path / "head.txt")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", NO_DRIVER_IS_THERE + script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": f"{tmp_path}:{here}", "LOG_KEY": str(KEY)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^verified$", done.stdout, re.MULTILINE)
    told = dict(re.findall(r"^(\w+) +(\S+)$", done.stdout, re.MULTILINE))
    assert told["replayed"].lower() in ("yes", "true")
    assert (int(told["epochs"]), int(told["payout_roots"])) == (EPOCHS, len(YEAR.payouts))
    hashes = {n: sha256(data).hexdigest() for n, data in YEAR.epoch_files.items()}
    manifest = json.loads((original / "manifest.json").read_bytes())
    assert told["result_root"] == manifest["result_root"] == result_root(hashes)
    assert manifest["code_version"] == "0.1.0"
    for epoch, root in YEAR.roots.items():
        assert f"epoch {epoch} root {root}\nepoch {epoch} manifest {hashes[epoch]}\n" in done.stdout
    for epoch, settled in YEAR.settlements.items():
        assert f"epoch {epoch} sealed {settled.total} credited {settled.total}\n" in done.stdout
