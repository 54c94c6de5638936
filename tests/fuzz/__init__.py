"""Random faults: bodies that are damaged in every way, held to the contracts of the engine; and a proxy under mixed load.

`python -m tests.fuzz` and `python -m tests.fuzz.soak`; `make fuzz` and `make soak`.
A short run of both is part of `make test`.
"""
