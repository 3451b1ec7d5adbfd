"""What does the chain say? Contracts, payout tree, transactions, scanner and reconciliation."""

import os
import sys
from contextlib import suppress

# Read at the first hash of a process, by whichever library comes first; the other backend is five
# times slower.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

# A library under the Ethereum ones lifts the limit of the whole process when it is first imported;
# lifted, a deeply nested JSON body overflows the C stack of the parser and kills the server. It is
# absent where only payout trees are built, `tallystick[audit]`: nothing lifts the limit there.
_RECURSION_MAX = sys.getrecursionlimit()
with suppress(ModuleNotFoundError):
    import py_ecc

    assert py_ecc
sys.setrecursionlimit(_RECURSION_MAX)
