"""Jobs, clients, groups and lists from the shell, and the pipeline of the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from api.jobs.parts import run_plans
from tests.cli.test_remote import Server, server

__all__ = ["server"]

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "jobs.md"


def test_a_job_with_a_plan_is_submitted_told_and_cancelled(server: Server) -> None:
    _, key = server.account()

    def run(*words: str) -> Any:
        ran = server.run(*words, "--json", key=key)
        assert ran.code == 0, ran.err
        return ran.document

    job = run(
        "job",
        "submit",
        "--command",
        "python it.py",
        "--max-price",
        "3",
        "--members",
        "1-3",
        "--work",
        "training",
        "--reference",
        "dataset=s3://corpus/v3",
        "--project",
        "p",
    )
    told = run("job", "show", job["job_id"])
    assert told["plan"] == {"min_members": 1, "max_members": 3}
    assert told["references"] == [{"kind": "dataset", "name": "s3://corpus/v3"}]
    assert run("job", "scale", job["job_id"], "2")["members"] == 2
    assert run("job", "escrow", job["job_id"])["held"]["units"] == "0"
    assert run("job", "escrow", job["job_id"], "--withdraw")["leases"] == []
    poor = server.run("job", "escrow", job["job_id"], "--add", "5", "--json", key=key)
    assert (poor.code, poor.document["code"]) == (1, "credit_too_low")
    with server.service.connect() as connection:
        assert run_plans(server.service, connection, server.service.clock.now_us()) == 0
    assert run("job", "parts", job["job_id"])["data"] == [], "there is no node"
    assert run("job", "cost", job["job_id"])["charge"]["units"] == "0"
    queue = run("job", "submit", "--image", "i", "--max-price", "3", "--kind", "queue")
    assert run("job", "push", queue["job_id"], "a=s3://in/a", "b")["waiting"] == 2
    assert run("job", "cancel", job["job_id"])["state"] == "cancelled"
    assert {one["state"] for one in run("job", "list")["data"]} == {"cancelled", "open"}
    assert run("job", "usage", "--by", "kind")["data"] == []
    wrong = server.run("job", "submit", "--image", "i", "--max-price", "3", "--members", "x")
    assert wrong.code == 2
    refused = server.run(
        "job",
        "submit",
        "--image",
        "i",
        "--max-price",
        "3",
        "--schedule",
        "* * * * *",
        "--json",
        key=key,
    )
    assert (refused.code, refused.document["code"]) == (1, "plan_invalid")


def test_groups_projects_and_lists_from_the_shell(server: Server) -> None:
    who, key = server.account()
    other, _ = server.account()

    def run(*words: str) -> Any:
        ran = server.run(*words, "--json", key=key)
        assert ran.code == 0, ran.err
        return ran.document

    group = run("group", "create", "--gpus", "1.5")
    assert group["gpu_ppm_max"] == 1_500_000
    run("group", "add", group["group_id"], "project", "p")
    assert [one["target"] for one in run("group", "show", group["group_id"])["members"]] == ["p"]
    assert "gpu_ppm_max" not in run("group", "quota", group["group_id"])
    assert len(run("group", "list")["data"]) == 1
    run("group", "add", group["group_id"], "project", "p", "--remove")
    assert run("group", "show", group["group_id"])["members"] == []
    run("project", "overflow", who, "p", "rent")
    assert run("project", "list", who)["data"] == [{"project_id": "p", "overflow": "rent"}]
    run("counterparty", "set", who, other, "deny")
    assert [one["verdict"] for one in run("counterparty", "list", who)["data"]] == ["deny"]


def test_a_client_is_registered_and_its_pipeline_submits_a_job(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-23: the program of the documentation, as it stands there, with the key of an instance."""
    made = server.run("account", "create", "--kind", "client", "--json").document
    client = made["account_id"]
    assert server.run("client", "register", client, "--json").code == 0
    foreign = server.run("client", "key", client, "ci")
    assert (foreign.code, "account_unknown" in foreign.err) == (1, True), "only the client itself"
    key = server.run("client", "key", client, "ci", "--json", key=made["key"]).document
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    for name, value in (
        ("TALLYSTICK_URL", server.url),
        ("TALLYSTICK_API_KEY", key["key"]),
        ("IMAGE_DIGEST", "0" * 64),
        ("BUILD_ID", "17"),
    ):
        monkeypatch.setenv(name, value)
    told = []
    for _ in range(2):
        exec(compile(program, str(PAGE), "exec"), {})
        told.append(capsys.readouterr().out.split())
    assert told[0] == told[1], "the same build submits the same job"
    shown = server.run("job", "show", told[0][0], "--json", key=key["key"]).document
    assert (shown["client_id"], shown["instance_id"]) == (client, "ci")
    assert (
        server.run("client", "revoke", client, key["key_id"], "--json", key=made["key"]).code == 0
    )
    assert server.run("job", "list", "--json", key=key["key"]).code == 1
    floor = server.run("client", "floor", client, "0.6", "--json", key=made["key"]).document
    assert floor["min_reputation_ppm"] == 600_000
    floor = server.run("client", "floor", client, "--json", key=made["key"]).document
    assert "min_reputation_ppm" not in floor
    quota = server.run("client", "quota", client, "--gpus", "64", "--json").document
    assert quota["gpu_ppm_max"] == 64_000_000
    assert server.run("client", "suspend", client, "--json").document["suspended"]
    assert server.run("client", "list", "--json").document["data"][0]["suspended"]
