"""The thin clients against a server: refusals as exit codes, keys that repeat, lists over pages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from api.main import create_app
from api.process.clock import Clock, SimulatedClock, WallClock
from api.process.service import Service
from api.settings import Settings
from api.timers import Timers
from cli import remote
from cli.commands import leases as cli_lease
from cli.remote import credits_of, ppm_of
from cli.terminal import AnswerIsNo, InputUnusable
from domain.income.invoice import GRACE_US, InvoiceLine, IssueInvoice, period_bounds_us
from domain.income.maturity import DESTINATION_DELAY_US
from domain.money import credit
from ledger.log.handle import OutcomeUnknown
from tests.scenes.shell import Ran, tallystick


@dataclass(frozen=True)
class Server:
    """A running server and its operator's key."""

    url: str
    operator_key: str
    service: Service

    def jobs(self) -> None:
        """What the background does: pin, and sign the head."""
        Timers(self.service).run_once()

    def run(self, *arguments: object, key: str | None = None) -> Ran:
        return tallystick(*arguments, URL=self.url, API_KEY=key or self.operator_key)

    def account(self) -> tuple[str, str]:
        """A new party: its id and its key."""
        told = self.run("account", "create", "--json").document
        return told["account_id"], told["key"]


@pytest.fixture
def server(tmp_path: Path, database: str) -> Generator[Server, None, None]:
    with _serving(Settings(data_dir=tmp_path / "data", database_url=database)) as found:
        yield found


@pytest.fixture
def development_server(tmp_path: Path, database: str) -> Generator[Server, None, None]:
    """Where machines join that are made up: their drivers say so, and nothing is known of them."""
    settings = Settings(
        data_dir=tmp_path / "data", database_url=database, environment="development"
    )
    with _serving(settings) as found:
        yield found


@pytest.fixture
def timed_server(tmp_path: Path, database: str) -> Generator[Server, None, None]:
    """Its time stands still until the test moves it."""
    settings = Settings(data_dir=tmp_path / "data", database_url=database)
    with _serving(settings, SimulatedClock(WallClock().now_us())) as found:
        yield found


@contextmanager
def _serving(settings: Settings, clock: Clock | None = None) -> Generator[Server, None, None]:
    made = tallystick(
        "admin",
        "bootstrap",
        "--json",
        DATA_DIR=settings.data_dir,
        DATABASE_URL=settings.database_url,
        ENVIRONMENT=settings.environment,
    )
    with (
        Service.open(settings, clock=clock) as service,
        answering(service, made.document["api_key"]) as server,
    ):
        yield server


@contextmanager
def answering(
    service: Service, operator_key: str, *, is_started: bool = False
) -> Generator[Server, None, None]:
    """A service on a port; `is_started`: it answers in this process already."""
    config = uvicorn.Config(
        create_app(service), port=0, log_level="warning", lifespan="off" if is_started else "on"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield Server(f"http://127.0.0.1:{port}", operator_key, service)
    running.should_exit = True
    thread.join()


def test_a_call_repeated_with_its_key_happens_once(server: Server) -> None:
    renter, _ = server.account()
    words = ("account", "deposit", renter, "12.50", "--reference", "one", "--json")
    first = server.run(*words, "--idempotency-key", "mine").document
    assert server.run(*words, "--idempotency-key", "mine").document == first
    other = server.run("account", "deposit", renter, "13", "--reference", "one", "--json")
    assert other.code == 1
    assert other.document["code"] == "deposit_exists"
    balances = server.run("account", "show", renter, "--json").document["balances"]
    assert [each["balance"]["units"] for each in balances if each["part"] == "cash"] == ["12500000"]


def test_a_refusal_is_exit_1_and_json_prints_the_problem(server: Server) -> None:
    _, key = server.account()
    words = ("lease", "create", "--image", "x", "--max-price", "3")
    refused = server.run(*words, "--json", key=key)
    assert refused.code == 1
    assert refused.document["code"] == "no_match"
    assert refused.document["status"] == 409
    in_words = server.run(*words, key=key)
    assert (in_words.code, in_words.out) == (1, "")
    assert in_words.err.splitlines() == [f"refused (no_match): {refused.document['detail']}"], (
        "once, and without the title"
    )
    assert "`tallystick offer" in in_words.err, "and says what to do next"
    assert "dimension=" not in in_words.err


def test_a_call_that_was_not_answered_says_how_it_is_asked_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "TRIES_MAX", 1)

    def busy(*_: object, **__: object) -> None:
        raise OutcomeUnknown

    monkeypatch.setattr(server.service.ledger.market.events, "put", busy)
    ran = server.run("account", "create", "--idempotency-key", "mine", "--json")
    assert (ran.code, ran.document["retryable"]) == (1, True)
    assert ran.err.startswith("not answered (")
    assert ran.err.endswith("with --idempotency-key mine\n")


