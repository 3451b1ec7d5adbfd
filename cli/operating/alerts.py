"""`tallystick alert`: what is wrong now, and whether the operator is reached when something is."""

from __future__ import annotations

from cli.remote import Remote, reads
from cli.settings import ConfigFile, in_force
from cli.terminal import AnswerIsNo, AsJson, columns, facts, group, tell

app = group("alert", "Alerts: messages when something is wrong.", "tallystick alert test")

SUBJECT = "tallystick: this is a test"
TEXT = "Nothing is wrong. The server sends its alerts this way."


@app.command("test", epilog="Example: tallystick alert test --config server.toml")
def send_test(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Send a test message by mail and to the chat, as this server's settings say.

    Exit 1 when one of them does not take it, or none is set.
    """
    from api.monitoring import notices

    went = notices.tried(in_force(config), SUBJECT, TEXT)
    if not went:
        raise AnswerIsNo(
            "nobody would be told: set TALLYSTICK_ALERT_MAIL_TO (with TALLYSTICK_SMTP_URL and"
            " TALLYSTICK_ALERT_MAIL_FROM) or TALLYSTICK_ALERT_CHAT_URL"
        )
    failed = {way: error for way, error in went.items() if error is not None}
    if failed:
        told = ", ".join(f"{way} ({error})" for way, error in failed.items())
        raise AnswerIsNo(f"not sent by {told}: look at the address in the settings", went)
    tell({"sent": sorted(went)}, facts({"sent": sorted(went)}), as_json=as_json)


@app.command("list", epilog="Example: tallystick alert list --json")
@reads
def list_alerts(remote: Remote) -> None:
    """List what is wrong now, for the operator; the numbers behind it with --json."""
    told = remote.ask(lambda c: c.list_alerts())
    rows = columns(told["data"], ("severity", "name", "of", "told"))
    remote.tell(told, rows if told["data"] else ["nothing is wrong"])
