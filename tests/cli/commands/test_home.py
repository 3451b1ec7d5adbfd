"""`tallystick home | wallet`, `node transfer` and `region hardware-rules` against a server."""

from __future__ import annotations

from tests.cli.test_remote import Server
from tests.cli.test_remote import development_server as server

__all__ = ["server"]


def test_a_region_of_homes_is_founded_waited_for_and_administered_from_the_shell(
    server: Server,
) -> None:
    _, key = server.account()
    someone, other = server.account()
    register = ("provider", "register", "--payment-mode", "credits", "--json")
    provider = server.run(*register, key=key).document["provider_id"]
    words: tuple[str, ...] = ("region", "open", provider, "--name", "homes")
    words = (*words, "--setting", "edge", "--json")
    region = server.run(*words, key=key).document["region_id"]
    words = ("home", "grow", region, "--workers-min", "2", "--waitlisted", "--owner", "0.9")
    told = server.run(*words, "--json", key=key).document
    assert (told["phase"], told["owner_share_ppm"]) == ("waitlisted", 900_000)
    at = ("--state", "DE-BE", "--at", "52.52,-13.405")
    told = server.run("home", "place", region, *at, "--json", key=key).document
    assert (told["latitude_e6"], told["longitude_e6"]) == (52_520_000, -13_405_000)
    shown = server.run("home", "where", region, "--json", key=key).document
    assert shown["boundaries"] == [{"kind": "state", "value": "DE-BE"}]
    assert "DE-BE" in server.run("home", "where", region, key=key).out
    words = ("home", "list-terms", region, "2", "--first-user", "--json")
    assert server.run(*words, key=key).document["threshold"] == 2
    told = server.run("home", "check-in", "--state", "DE-BE", "--json", key=other).document
    assert (told["send_to"], told["number"]) == ("wait_list", 1)
    told = server.run("home", "growth", region, "--json", key=other).document
    assert (told["phase"], told["cause"]) == ("opening", "first_user")
    (admin,) = server.run("home", "admins", region, "--json", key=key).document["data"]
    assert admin["account_id"] == someone
    (waits,) = server.run("home", "lists", "--json", key=other).document["data"]
    assert waits["list_id"] == region
    server.run("home", "leave", region, key=other)
    server.run("home", "revoke", region, someone, key=key)
    assert server.run("home", "admins", region, "--json", key=key).document["data"] == []
    server.run("home", "grant", region, someone, key=key)
    assert server.run("home", "bytes", region, "--json", key=other).document["data"] == []
    told = server.run("home", "phase", region, "draining", "--json", key=other).document
    assert told["phase"] == "draining"
    told = server.run("home", "where-next", "--json", key=key).document
    assert region in {row["region_id"] for row in told["regions"]}
    dots = server.run("home", "where-next", "--map", "--json", key=key).document["features"]
    assert dots[0]["geometry"]["coordinates"] == [-13.405, 52.52]


def test_hardware_rules_and_wallets_have_commands(server: Server) -> None:
    account, key = server.account()
    register = ("provider", "register", "--payment-mode", "credits", "--json")
    provider = server.run(*register, key=key).document["provider_id"]
    words: tuple[str, ...] = ("region", "open", provider, "--name", "ruled", "--json")
    region = server.run(*words, key=key).document["region_id"]
    words = ("region", "hardware-rules", region, "--rule", "ram", "--json")
    assert server.run(*words).document["hardware_rules"] == ["ram"]
    assert server.run("wallet", "list", account, "--json", key=key).document["data"] == []
    words = ("wallet", "challenge", account, "0x" + "1" * 40, "--json")
    told = server.run(*words, key=key).document
    assert told["nonce"] in told["message"]