def test_a_lease_is_asked_for_in_a_mode_and_refused_by_the_rules_name(server: Server) -> None:
    _, key = server.account()
    words = ("lease", "create", "--image", "x", "--max-price", "3", "--json")
    told = server.run(*words, "--mode", "time_slice", "--share", "0.37", key=key).document
    assert (told["code"], told["facts"]["rule"]) == ("share_out_of_range", "time_slice_one_of_n")
    told = server.run(*words, "--mig", "9g.90gb", key=key).document
    assert (told["code"], told["facts"]["mig_profile"]) == ("unknown_profile", "9g.90gb")
    wanted = ("--mig", "3g.40gb", "--model", "Tesla V100-SXM2-16GB")
    told = server.run(*words, *wanted, key=key).document
    assert (told["code"], told["facts"]["rule"]) == ("mode_not_supported", "mig_not_on_this_model")
    parts = ("--mode", "mps", "--share", "0.25", "--memory", "0.5")
    assert server.run(*words, *parts, key=key).document["status"] == 409


def test_a_key_that_is_none_is_refused_and_never_echoed(server: Server) -> None:
    ran = server.run("account", "list", key="ts_live_geheim")
    assert (ran.code, ran.out) == (1, "")
    assert "TALLYSTICK_API_KEY" in ran.err
    assert "geheim" not in ran.err


def test_a_field_that_breaks_its_form_is_exit_2_and_named(server: Server) -> None:
    ran = server.run("provider", "show", "not-an-id")
    assert ran.code == 2
    assert "provider_id" in ran.err


def test_another_partys_account_is_not_there(server: Server) -> None:
    renter, _ = server.account()
    _, other = server.account()
    ran = server.run("account", "show", renter, "--json", key=other)
    assert (ran.code, ran.document["status"]) == (1, 404)


def test_an_account_is_closed_and_its_key_with_it(server: Server) -> None:
    renter, key = server.account()
    server.run("account", "deposit", renter, "1", "--reference", "x")
    refused = server.run("account", "close", renter, "--json", key=key)
    assert (refused.code, refused.document["code"]) == (1, "account_not_empty")
    other, gone = server.account()
    closed = server.run("account", "close", other, "--json", key=gone)
    assert (closed.code, closed.document["account_id"]) == (0, other)
    assert server.run("account", "list", key=gone).code == 1
    assert "closed_at" in server.run("account", "show", other, "--json").document


