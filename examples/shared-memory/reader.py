#!/usr/bin/env python3
"""Prints the metrics of a run from its shared-memory file: reader.py FILE. The layout is in docs/shared-memory.md."""
import mmap
import struct
import sys

with open(sys.argv[1], "rb") as file:
    shared = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
if shared[:8] != b"PENSHMEM":
    sys.exit("no metrics yet")
while True:
    version, before, state, _, time, directory, values_at, count = struct.unpack_from("<IIIIdIII", shared, 8)
    values = struct.unpack_from(f"<{count}d", shared, values_at)
    if before % 2 == 0 and before == struct.unpack_from("<I", shared, 12)[0]:
        break
print("ended" if state == 2 else "running", "at", f"{time / 1e9:.3f}")
for value, line in zip(values, shared[64 : 64 + directory].decode().split("\n")):
    print(f"{value:.17g}\t{line}")
