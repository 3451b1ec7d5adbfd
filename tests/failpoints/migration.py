"""A new version brings two more files of SQL: each is applied in a transaction of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from ledger import migrate
from ledger.migrate import Migration
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Answered, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene

DEATH, LOST = Fault.DEATH, Fault.LOST
FILES = 2


class Migrations(Scene):
    failpoints: ClassVar = (
        Failpoint("migrate.planned", After("ledger.migrate:_missing"), (DEATH, LOST)),
        Failpoint("migrate.applied", Inside("migration", "INSERT"), IN_DATABASE, FILES),
        Failpoint("migrate.recorded", Answered("migration", "INSERT"), (DEATH, LOST), FILES),
    )

    def act(self, tell: Tell) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migrate, "shipped", lambda: self._shipped)
            for name in migrate.migrate(self.conninfo):
                tell(name)

    def prepare(self) -> None:
        """The files of all versions so far, and those of this one."""
        added = [
            Migration(1_000 + number, f"{number}.sql", f"CREATE TABLE added_{number} (id int);")
            for number in range(1, FILES * self.round + 1)
        ]
        self._shipped = [*migrate.shipped(), *added]

    def check(self, told: list[Any], again: list[Any]) -> None:
        names = [one.name for one in self._shipped[-FILES:]]
        assert told == names[: len(told)]
        assert again == names[FILES - len(again) :], "what is missing, in order"
        connection = self.observer
        assert connection.execute(
            "SELECT array_agg(sha256 ORDER BY number) FROM migration"
        ).fetchone() == ([one.sha256 for one in self._shipped],)
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE tablename ~ '^added_'"
        ).fetchone()
        assert tables == (FILES * self.round,)