def test_a_list_goes_over_pages_up_to_its_limit(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.remote.PAGE", 2)
    made = [server.account()[0] for _ in range(5)]
    everything = server.run("account", "list", "--json").document
    assert [each["account_id"] for each in everything["data"]][:-1] == made[::-1], "newest first"
    oldest = server.run("account", "list", "--order", "asc", "--json").document
    assert oldest["data"] == everything["data"][::-1]
    assert server.run("account", "list", "--since", "1h", "--json").document == everything
    assert server.run("account", "list", "--since", "2099-01-01", "--json").document["data"] == []
    unread = server.run("account", "list", "--since", "yesterday")
    assert (unread.code, "is no moment: give 2h" in unread.err) == (2, True)
    assert everything["has_more"] is False
    some = server.run("account", "list", "--limit", 3, "--json").document
    assert some["data"] == everything["data"][:3]
    assert some["has_more"] is True
    assert "3 are shown, and there are more" in server.run("account", "list", "--limit", 3).err
    assert server.run("account", "list", "--limit", 3, "--all", "--json").document == everything


def test_another_fingerprint_is_not_confirmed(server: Server) -> None:
    ran = server.run("node", "confirm", "node_" + "1" * 32, "--fingerprint", "0" * 32)
    assert ran.code == 1


def test_a_server_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.remote.START_SECONDS_MAX", 0)
    ran = tallystick("offer", "list", URL="http://127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert "tallystick serve" in ran.err


def test_epochs_are_read_without_a_key(server: Server) -> None:
    ran = tallystick("epoch", "list", "--json", URL=server.url)
    assert [(each["epoch"], each["state"]) for each in ran.document["data"]] == [(1, "open")]
    preview = tallystick("epoch", "preview", "--json", URL=server.url).document
    assert (preview["epoch"], preview["weights"]) == (1, [])


# --- audit -----------------------------------------------------------------------------------


def test_a_servers_head_and_proofs_are_checked_from_outside(server: Server, tmp_path: Path) -> None:
    server.jobs()
    seen = server.run("audit", "verify", server.url, "--json")
    assert (seen.code, seen.document["problems"]) == (0, []), seen.err
    assert seen.document["newest_fact_checked"] is True
    file = tmp_path / "one.tlog-proof"
    proved = server.run("audit", "prove", 1, "--url", server.url, "--out", file, "--json").document
    assert tallystick("audit", "verify", file, "--key", proved["log_key"]).code == 0


def test_a_renters_key_verifies_the_head_and_reads_no_fact_of_others(server: Server) -> None:
    """B6 of the findings: with a key that may not read the newest fact it ended with not_found."""
    _, key = server.account()
    server.account()
    server.jobs()
    told = tallystick("audit", "verify", server.url, "--json", API_KEY=key)
    assert told.code == 0, told
    assert (told.document["verified"], told.document["newest_fact_checked"]) == (True, False)
    plain = tallystick("audit", "verify", server.url, API_KEY=key)
    assert "the newest fact is not one of yours" in plain.err


def test_a_server_that_forgot_facts_is_found_out(server: Server, tmp_path: Path) -> None:
    server.jobs()
    seen = server.run("audit", "verify", server.url, "--json").document
    kept = tmp_path / "kept"
    kept.write_text(f"{seen['origin']}\n{seen['facts'] + 1}\n{'A' * 43}=\n")
    found = server.run("audit", "verify", server.url, "--root", kept, "--json")
    assert found.code == 1
    assert found.document["verified"] is False


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "units"), [("25", "25000000"), ("2.5", "2500000"), ("0.000001", "1"), ("0", "0")]
)
def test_credits_are_read_exactly(text: str, units: str) -> None:
    assert credits_of(text) == {"asset": "CREDIT", "units": units}


