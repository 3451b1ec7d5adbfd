"""The commands of the guides are there, with the options and as many words as they are given.

The short form of `make test-guides`, which walks each guide: here nothing is run but the parsers of
the two programs, on what a shell would hand to them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.main import Commands, app, opened
from node_reporter.__main__ import _parser as _node
from tests.e2e.test_tutorial import blocks

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = ("tutorial.md", *sorted(f"howto/{one.name}" for one in (DOCS / "howto").glob("*.md")))
REFUSED: type[Exception] = typer.BadParameter.__mro__[2]
"""What the parser of commands raises: an unknown option, a value that is missing, a wrong one."""
WITHOUT = {
    *("howto/alerts.md", "howto/fail-over.md", "howto/operate.md", "howto/passkeys.md"),
    *("howto/use-the-client.md", "howto/watch.md"),
}
"""Pages that show no command of ours in a block for a shell."""
HEREDOC = re.compile(r"<<-? *'?(\w+)'?(.*?)\n.*?\n\1(?=\n|$)", re.DOTALL)
INNERMOST = re.compile(r"\$\(((?:'[^']*'|[^()'])*)\)")
ENDS = frozenset({";", "|", "||", "&", "&&", "(", ")", "{", "}", "|&", ";;", "\n"})
BEFORE = frozenset({"if", "until", "while", "then", "do", "else", "!", "exec", "nohup", "sudo"})


def commands_of(script: str) -> Iterator[list[str]]:
    """The words of each simple command; what `$(..)` prints is one word, whatever it is."""
    script = HEREDOC.sub(r"\2", script).replace("\\\n", " ")
    script = re.sub(r"(?m)(^|\s)#.*$", "", script)
    while found := INNERMOST.search(script):
        yield from commands_of(found[1])
        script = script[: found.start()] + "1" + script[found.end() :]
    words = shlex.shlex(script, posix=True, punctuation_chars=";&|(){}<>\n")
    words.whitespace, words.whitespace_split = " \t\r", True
    command: list[str] = []
    is_target = False
    for word in words:
        if set(word) <= ENDS or word == "\n":
            yield command
            command = []
        elif set(word) <= set("<>&"):
            is_target = True
            if command and command[-1].isdigit():
                command.pop()
        elif is_target:
            is_target = False
        else:
            command.append(word)
    yield command


def stripped(words: list[str]) -> list[str]:
    """A command without the variables and the words of the shell that stand before it."""
    while words and (words[0] in BEFORE or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
    return words


def ours(page: Path) -> list[list[str]]:
    """The commands of our two programs on a page, as it shows them to be typed."""
    fences = re.findall(r"^```(sh.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    found = list[list[str]]()
    for fence in dict.fromkeys(fences):
        for script in blocks(page, re.escape(fence)):
            found += [
                [Path(words[0]).name, *words[1:]]
                for words in map(stripped, commands_of(script))
                if words and Path(words[0]).name in ("tallystick", "tallystick-node")
            ]
    return found


@cache
def _tallystick() -> Any:
    return typer.main.get_command(app)


def must_be_understood(words: list[str]) -> None:
    """By the parser of its program, which says what is wrong and ends otherwise."""
    program, *arguments = words
    if arguments == ["--version"]:
        return
    if program == "tallystick-node":
        _node().parse_args(arguments)
        return
    command, names = _tallystick(), [program]
    while (below := getattr(command, "commands", None)) and arguments:
        names.append(arguments.pop(0))
        assert names[-1] in below, f"there is no {' '.join(names)}"
        command = opened(names[-1]) if isinstance(command, Commands) else below[names[-1]]
    command.make_context(names[-1], arguments)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_of_a_guide_is_there_with_all_that_it_is_given(guide: str) -> None:
    commands = ours(DOCS / guide)
    assert bool(commands) == (guide not in WITHOUT)
    for words in commands:
        try:
            must_be_understood(words)
        except (REFUSED, SystemExit) as error:
            raise AssertionError(f"{' '.join(words)}: {error}") from error


@pytest.mark.parametrize(
    "words",
    [
        "tallystick lease sho lease_1",
        "tallystick lease show lease_1 --untill settled",
        "tallystick lease show lease_1 lease_2",
        "tallystick lease show",
        "tallystick account deposit acct_1 25 --reference",
        "tallystick-node join http://127.0.0.1:1 code --stated node",
        "tallystick-node joins",
        "tallystick-node run --interval soon",
    ],
)
def test_a_command_that_is_not_there_is_seen(words: str) -> None:
    with pytest.raises((REFUSED, SystemExit, AssertionError)):
        must_be_understood(words.split())


def test_commands_are_found_wherever_a_shell_would_run_them() -> None:
    script = """KEY=$(tallystick admin bootstrap --json | get api_key)  # tallystick no
until tallystick offer list > offers.txt 2>&1; do sleep 1; done
tallystick-node join "http://$HOST" \\
    "$(tallystick node code "$(get id < region.json)" --json | get code)" --state node &
cat > job.sh <<'JOB'
tallystick nothing
JOB
(sleep 1 && exec tallystick serve 2> server.log); A=1 B=2 tallystick jobs --once
"""
    found = [words for words in commands_of(script) if any("tallystick" in one for one in words)]
    assert [" ".join(stripped(words)) for words in found] == [
        "tallystick admin bootstrap --json",
        "tallystick node code 1 --json",
        "tallystick offer list",
        "tallystick-node join http://$HOST 1 --state node",
        "tallystick serve",
        "tallystick jobs --once",
    ]
