"""The challenge for NVIDIA's GPUs: the program that computes an answer, and how it is checked.

    lane k    y = SHA-512(seed / device / k) mod N, then `rounds` times y = y^2 / R mod N
    R         2^512
    answer    of each group of 32 lanes, the first eight bytes of SHA-256 over their values

N = p q of 510 bits. Only the server knows p and q, and so takes the short way: the exponent
2^rounds mod p - 1 and q - 1 (Rivest, Shamir and Wagner 1996). Who does not know them squares as
often as it is asked. The server computes `GROUPS_CHECKED` groups that it draws after the answer is
there: who leaves out a tenth of the groups passes with 0.9^24 = 8 %. Everything is in integers, and
the same everywhere.

The program is Python's standard library, CUDA's driver library and a kernel in PTX that the driver
assembles: multiplication after Montgomery in 16 words of 32 bits. N is below R / 4, so no value
needs a subtraction before the end (Walter 1999). It takes the GPU whose UUID is the device's, and
stops where there is none.

The work is so long that the board's own rate of multiply-adds needs `WORK_S` for it. So a right
answer in time shows that something computed at `WORK_S` / limit of that rate or more: not that it
was this GPU, nor that its memory is there. Never run on a GPU yet: docs/gpu-runs.md.
"""

from __future__ import annotations

from hashlib import sha256, sha512

from domain.hardware.known_gpus import Board
from domain.trust.challenge_check import Draw

CUDA = "cuda"
LANES, GROUP = 131_072, 32
GROUPS_CHECKED = 24
WORK_S = 30
"""Of the 120 s of a challenge: hearing of it, starting and slower clocks need the rest."""
MULTIPLY_ADDS = 2 * 16 * (16 + 16)
"""Of one squaring: low and high halves of 16 x 16 words, for the product and for its reduction."""
R = 2**512
PRIME_BYTES = 32
"""Enough to draw a prime of 255 bits from."""
_SMALL = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73)

PROGRAM = """\
import ctypes as C,hashlib,sys
from uuid import UUID
device,seed=sys.argv[1:3];N=int(sys.argv[3],16);lanes,rounds=map(int,sys.argv[4:6])
W=range(16);T=[f"%t{j}"for j in range(18)];k=[]
def row(word,by):
 for j in W:k.append(f"mad{'c'*(j>0)}.lo.cc.u32 {T[j]},{word}{j},{by},{T[j]};")
 k.extend([f"addc.cc.u32 {T[16]},{T[16]},0;",f"addc.u32 {T[17]},{T[17]},0;"])
 for j in W:k.append(f"mad{'c'*(j>0)}.hi.cc.u32 {T[j+1]},{word}{j},{by},{T[j+1]};")
 k.append(f"addc.u32 {T[17]},{T[17]},0;")
k+=[f"ld.global.u32 %a{j},[%values+{4*j}];"for j in W]
k+=[f"ld.global.u32 %n{j},[%modulus+{4*j}];"for j in W]
k+=["AGAIN:"]+[f"mov.u32 {t},0;"for t in T]
for i in W:
 row("%a",f"%a{i}");k.append(f"mul.lo.u32 %m,{T[0]},%inverse;");row("%n","%m");T=T[1:]+T[:1]
k+=[f"mov.u32 %a{j},{T[j]};"for j in W]
k+=["sub.u32 %left,%left,1;","setp.ne.u32 %more,%left,0;","@%more bra AGAIN;"]
k+=[f"st.global.u32 [%values+{4*j}],%a{j};"for j in W]
ptx='''.version 7.0
.target sm_70
.address_size 64
.visible .entry squares(.param .u64 values,.param .u64 modulus,
 .param .u32 inverse,.param .u32 rounds)
{
.reg .pred %more;
.reg .u32 %a<16>;
.reg .u32 %n<16>;
.reg .u32 %t<18>;
.reg .u32 %m,%inverse,%left,%block,%size,%lane;
.reg .u64 %values,%modulus,%offset;
ld.param.u64 %values,[values];
ld.param.u64 %modulus,[modulus];
ld.param.u32 %inverse,[inverse];
ld.param.u32 %left,[rounds];
cvta.to.global.u64 %values,%values;
cvta.to.global.u64 %modulus,%modulus;
mov.u32 %block,%ctaid.x;
mov.u32 %size,%ntid.x;
mov.u32 %lane,%tid.x;
mad.lo.u32 %lane,%block,%size,%lane;
mul.wide.u32 %offset,%lane,64;
add.u64 %values,%values,%offset;
'''+"\\n".join(k)+"\\nret;\\n}\\n"
if device=="ptx":print(ptx);sys.exit()
try:cuda=C.CDLL("libcuda.so.1")
except OSError as e:sys.exit(f"no CUDA: {e}")
def must(name,*told):
 code=getattr(cuda,name)(*told)
 if code:sys.exit(f"{name} answered {code}")
must("cuInit",0)
count=C.c_int();must("cuDeviceGetCount",C.byref(count))
for number in range(count.value):
 gpu=C.c_int();must("cuDeviceGet",C.byref(gpu),number)
 own=(C.c_ubyte*16)();must("cuDeviceGetUuid",own,gpu)
 if f"GPU-{UUID(bytes=bytes(own))}"==device:break
else:sys.exit(f"no GPU is {device}")
context,module,kernel=C.c_void_p(),C.c_void_p(),C.c_void_p()
must("cuDevicePrimaryCtxRetain",C.byref(context),gpu)
must("cuCtxSetCurrent",context)
must("cuModuleLoadData",C.byref(module),ptx.encode()+b"\\0")
must("cuModuleGetFunction",C.byref(kernel),module,b"squares")
size=64*lanes;values,modulus=C.c_uint64(),C.c_uint64()
must("cuMemAlloc_v2",C.byref(values),C.c_size_t(size))
must("cuMemAlloc_v2",C.byref(modulus),C.c_size_t(64))
def first(lane):
 drawn=hashlib.sha512(f"{seed}/{device}/{lane}".encode()).digest()
 return(int.from_bytes(drawn,"big")%N).to_bytes(64,"little")
must("cuMemcpyHtoD_v2",values,b"".join(map(first,range(lanes))),C.c_size_t(size))
must("cuMemcpyHtoD_v2",modulus,N.to_bytes(64,"little"),C.c_size_t(64))
inverse=C.c_uint32(-pow(N,-1,2**32)%2**32)
while rounds:
 now=min(rounds,16384);rounds-=now;turns=C.c_uint32(now)
 passed=(C.c_void_p*4)(*map(C.addressof,(values,modulus,inverse,turns)))
 must("cuLaunchKernel",kernel,lanes//128,1,1,128,1,1,0,None,passed,None)
 must("cuCtxSynchronize")
back=C.create_string_buffer(size)
must("cuMemcpyDtoH_v2",back,values,C.c_size_t(size))
found=back.raw
def last(lane):return(int.from_bytes(found[64*lane:64*lane+64],"little")%N).to_bytes(64,"big")
def group(at):return hashlib.sha256(b"".join(map(last,range(at,at+32)))).hexdigest()[:16]
print("groups","".join(map(group,range(0,lanes,32))),flush=True)
"""


