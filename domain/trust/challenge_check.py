"""The reference challenge: the program that computes an answer, and how an answer is checked.

    product k:  C = A B mod P, A and B from the seed and all products before
    filled:     a walk over blocks of memory that the last seed made

Products are checked without multiplying: for a random vector v, A (B v) = C v mod P. A wrong C
passes with probability 1 / P (Freivalds 1977), P = 2^31 - 1. The walk is computed again. Everything
is in integers, and the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

P = 2**31 - 1
BLOCK_BYTES = 1_024
PROGRAM = """\
import hashlib,sys
s=sys.argv[1];n,r,f=map(int,sys.argv[2:5]);P=2147483647
def h(t):return hashlib.sha256(t.encode()).digest()
def w(t,c):
 b=b"".join(h(f"{s}/{t}/{i}")for i in range((c+7)//8))
 return[int.from_bytes(b[4*i:4*i+4],"big")%P for i in range(c)]
for k in range(r):
 a=w("a",n*n);b=w("b",n*n)
 c=[sum(a[i*n+x]*b[x*n+j]for x in range(n))%P for i in range(n)for j in range(n)]
 d=b"".join(v.to_bytes(4,"big")for v in c)
 print("product",k,d.hex())
 s=hashlib.sha256(s.encode()+d).hexdigest()
m=[h(f"{s}/fill/{i}")*32 for i in range(f)]
x=h(s+"/walk")
for _ in range(f):x=hashlib.sha256(x+m[int.from_bytes(x[:8],"big")%f]).digest()
print("filled",x.hex(),flush=True)
"""

Draw = Callable[[], int]
"""A random number of [0, P), that nobody could know when the answer was made."""


def command_of(seed: str, size: int, rounds: int, fill_kib: int) -> tuple[str, ...]:
    """What the node runs: the program itself is part of the command, and so of its hash."""
    return ("python3", "-c", PROGRAM, seed, str(size), str(rounds), str(fill_kib))


def broken_rule(
    answer: bytes, seed: str, size: int, rounds: int, fill_kib: int, draw: Draw
) -> str | None:
    """What an answer breaks: `no_answer`, `malformed`, `wrong_product`, `wrong_fill`; None: right.

    `answer` is what the work printed.
    """
    lines = answer.decode("utf-8", "replace").splitlines()
    if not any(line.startswith("filled ") for line in lines):
        return "no_answer"
    if len(lines) != rounds + 1:
        return "malformed"
    for number, line in enumerate(lines[:rounds]):
        product = _product(line, number, size)
        if product is None:
            return "malformed"
        if not _is_product(seed, product, size, draw):
            return "wrong_product"
        seed = sha256(seed.encode() + product).hexdigest()
    return None if lines[rounds] == f"filled {_walk(seed, fill_kib).hex()}" else "wrong_fill"


def _product(line: str, number: int, size: int) -> bytes | None:
    head, _, text = line.rpartition(" ")
    try:
        product = bytes.fromhex(text)
    except ValueError:
        return None
    is_whole = head == f"product {number}" and len(product) == 4 * size * size
    return product if is_whole else None


def _is_product(seed: str, product: bytes, size: int, draw: Draw) -> bool:
    claimed = [int.from_bytes(product[at : at + 4], "big") for at in range(0, len(product), 4)]
    if any(value >= P for value in claimed):
        return False
    vector = [draw() % P for _ in range(size)]
    a, b = words(f"{seed}/a", size * size), words(f"{seed}/b", size * size)
    return _times(a, _times(b, vector)) == _times(claimed, vector)


def _times(matrix: Sequence[int], vector: Sequence[int]) -> list[int]:
    size = len(vector)
    rows = (matrix[at : at + size] for at in range(0, size * size, size))
    return [sum(x * y for x, y in zip(row, vector, strict=True)) % P for row in rows]


def words(name: str, count: int) -> list[int]:
    """Numbers below P that follow from a name."""
    found = b"".join(
        sha256(f"{name}/{number}".encode()).digest() for number in range((count + 7) // 8)
    )
    return [int.from_bytes(found[at : at + 4], "big") % P for at in range(0, 4 * count, 4)]


def _walk(seed: str, blocks: int) -> bytes:
    place = sha256(f"{seed}/walk".encode()).digest()
    for _ in range(blocks):
        number = int.from_bytes(place[:8], "big") % blocks
        block = sha256(f"{seed}/fill/{number}".encode()).digest() * (BLOCK_BYTES // 32)
        place = sha256(place + block).digest()
    return place
