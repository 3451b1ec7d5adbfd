"""The committed artifacts are what the sources compile to, and users need no compiler."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import contracts
from contracts.abi import ARTIFACTS, CONTRACTS, POOL_CONTROLLER, artifact

ROOM = Path(contracts.__file__).parent
PINNED = {
    "@openzeppelin/contracts": "5.7.0",
    "@openzeppelin/merkle-tree": "1.0.8",
    "solc": "0.8.37",
}


def modules() -> Path:
    """The installed compiler; installs it from the lock file when npm is there."""
    there = ROOM / "node_modules"
    if not (there / "solc").is_dir():
        _skip_without("npm")
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
        try:
            subprocess.run(command, cwd=ROOM, capture_output=True, check=True, timeout=120)
        except subprocess.SubprocessError as error:
            _skip(f"the pinned compiler cannot be installed: {error}")
    return there


def _skip_without(program: str) -> None:
    if shutil.which(program) is None:
        _skip(f"{program} is not installed, so the contracts cannot be compiled here")


def _skip(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def test_no_source_was_changed_since_the_artifacts_were_compiled() -> None:
    """Nor the compiler, its libraries, how it is asked, nor an artifact."""
    sources = sorted(f"src/{path.name}" for path in (ROOM / "src").glob("*.sol"))
    made = sorted(f"artifacts/{path.name}" for path in ARTIFACTS.glob("*.json"))
    made.remove("artifacts/sources.json")
    told = json.loads((ARTIFACTS / "sources.json").read_bytes())
    assert list(told) == [*sources, "build.mjs", "package-lock.json", *made]
    for name, digest in told.items():
        assert hashlib.sha256((ROOM / name).read_bytes()).hexdigest() == digest, "make contracts"


@pytest.mark.slow("::test_no_source_was_changed_since_the_artifacts_were_compiled")
def test_the_sources_compile_to_the_committed_bytes(tmp_path: Path) -> None:
    _skip_without("node")
    subprocess.run(
        ["node", str(ROOM / "build.mjs"), str(tmp_path)],
        check=True,
        capture_output=True,
        timeout=120,
        env=os.environ | {"NODE_MODULES": str(modules())},
    )
    built = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    assert built == {path.name: path.read_bytes() for path in ARTIFACTS.glob("*.json")}


def test_all_come_from_one_compilation_with_pinned_settings() -> None:
    found = [
        json.loads((ARTIFACTS / f"{name}.json").read_bytes())
        for name in (*CONTRACTS, POOL_CONTROLLER)
    ]
    assert {made["compiler"] for made in found} == {"0.8.37+commit.f401782d.Emscripten.clang"}
    assert len({made["input_sha256"] for made in found}) == 1
    for made in found:
        assert made["settings"]["evmVersion"] == "cancun"
        assert made["settings"]["optimizer"] == {"enabled": True, "runs": 10000}
        assert made["settings"]["metadata"] == {"bytecodeHash": "none", "appendCBOR": False}
        assert len(made["runtime"]) // 2 - 1 < 24_576, "too large to deploy"


def test_hot_fields_share_their_slots() -> None:
    slots = {
        (name, field["label"]): (field["slot"], field["offset"])
        for name in CONTRACTS
        for field in json.loads((ARTIFACTS / f"{name}.json").read_bytes())["storage_layout"]
    }
    burner = [
        slots["CreditBurner", label][0] for label in ("lastRound", "lastRoundAt", "lastPrice")
    ]
    assert len(set(burner)) == 1
    assert slots["CreditBurner", "oracle"][0] == slots["CreditBurner", "nextPurchaseId"][0]
    emission = [slots["EmissionController", label][0] for label in ("nextEpoch", "recyclable")]
    assert len(set(emission)) == 1


def test_dependencies_are_pinned_and_name_no_registry() -> None:
    package = json.loads((ROOM / "package.json").read_bytes())
    assert package["dependencies"] == PINNED
    lock = (ROOM / "package-lock.json").read_text()
    assert "http" not in lock
    installed = json.loads(lock)["packages"]
    for name, version in PINNED.items():
        assert installed[f"node_modules/{name}"]["version"] == version
    assert all("integrity" in entry for name, entry in installed.items() if name)


def test_every_public_item_of_our_sources_is_explained() -> None:
    openers = ("function ", "event ", "error ", "constructor", "struct ")
    for path in sorted((ROOM / "src").glob("*.sol")):
        lines = [line.strip() for line in path.read_text().splitlines()]
        for before, line in itertools.pairwise(lines):
            is_public = " public " in line or " external" in line or line.startswith(openers)
            is_private = line.startswith("function _")
            if is_public and not is_private and not line.startswith((")", "external", "public")):
                assert before.startswith("///"), f"{path.name}: {line}"


def test_an_unknown_contract_or_function_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        artifact("Nothing")
    with pytest.raises(KeyError):
        artifact("TallyToken").call_data("nothing")