def rounds_for(board: Board) -> int:
    """How often each lane is squared: what the board's own rate does in `WORK_S`; at least one."""
    return max(1, board.multiply_adds_per_s * WORK_S // (LANES * MULTIPLY_ADDS))


def primes_of(draw: bytes) -> tuple[int, int]:
    """Two primes of 255 bits, from 64 bytes that only the server can make."""
    p, q = (_next_prime(draw[at : at + PRIME_BYTES]) for at in (0, PRIME_BYTES))
    return p, q


def command_of(device_id: str, seed: str, modulus: int, lanes: int, rounds: int) -> tuple[str, ...]:
    """What the node runs: the program itself is part of the command, and so of its hash."""
    return (
        *("python3", "-c", PROGRAM, device_id),
        *(seed, f"{modulus:x}", str(lanes), str(rounds)),
    )


def broken_rule(
    answer: bytes,
    device_id: str,
    seed: str,
    primes: tuple[int, int],
    lanes: int,
    rounds: int,
    draw: Draw,
) -> str | None:
    """What an answer breaks: `no_answer`, `malformed`, `wrong_lanes`; None: right."""
    head, _, text = answer.decode("utf-8", "replace").strip().partition(" ")
    if head != "groups":
        return "no_answer"
    if len(text) != lanes // GROUP * 16 or "\n" in text:
        return "malformed"
    for _ in range(GROUPS_CHECKED):
        number = draw() % (lanes // GROUP)
        if text[16 * number : 16 * number + 16] != _group(device_id, seed, primes, number, rounds):
            return "wrong_lanes"
    return None


def _group(device_id: str, seed: str, primes: tuple[int, int], number: int, rounds: int) -> str:
    """What the group's lanes come to, in hexadecimal digits."""
    p, q = primes
    modulus = p * q
    exponents = pow(2, rounds, p - 1), pow(2, rounds, q - 1)
    unit, inverse = pow(R, -1, modulus), pow(q, -1, p)
    found = b""
    for lane in range(GROUP * number, GROUP * (number + 1)):
        drawn = sha512(f"{seed}/{device_id}/{lane}".encode()).digest()
        value = int.from_bytes(drawn, "big") * unit % modulus
        by_p, by_q = pow(value, exponents[0], p), pow(value, exponents[1], q)
        powered = by_q + q * ((by_p - by_q) * inverse % p)
        found += (powered * R % modulus).to_bytes(64, "big")
    return sha256(found).digest()[:8].hex()


def _next_prime(draw: bytes) -> int:
    """The first prime from a number of 255 bits whose two highest are set."""
    candidate = int.from_bytes(draw, "big") % 2**253 | 3 << 253 | 1
    while not _is_prime(candidate):
        candidate += 2
    return candidate


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test with 20 fixed bases: of numbers that nobody chose, it errs never."""
    if any(number % small == 0 for small in _SMALL):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in _SMALL)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    value = pow(base, odd, number)
    if value in (1, number - 1):
        return True
    for _ in range(twos - 1):
        value = value * value % number
        if value == number - 1:
            return True
    return False
