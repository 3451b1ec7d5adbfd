"""A command line beside a market that a test holds, its timers, and a real EVM in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.pools.controller_timer import check_controllers
from api.timers import Timers, all_timers
from cli import remote as cli_remote
from contracts.chain import Chain
from contracts.devnet import Devnet
from contracts.signers import LocalKeySigner
from tallystick_client import NEVER, Client
from tests.scenes.server import Caller, Scene
from tests.scenes.shell import Ran, tallystick
from tests.scenes.work import pin_and_sign

OWNER_KEY = 3


@dataclass(frozen=True)
class Desk:
    """A command line beside a market, with an EVM in a file that commands open and close."""

    scene: Scene
    folder: Path

    @classmethod
    def beside(cls, scene: Scene, folder: Path) -> Desk:
        """With a chain of one block."""
        with Devnet(folder / "chain.sqlite") as devnet:
            devnet.mine(1)
        return cls(scene, folder)

    def run(self, who: Caller, *words: object, on_chain: bool = False) -> Ran:
        chain = ["--chain-file", self.folder / "chain.sqlite", "--dev-key", OWNER_KEY]
        more = chain if on_chain else []
        with pytest.MonkeyPatch.context() as patched:
            http: Any = self.scene.http
            client = Client("", who.key, retry=NEVER, http=http)
            patched.setattr(cli_remote.Remote, "_reach", lambda _self, call: call(client))
            return tallystick(*words, *more, "--json", API_KEY=who.key, URL="http://127.0.0.1:1")

    def told(self, who: Caller, *words: object, on_chain: bool = False) -> Any:
        ran = self.run(who, *words, on_chain=on_chain)
        assert ran.code == 0, ran.err
        return ran.document

    def on_chain(self, work: Callable[[Chain, LocalKeySigner], Any]) -> Any:
        with Devnet(self.folder / "chain.sqlite") as devnet:
            signer = LocalKeySigner(devnet.keys[OWNER_KEY - 1], devnet.chain_id)
            return work(Chain(devnet.w3), signer)

    def timers(self, *names: str) -> dict[str, int]:
        """A round of these timers of the server, by their names; what each did."""
        service = self.scene.service
        chosen = [one for one in all_timers(service) if one.name in names]
        assert len(chosen) == len(names), names
        return Timers(service, chosen).run_once()

    def pass_time(self, us: int) -> None:
        clock: Any = self.scene.clock
        clock.advance(us)

    def check(self) -> int:
        """A round of the timer."""

        def check(chain: Chain, _signer: LocalKeySigner) -> int:
            with self.scene.service.connect() as connection:
                now_us = self.scene.clock.now_us()
                return check_controllers(self.scene.service, connection, chain, now_us)

        return int(self.on_chain(check))

    def audited(self) -> Any:
        """All that was recorded, exported and checked without the server by two commands, under a
        head that is signed now.
        """
        pin_and_sign(self.scene)
        settings, bundle = self.scene.service.settings, self.folder / "bundle"
        here = {"DATA_DIR": settings.data_dir, "DATABASE_URL": settings.database_url}
        made = tallystick("audit", "export", bundle, "--json", **here)
        assert made.code == 0, made.err
        seen = tallystick("audit", "verify", bundle, "--key", made.document["log_key"], "--json")
        assert seen.code == 0, seen.err
        assert seen.document["facts"] == self.scene.head()
        return seen.document
