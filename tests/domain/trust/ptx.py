"""As much of PTX as the challenge's kernel uses, run word by word: one thread, one carry.

An instruction, a register or an address that it does not know is an error, so a kernel that names
one by mistake fails here. It is no assembler: what a driver makes of the text only a driver tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MASK = 2**32 - 1
_PARAM = re.compile(r"\.param \.(u64|u32) (\w+)")
_REG = re.compile(r"\.reg \.(pred|u32|u64) (.*);")
_RANGE = re.compile(r"(%\w+)<(\d+)>")
_PLACE = re.compile(r"\[(%?\w+)(?:\+(\d+))?\]")
_SPECIAL = ("%ctaid.x", "%ntid.x", "%tid.x")


@dataclass
class Kernel:
    """The parsed text: its parameters in order, its registers by kind, its lines."""

    params: dict[str, str]
    registers: dict[str, str]
    lines: list[str]


def parsed(text: str) -> Kernel:
    registers: dict[str, str] = {}
    for kind, names in _REG.findall(text):
        for name in names.split(","):
            ranged = _RANGE.fullmatch(name)
            many = [name] if ranged is None else [f"{ranged[1]}{n}" for n in range(int(ranged[2]))]
            registers.update(dict.fromkeys(many, kind))
    body = text[text.index("{") + 1 : text.rindex("}")]
    lines = [line.strip() for line in body.splitlines()]
    params = {name: kind for kind, name in _PARAM.findall(text)}
    return Kernel(params, registers, [one for one in lines if one and not one.startswith(".reg")])


@dataclass
class Thread:
    """One thread of a launch; `memory` are words by their address."""

    kernel: Kernel
    arguments: dict[str, int]
    memory: dict[int, int]
    special: dict[str, int]
    values: dict[str, int] = field(default_factory=dict)
    carry: int = 0

    def run(self) -> None:
        labels = {one[:-1]: n for n, one in enumerate(self.kernel.lines) if one.endswith(":")}
        at = 0
        while (line := self.kernel.lines[at]) != "ret;":
            at += 1
            if line.endswith(":"):
                continue
            guard, _, rest = line.rpartition("@%")[2].partition(" bra ")
            if rest:
                if self._read(f"%{guard}"):
                    at = labels[rest.rstrip(";")]
                continue
            name, _, operands = line.rstrip(";").partition(" ")
            self._step(name, operands.split(","))

    def _step(self, name: str, told: list[str]) -> None:
        kind, _, size = name.rpartition(".")
        target, rest = told[0], told[1:]
        if kind == "ld.param":
            assert self.kernel.params[rest[0][1:-1]] == size
            self._write(target, size, self.arguments[rest[0][1:-1]])
        elif kind == "st.global":
            self.memory[self._address(target)] = self._read(rest[0])
        elif kind == "ld.global":
            self._write(target, size, self.memory[self._address(rest[0])])
        elif kind == "setp.ne":
            self._write(target, "pred", int(self._read(rest[0]) != self._read(rest[1])))
        else:
            self._write(target, *self._computed(kind, size, [self._read(one) for one in rest]))

    def _computed(self, kind: str, size: str, read: list[int]) -> tuple[str, int]:
        operation, *how = kind.split(".")
        carried = self.carry if operation in ("madc", "addc") else 0
        if operation in ("mad", "madc"):
            product = read[0] * read[1]
            value = (product >> 32 if "hi" in how else product & MASK) + read[2] + carried
        elif operation in ("add", "addc"):
            value = read[0] + read[1] + carried
        elif operation == "sub":
            value = (read[0] - read[1]) & MASK
        elif (operation, how) == ("mul", ["wide"]):
            return "u64", read[0] * read[1]
        elif (operation, how) == ("mul", ["lo"]):
            value = read[0] * read[1] & MASK
        else:
            assert (operation, how) in (("mov", []), ("cvta", ["to", "global"])), kind
            value = read[0]
        if size == "u32":
            if "cc" in how:
                self.carry = value >> 32
            elif operation != "mad":
                assert value <= MASK, f"{kind} lost a carry"
        return size, value & (MASK if size == "u32" else 2**64 - 1)

    def _read(self, name: str) -> int:
        if name.isdecimal():
            return int(name)
        return self.special[name] if name in _SPECIAL else self.values[name]

    def _write(self, name: str, size: str, value: int) -> None:
        assert self.kernel.registers[name] == size, name
        self.values[name] = value

    def _address(self, told: str) -> int:
        place = _PLACE.fullmatch(told)
        assert place is not None
        assert self.kernel.registers[place[1]] == "u64"
        return self.values[place[1]] + int(place[2] or 0)
