"""What a party reads about its money, from the command line."""

from __future__ import annotations

from tests.cli import test_remote as test_cli_remote
from tests.cli.test_remote import Server

server = test_cli_remote.server


def test_statements_usage_earnings_and_forecasts_are_read(server: Server) -> None:
    renter, key = server.account()
    for number in (1, 2):
        words = ("account", "deposit", renter, "12.50", "--reference", number, "--json")
        assert server.run(*words).code == 0
    told = server.run("statement", "--limit", 1, "--json", key=key).document
    assert (told["account_id"], len(told["lines"]), told["has_more"]) == (renter, 1, True)
    whole = server.run("statement", "--json", key=key).document
    assert [one["movement"]["units"] for one in whole["lines"]] == ["12500000", "12500000"]
    shown = server.run("statement", "--by", "project_id", key=key).out.splitlines()
    assert shown[0].split() == ["PART", "OPENING", "CLOSING"]
    assert shown[1].split() == ["cash", "-", "25.000000", "CREDIT"]
    assert shown[-1] == (
        "not billed yet, from reports received so far: ~0.000000 GPU-hours, ~0.000000 CREDIT"
    )
    first, last = whole["lines"][1]["position"], whole["lines"][0]["position"]
    assert first < last == told["lines"][0]["position"], "the newest first"
    oldest = server.run("statement", "--limit", 1, "--order", "asc", "--json", key=key).document
    assert oldest["lines"] == whole["lines"][1:]
    cut = server.run("statement", "--limit", 1, key=key)
    assert "1 are shown, and there are more: --all" in cut.err
    assert "there are more" not in server.run("statement", "--all", key=key).err
    early = server.run("statement", "--as-of", first, "--json", key=key).document
    assert [one["balance"]["units"] for one in early["closing"]] == ["12500000"]
    assert server.run("statement", "--as-of", "2020-01-01T00:00:00Z", key=key).code == 0
    several = server.run("statement")
    assert (several.code, "give --account" in several.err) == (2, True)
    assert server.run("statement", "--account", renter, "--json").document["lines"]
    used = server.run("usage", "summary", "--by", "day,model", key=key)
    assert used.out.split()[:2] == ["DAY", "MODEL"]
    assert server.run("earnings", "--by", "hour", "--json", key=key).document["data"] == []
    refused = server.run("earnings", "--explain", 1, key=key)
    assert (refused.code, "not_found" in refused.err) == (1, True)
    told = server.run("forecast", "--json", key=key).document
    assert told["balances"][0]["spendable"]["units"] == "25000000"
    assert "lasts_until" not in told["balances"][0]
    assert "25.000000 CREDIT" in server.run("forecast", key=key).out
