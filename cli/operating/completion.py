"""`tallystick completion`: words that a shell completes, from the commands themselves."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.terminal import COMPLETE, AsJson, tell, top_level

commands = top_level()


@commands.command(epilog="Example: tallystick completion bash > ~/.local/share/tallystick.bash")
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")],
    as_json: AsJson = False,
) -> None:
    """Print the script that completes commands and options in your shell.

    bash: `tallystick completion bash > FILE`, and `source FILE` in ~/.bashrc; zsh alike. fish: into
    ~/.config/fish/completions/tallystick.fish.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="tallystick", complete_var=COMPLETE, shell=shell)
    tell({"shell": shell, "script": script}, script.strip().split("\n"), as_json=as_json)
