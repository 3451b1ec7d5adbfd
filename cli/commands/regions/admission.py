"""`tallystick admission`: how a physical machine comes in, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import RegionId
from cli.remote import IN_ORDER, Remote, lists, reads, records
from cli.terminal import columns, facts, group

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import AdmissionRequest

admission = group(
    "admission",
    "Admissions: how a machine of your own comes in.",
    "tallystick admission request REGION --vendor nvidia --model A100 --gpus 4",
)

AdmissionId = Annotated[str, typer.Argument(metavar="ADMISSION", help="admission_...")]
Step = Literal["tpm_cleared", "csm_off", "secure_boot_off"]


@admission.command(
    "request",
    epilog="Example: tallystick admission request region_1f0c... --vendor nvidia --model A100"
    " --gpus 4",
)
@records
def request(
    remote: Remote,
    region_id: RegionId,
    vendor: Annotated[str, typer.Option(help="Maker of its GPUs.")],
    model: Annotated[str, typer.Option(help="Model of its GPUs.")],
    gpus: Annotated[int, typer.Option(help="How many.")],
) -> None:
    """Request the admission of a machine."""
    body: AdmissionRequest = {
        "region_id": region_id,
        "vendor": vendor,
        "model": model,
        "gpus": gpus,
    }
    told = remote.ask(lambda c: c.request_admission(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@admission.command("list", epilog="Example: tallystick admission list")
@lists(IN_ORDER)
def list_admissions(remote: Remote) -> None:
    """List your admissions; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_admissions(**page))
    names = ("admission_id", "state", "model", "gpus", "minion_id", "requested_at")
    remote.tell(found, columns(found["data"], names))


@admission.command("show", epilog="Example: tallystick admission show admission_1f0c...")
@reads
def show(remote: Remote, admission_id: AdmissionId) -> None:
    """Show one admission and what is left to do."""
    told = remote.ask(lambda c: c.read_admission(admission_id))
    remote.tell(told, facts(told))


@admission.command("validate", epilog="Example: tallystick admission validate admission_1f0c...")
@records
def validate(remote: Remote, admission_id: AdmissionId) -> None:
    """Validate a requested machine (operator)."""
    told = remote.ask(lambda c: c.validate_admission(admission_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _with_words(name: str, about: str, call: Callable[[Client, str, str, str], Any]) -> None:
    """One step that says something: `call(client, admission id, words, key)`."""

    @records
    def command(
        remote: Remote,
        admission_id: AdmissionId,
        words: Annotated[str, typer.Argument(metavar="WORDS", help="What is told.")],
    ) -> None:
        told = remote.ask(lambda client: call(client, admission_id, words, remote.key))
        remote.tell(told, facts(told))

    example = f"Example: tallystick admission {name} admission_1f0c... minion-4f21"
    admission.command(name, help=about, epilog=example)(command)


_with_words(
    "refuse",
    "Refuse a machine that is not installed yet (operator).",
    lambda c, one, words, key: c.refuse_admission(one, {"why": words}, idempotency_key=key),
)
_with_words(
    "ship",
    "Record that the boot drive is on its way (operator).",
    lambda c, one, words, key: c.ship_boot_drive(one, {"tracking": words}, idempotency_key=key),
)
_with_words(
    "installed",
    "Record that the machine started from its boot drive, under the id that it shows.",
    lambda c, one, words, key: c.install_machine(one, {"minion_id": words}, idempotency_key=key),
)


@admission.command("step", epilog="Example: tallystick admission step admission_1f0c... csm_off")
@records
def step(
    remote: Remote,
    admission_id: AdmissionId,
    step: Annotated[Step, typer.Argument(help="What is done in the firmware.")],
) -> None:
    """Record a step of the firmware setup. Secure Boot is turned off for NVIDIA GPUs only."""
    told = remote.ask(
        lambda c: c.do_firmware_step(admission_id, {"step": step}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@admission.command("code", epilog="Example: tallystick admission code admission_1f0c...")
@records
def code(remote: Remote, admission_id: AdmissionId) -> None:
    """Print a code that lets the installed machine join, once, within ten minutes."""
    told = remote.ask(
        lambda c: c.create_installed_code(admission_id, {}, idempotency_key=remote.key)
    )
    lines = [*facts(told), f"On the machine: tallystick-node join {remote.url} {told.get('code')}"]
    remote.tell(told, lines)
