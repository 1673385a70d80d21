"""The gRPC side of the console: the gate, the servicers and what turns messages into structs.

Owns the contract's messages at run time; no other part of the package handles them except the
command line. Never decides: a servicer reads a request, asks the engine and shows the answer.
"""
