"""A writer of Parquet for tests: required columns of integers, reals and texts, plain encoding, not compressed. Source:
parquet-format's parquet.thrift and Thrift's compact protocol."""
import struct

INT64, DOUBLE, BYTES = 2, 5, 6
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def binary(text):
    return varint(len(text)) + text


def struct_of(fields):
    """Fields are (number, type, bytes), ascending."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last << 4 | kind]) + value
        last = number
    return out + b"\0"


def list_of(kind, items):
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xf0 | kind]) + varint(len(items))
    return head + b"".join(items)


def type_of(values):
    if isinstance(values[0], int):
        return INT64
    return DOUBLE if isinstance(values[0], float) else BYTES


def page(kind, values):
    if kind == INT64:
        body = struct.pack(f"<{len(values)}q", *values)
    elif kind == DOUBLE:
        body = struct.pack(f"<{len(values)}d", *values)
    else:
        body = b"".join(struct.pack("<I", len(v.encode())) + v.encode() for v in values)
    head = struct_of([(1, I32, integer(0)), (2, I32, integer(len(body))), (3, I32, integer(len(body))),
                      (5, STRUCT, struct_of([(1, I32, integer(len(values))), (2, I32, integer(0)), (3, I32, integer(3)),
                                             (4, I32, integer(3))]))])
    return head + body


def parquet(columns, rows_of_group=1000):
    """The bytes of a file of `columns`: a dict of names to lists of equal length, not empty."""
    rows = len(next(iter(columns.values())))
    out, groups = b"PAR1", []
    for begin in range(0, rows, rows_of_group):
        chunks, total = [], 0
        for name, values in columns.items():
            part = values[begin:begin + rows_of_group]
            kind = type_of(values)
            chunk = page(kind, part)
            meta = struct_of([(1, I32, integer(kind)), (2, LIST, list_of(I32, [integer(0)])),
                              (3, LIST, list_of(BINARY, [binary(name.encode())])), (4, I32, integer(0)), (5, I64, integer(len(part))),
                              (6, I64, integer(len(chunk))), (7, I64, integer(len(chunk))), (9, I64, integer(len(out)))])
            chunks.append(struct_of([(2, I64, integer(len(out))), (3, STRUCT, meta)]))
            out += chunk
            total += len(chunk)
        groups.append(struct_of([(1, LIST, list_of(STRUCT, chunks)), (2, I64, integer(total)),
                                 (3, I64, integer(min(rows_of_group, rows - begin)))]))
    schema = [struct_of([(4, BINARY, binary(b"schema")), (5, I32, integer(len(columns)))])]
    for name, values in columns.items():
        kind = type_of(values)
        fields = [(1, I32, integer(kind)), (3, I32, integer(0)), (4, BINARY, binary(name.encode()))]
        if kind == BYTES:
            fields.append((6, I32, integer(0)))
        schema.append(struct_of(fields))
    footer = struct_of([(1, I32, integer(1)), (2, LIST, list_of(STRUCT, schema)), (3, I64, integer(rows)),
                        (4, LIST, list_of(STRUCT, groups))])
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"
