"""What does the chain say? Contracts, payout tree, transactions, scanner and reconciliation."""

import sys
from contextlib import suppress

# A library under the Ethereum ones lifts the limit of the whole process when it is first imported;
# lifted, a deeply nested JSON body overflows the C stack of the parser and kills the server. It is
# absent where only payout trees are built, `tallystick[audit]`: nothing lifts the limit there.
_RECURSION_MAX = sys.getrecursionlimit()
with suppress(ModuleNotFoundError):
    import py_ecc

    assert py_ecc
sys.setrecursionlimit(_RECURSION_MAX)
