"""What does the chain say? Contracts, payout tree, transactions, scanner and reconciliation."""

import sys

_RECURSION_MAX = sys.getrecursionlimit()
import py_ecc

# A library under the Ethereum ones lifts the limit of the whole process when it is first imported;
# lifted, a deeply nested JSON body overflows the C stack of the parser and kills the server.
assert py_ecc
sys.setrecursionlimit(_RECURSION_MAX)
