"""Record batches, format version 2: just enough to write and read plain ones by hand."""

import struct
import zlib


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return table


_TABLE = _crc32c_table()
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def crc32c(data):
    """CRC-32C (Castagnoli) of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(number):
    """Zigzag variable-length integer."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number & ~0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at):
    """The integer at `at` and the position behind it."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (result >> 1) ^ -(result & 1), at
        shift += 7


def _field(data):
    return varint(-1) if data is None else varint(len(data)) + data


def _zstd_store(data):
    """A zstd frame that stores `data` (at most 255 bytes) uncompressed: valid zstd without a zstd library."""
    if len(data) > 255:
        raise ValueError("a stored frame holds at most 255 bytes here")
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def build(records, codec="none", timestamp=1_700_000_000_000, producer_id=-1, producer_epoch=-1, sequence=-1):
    """One batch of `(key, value)` pairs, all with one timestamp."""
    body = b""
    for delta, (key, value) in enumerate(records):
        record = b"\x00" + varint(0) + varint(delta) + _field(key) + _field(value) + varint(0)
        body += varint(len(record)) + record
    if codec == "gzip":
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(body) + packer.flush()
    elif codec == "zstd":
        body = _zstd_store(body)
    elif codec != "none":
        raise ValueError(f"cannot write {codec}")
    covered = struct.pack(
        ">hiqqqhii",
        CODECS[codec],
        len(records) - 1,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        sequence,
        len(records),
    ) + body
    tail = struct.pack(">ibI", 0, 2, crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(tail)) + tail


def parse(data):
    """The `(offset, key, value)` of all records in consecutive uncompressed batches; a cut last batch is left out."""
    records, at = [], 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        end = at + 12 + length
        if end > len(data):
            break
        if crc32c(data[at + 21 : end]) != struct.unpack_from(">I", data, at + 17)[0]:
            raise ValueError(f"wrong checksum of the batch at offset {base}")
        count = struct.unpack_from(">i", data, at + 57)[0]
        position = at + 61
        for _ in range(count):
            _, position = read_varint(data, position)
            _, position = read_varint(data, position + 1)
            delta, position = read_varint(data, position)
            fields = []
            for _ in range(2):
                size, position = read_varint(data, position)
                fields.append(None if size < 0 else bytes(data[position : position + size]))
                position += max(size, 0)
            headers, position = read_varint(data, position)
            if headers:
                raise ValueError("headers are not read here")
            records.append((base + delta, fields[0], fields[1]))
        at = end
    return records