@pytest.mark.parametrize(
    "text", ["", "-1", "1e3", "1.0000001", "NaN", "1,5", ".5", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InputUnusable):
        credits_of(text)


@pytest.mark.parametrize(("text", "ppm"), [("1", 1_000_000), ("0.37", 370_000), ("0.000001", 1)])
def test_shares_are_read_exactly(text: str, ppm: int) -> None:
    assert ppm_of(text) == ppm


@pytest.mark.parametrize("text", ["0", "1.1", "1.000001", "2", "-0.5", "50%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InputUnusable):
        ppm_of(text)


# --- invoices --------------------------------------------------------------------------------


def test_invoices_are_listed_shown_written_and_credited(server: Server, tmp_path: Path) -> None:
    account_id, key = server.account()
    ends_us = period_bounds_us("2026-01")[1]
    line = InvoiceLine("usage", "datacenter", 3_600_000_000, "GPU-microsecond", credit(2_780_000))
    asked = IssueInvoice(
        account_id=account_id,
        kind="charges",
        period="2026-01",
        first_position=0,
        last_position=1,
        lines=(line,),
        taxes=(),
        by="test",
        at_us=ends_us + GRACE_US,
    )
    server.service.ledger.handle(asked, key=None, now_us=server.service.clock.now_us())
    listed = server.run("invoice", "list", account_id, key=key)
    assert "INV-000001" in listed.out
    assert "2.780000 CREDIT" in listed.out
    credited = server.run(
        "invoice",
        "credit",
        account_id,
        "INV-000001",
        "--line",
        "1=0.78",
        "--cause",
        "x",
        "--reason",
        "Outage",
        "--json",
    )
    assert credited.document["written_number"] == "CN-000001", credited.err
    for ending in ("pdf", "html", "json"):
        out = tmp_path / f"invoice.{ending}"
        shown = server.run(
            "invoice", "show", account_id, "INV-000001", "--out", out, "--json", key=key
        )
        assert shown.code == 0, shown.err
        if ending == "json":
            assert sha256(out.read_bytes()).hexdigest() == shown.document["document_sha256"]
        assert out.stat().st_size > 500
    assert server.run("invoice", "show", account_id, "INV-000001", "--out", out).code == 2
    assert "0.780000 CREDIT" in server.run("invoice", "show", account_id, "INV-000001").out
    refused = server.run("invoice", "issue", account_id, "2026-02")
    assert (refused.code, "nothing_to_invoice" in refused.err) == (1, True)
    assert server.run("invoice", "issue", account_id, "2026-02", key=key).code == 1
    assert (
        server.run(
            "invoice",
            "credit",
            account_id,
            "INV-000001",
            "--line",
            "1",
            "--cause",
            "y",
            "--reason",
            "z",
        ).code
        == 2
    )


def test_money_out_is_read_asked_for_and_held_by_command(timed_server: Server) -> None:
    server = timed_server
    account_id, key = server.account()
    told = server.run("cash-out", "earnings", account_id, "--json", key=key).document
    assert (told["held_back"]["units"], told["upcoming"]) == ("0", [])
    assert "held_back  0.000000 CREDIT" in server.run("cash-out", "earnings", account_id).out
    assert server.run("cash-out", "mode", account_id, "cash", "--to", "acct_x", key=key).code == 0
    mode = server.run("cash-out", "mode", account_id, "--json", key=key).document
    assert (mode["mode"], mode["destination"]) == ("cash", "acct_x")
    held = server.run("cash-out", "hold", account_id, "--reason", "a look", "--json").document
    assert held["hold_ids"] == ["operator"]
    refused = server.run("cash-out", "request", account_id, "--credits", "25", key=key)
    assert (refused.code, "cash_out_held" in refused.err) == (1, True)
    assert server.run("cash-out", "release", account_id, "--json").document["hold_ids"] == []
    early = server.run("cash-out", "request", account_id, "--credits", "25", key=key)
    assert (early.code, "cash_out_held" in early.err) == (1, True), "the first one waits too"
    clock: Any = server.service.clock
    clock.advance(DESTINATION_DELAY_US)
    poor = server.run("cash-out", "request", account_id, "--credits", "25", key=key)
    assert (poor.code, "credit_too_low" in poor.err) == (1, True)
    assert "A cash-out of 25.00 CREDIT was asked for; your account has 0.00" in poor.err
    assert server.run("cash-out", "list", account_id, "--json", key=key).document["data"] == []
    assert server.run("cash-out", "show", account_id, "cashout_1", key=key).code == 1


def test_a_bank_transfer_is_bought_and_confirmed_from_the_shell(server: Server) -> None:
    renter, key = server.account()
    made = server.run("payment", "create", renter, "40", "--method", "bank", "--json", key=key)
    payment = made.document["payment_id"]
    assert "40.00 USD" in made.document["instructions"]
    words = ("payment", "confirm", payment, "--reference", "11/17", "--credits", "39.50", "--json")
    assert server.run(*words).document["state"] == "confirmed"
    assert "39.50" in server.run("payment", "show", payment, key=key).out
    listed = server.run("payment", "list", renter, "--json", key=key).document["data"]
    assert [(row["payment_id"], row["left"]["units"]) for row in listed] == [(payment, "39500000")]
    assert server.run("payment", "create", renter, "24", "--json", key=key).code == 1


def test_webhooks_and_tariffs_from_the_shell(server: Server, tmp_path: Path) -> None:
    _, key = server.account()
    words = ("webhook", "add", "https://hooks.example.com/x", "--type", "lease.", "--json")
    made = server.run(*words, key=key).document
    assert made["secret"].startswith("whsec_")
    endpoint = made["endpoint_id"]
    assert server.run("webhook", "rotate", endpoint, "--json", key=key).document["secret"]
    stopped = server.run("webhook", "stop", endpoint, "--json", key=key).document
    assert (stopped["enabled"], stopped["disabled_reason"]) == (False, "owner")
    assert server.run("webhook", "start", endpoint, "--json", key=key).document["enabled"]
    assert endpoint in server.run("webhook", "list", key=key).out
    told = server.run("webhook", "replay", endpoint, 1, 9, "--json", key=key).document
    assert told["count"] == 0
    none = server.run("webhook", "deliveries", endpoint, "--json", key=key).document
    assert none["data"] == []
    bad = server.run("webhook", "add", "http://hooks.example.com", key=key)
    assert (bad.code, "webhook_url" in bad.err) == (1, True)
    (first,) = server.run("tariff", "list", "--json").document["data"]
    following = {
        "version": 2,
        "usage_fees": first["usage_fees"],
        "provider_share_ppm": 600_000,
        "effective_from": "2099-01-01T00:00:00Z",
    }
    file = tmp_path / "tariff.json"
    file.write_text(json.dumps(following))
    assert server.run("tariff", "publish", file, "--json").document["version"] == 2
    assert server.run("tariff", "publish", file, key=key).code == 1
    assert server.run("tariff", "publish", tmp_path / "none.json").code == 2


def test_a_renters_half_of_the_stick_from_the_shell(server: Server, tmp_path: Path) -> None:
    account_id, key = server.account()
    file = tmp_path / "me.key"
    words = ("account", "signing-key", account_id, "--key-file", file, "--json")
    made = server.run(*words, key=key).document
    assert (file.stat().st_mode & 0o777, len(made["key_id"])) == (0o600, 16)
    assert server.run(*words, key=key).document["key_id"] == made["key_id"]
    nothing = "lease_" + "0" * 32
    for command in (
        ("stick", nothing),
        ("sign", nothing, "--key-file", file),
        ("top-up", nothing, "--amount", "2.5"),
    ):
        refused = server.run("lease", *command, key=key)
        assert (refused.code, "lease_unknown" in refused.err) == (1, True), refused
    file.chmod(0o644)
    assert server.run(*words, key=key).code == 2


# --- files of one account ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "form", "begins"),
    [
        ("focus", "csv", b"BilledCost,"),
        ("focus", "parquet", b"PAR1"),
        ("lines", "csv", b"position,"),
        ("lines", "json", b""),
        ("lines", "journal", b"; tallystick"),
    ],
)
def test_a_month_of_an_account_is_written_to_a_new_file(
    server: Server, tmp_path: Path, command: str, form: str, begins: bytes
) -> None:
    account_id, key = server.account()
    out = tmp_path / "month"
    asked = ("export", command, account_id, "2026-01", "--format", form, "--output", out, "--json")
    done = server.run(*asked, key=key)
    assert done.code == 0, done.err
    content = out.read_bytes()
    assert content.startswith(begins)
    told = done.document
    assert (told["bytes"], told["sha256"]) == (len(content), sha256(content).hexdigest())
    assert server.run(*asked, key=key).code == 2, "it is there already"
    out.unlink()
    _, other = server.account()
    refused = server.run(*asked, key=other)
    assert (refused.code, refused.document["code"]) == (1, "account_unknown")
    assert not out.exists(), "nothing is left of a file that was refused"


def test_lease_events_are_watched_until_the_stream_ends(server: Server) -> None:
    seen = server.run("lease", "watch", "--after", 0, "--seconds", 0, "--json")
    assert (seen.code, seen.out) == (0, "")
    refused = server.run("lease", "watch", "lease_" + "0" * 32, "--json")
    assert (refused.code, refused.document["code"]) == (1, "lease_unknown")


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_events_are_put_together_from_pieces_of_any_size(
    size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"at": "2026-11-23T00:00:00Z", "lease_id": "lease_1", "state": "active", "position": 7}
    sent = "".join(
        f"id: 7\nevent: {name}\ndata: {json.dumps({**event, 'type': name})}\n\n: still here\n\n"
        for name in ("lease.opened.v1", "lease.closed.v1")
    ).encode()
    cli_lease.watch_pieces(
        (sent[at : at + size] for at in range(0, len(sent), size)), as_json=False
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == ["lease.opened.v1", "lease.closed.v1"]
    with pytest.raises(AnswerIsNo, match="busy"):
        cli_lease.watch_pieces([b"event: problem\ndata: busy\n\n"], as_json=False)
