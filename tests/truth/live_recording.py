# SPDX-License-Identifier: Apache-2.0
"""The operations in a recording (docs/recordings.md), read without the library's own reader.

A recording has the times on which a ledger rests: those of CUPTI's clock, converted to the session's.
"""
import collections
import zlib

PREAMBLE = b"gpudiag.records/1\n"
HEADER = 21
KINDS = {1: "kernel", 2: "memcpy", 3: "memset"}
KIND, START, LENGTH, DEVICE, CONTEXT, STREAM, CORRELATION = 0, 1, 2, 7, 8, 9, 10

Recorded = collections.namedtuple("Recorded", "kind device context stream correlation start end")


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def zigzag(value):
    return (value >> 1) ^ -(value & 1)


def records(payload):
    at = 0
    previous = 0
    while at < len(payload):
        mask, at = number(payload, at)
        fields = collections.defaultdict(int)
        for bit in range(mask.bit_length()):
            if mask >> bit & 1:
                fields[bit], at = number(payload, at)
        start = previous = previous + zigzag(fields[START])
        yield fields, start, start + zigzag(fields[LENGTH])


def read_operations(path):
    """All operations of devices. A ValueError where the file is damaged."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(PREAMBLE):
        raise ValueError(f"{path}: no recording")
    at = len(PREAMBLE)
    found = []
    while at < len(data):
        kind, size = data[at + 4 : at + 5], int.from_bytes(data[at + 5 : at + 9], "little")
        payload = data[at + HEADER : at + HEADER + size]
        checksum = int.from_bytes(data[at + 17 : at + 21], "little")
        if data[at : at + 4] != b"\xf7GDF" or zlib.crc32(payload, zlib.crc32(data[at + 4 : at + 17])) != checksum:
            raise ValueError(f"{path}: damaged at {at}")
        at += HEADER + size
        if kind != b"R":
            continue
        for fields, start, end in records(payload):
            if fields[KIND] in KINDS:
                found.append(Recorded(KINDS[fields[KIND]], fields[DEVICE] - 1, fields[CONTEXT],
                                      fields[STREAM] - 1, fields[CORRELATION], start, end))
    return found


def match(truth, recorded):
    """When the recording says that each operation of the truth began and ended, by its id. A ValueError where an
    operation is missing or was never there."""
    def key_of(kind, device, context, stream, correlation):
        return kind, device, context, stream, correlation

    waiting = collections.defaultdict(list)
    for operation in truth.operations.values():
        if operation.state:
            waiting[key_of(operation.kind, *operation.stream, operation.correlation)].append(operation)
    seen = collections.defaultdict(list)
    for record in recorded:
        seen[key_of(*record[:5])].append(record)
    if waiting.keys() != seen.keys() or any(len(waiting[key]) != len(seen[key]) for key in waiting):
        differing = sum(len(waiting.get(key, ())) != len(seen.get(key, ())) for key in waiting.keys() | seen.keys())
        raise ValueError(f"{differing} launches have other operations in the recording than in the truth")
    start_of, end_of = {}, {}
    for key, operations in waiting.items():
        operations.sort(key=lambda o: o.start)
        for operation, record in zip(operations, sorted(seen[key], key=lambda r: r.start)):
            start_of[operation.id], end_of[operation.id] = record.start, record.end
    return start_of, end_of
