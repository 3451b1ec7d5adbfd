"""A follower of both logs: one step of a view, one of its usage lanes, and a rebuild beside it."""

from __future__ import annotations

from typing import Any, ClassVar

from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from projections import runner, tables
from projections.income.statements import STATEMENTS
from projections.metering.usage import USAGE
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Answered, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.projections.reports import append_reports
from tests.scenes.running_market import RENTER, START_US, Market

DEATH, LOST = Fault.DEATH, Fault.LOST
REBUILD = "projections.tables:"


class Views(Scene):
    views = ("statements", "usage")
    failpoints: ClassVar = (
        Failpoint("views.row_written", Inside("proj_statements.line", "INSERT"), IN_DATABASE),
        Failpoint("views.rows_written", After("projections.runner:apply"), (DEATH, LOST)),
        Failpoint(
            "views.position_moved", Inside("proj_statements.position", "UPDATE"), IN_DATABASE
        ),
        Failpoint("views.step_done", After("projections.runner:step"), (DEATH, LOST), 2),
        Failpoint("views.lane_rows_written", Inside("proj_usage.node_hour", "INSERT"), IN_DATABASE),
        Failpoint("views.lanes_moved", Answered("proj_usage.position", "UPDATE"), (DEATH, LOST)),
        Failpoint("views.rebuild_begun", After(REBUILD + "create"), (DEATH, LOST)),
        Failpoint("views.rebuild_filled", Before(REBUILD + "_change_places"), (DEATH, LOST)),
        Failpoint("views.rebuild_renaming", After(REBUILD + "_rename"), (DEATH, LOST), 2),
        Failpoint("views.rebuild_swapped", After(REBUILD + "_change_places"), (DEATH, LOST)),
    )

    def found(self) -> None:
        ledger, connection = self.ledger, self.observer
        Market(ledger, connection).found()
        append_reports(connection, nodes=2, reports=1)  # flagged: hours of theirs are not counted
        tables.step_all(connection, only=self.views)

    def prepare(self) -> None:
        """Something for both logs."""
        ledger = self.ledger
        ledger.handle(
            ConfirmDeposit(
                deposit_id=f"deposit_{self.round}",
                account_id=RENTER,
                source="cash",
                amount=credit(1),
                reference=str(self.round),
                confirmed_by="operator",
                at_us=START_US,
            ),
            key=None,
            now_us=START_US,
        )
        connection = self.observer
        append_reports(connection, nodes=2, reports=1)

    def act(self, tell: Tell) -> None:
        with self.connect() as connection:
            while runner.step(connection, STATEMENTS):
                tell(["statements", tables.position_of(connection, STATEMENTS)])
            while runner.step_lanes(connection, USAGE):
                tell(["usage", 0])
            assert tables.rebuild(connection, STATEMENTS).differing == ()
            tell(["rebuilt", tables.position_of(connection, STATEMENTS)])

    def check(self, told: list[Any], again: list[Any]) -> None:
        connection = self.observer
        head = connection.execute("SELECT pos FROM market_events_head").fetchone()
        assert head == (tables.position_of(connection, STATEMENTS),)
        assert all(position <= head[0] for _, position in told), "a view ran ahead"
        assert again[-1] == ["rebuilt", head[0]]
        counted = connection.execute(
            "SELECT count(*), count(DISTINCT deposit_id) FROM proj_statements.deposit"
        ).fetchone()
        assert counted == (1 + self.round,) * 2
        reports = connection.execute(
            "SELECT sum(reports), (SELECT count(*) FROM usage_event) FROM proj_usage.node_reports"
        ).fetchone()
        assert reports == (2 * (1 + self.round),) * 2
        left = connection.execute("SELECT to_regnamespace('proj_statements_next')").fetchone()
        assert left == (None,), "what a dead rebuild left"
