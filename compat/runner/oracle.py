"""What was acknowledged against what was read.

Each record's value names its producer, its key and its number among that key's records, so that a reader's list alone
shows what is missing, out of order or there twice.
"""

import json

from .errors import Failure


def value(producer, key, number, size=0):
    """The value of record `number` of `key`; padded to at least `size` bytes."""
    data = {"producer": producer, "key": key, "seq": number}
    text = json.dumps(data)
    if len(text) < size:
        data["pad"] = "x" * (size - len(text) - len(', "pad": ""'))
        text = json.dumps(data)
    return text.encode()


class Oracle:
    """Collects acknowledged and read records of one scenario."""

    def __init__(self):
        # {(topic, partition, offset): (producer, key, seq)} as acknowledged.
        self.written = {}
        # Records whose acknowledgement never came: they may be there or not.
        self.unsure = set()
        # [(member, topic, partition, offset, producer, key, seq)] in the order of reading.
        self.read = []

    def acknowledged(self, topic, partition, offset, producer, key, seq):
        """A produce was answered with this place."""
        place = (topic, partition, offset)
        if place in self.written and self.written[place] != (producer, key, seq):
            raise Failure(f"{place} was given to {self.written[place]} and to {(producer, key, seq)}")
        self.written[place] = (producer, key, seq)

    def seen(self, member, record):
        """A member read `record` (a context.Record)."""
        data = json.loads(record.value)
        identity = (data["producer"], data["key"], data["seq"])
        place = (record.topic, record.partition, record.offset)
        expected = self.written.get(place)
        if expected is not None and expected != identity:
            raise Failure(f"{place} was acknowledged as {expected} but reads as {identity}")
        self.read.append((member, *place, *identity))

    def missing(self):
        """Acknowledged records that nobody has read yet."""
        seen = {(producer, key, seq) for *_, producer, key, seq in self.read}
        return sorted(set(self.written.values()) - seen)

    def check(self, duplicates=False, copies=False):
        """No loss; first deliveries of each key rise.

        Unless `duplicates`, no place was read twice; unless `copies` (which a retry without idempotence may leave), no record
        is stored at two places.
        """
        missing = self.missing()
        if missing:
            raise Failure(f"{len(missing)} of {len(self.written)} acknowledged records were not read, first {missing[:3]}")
        places, highest, where = {}, {}, {}
        for member, topic, partition, offset, producer, key, seq in self.read:
            place = (topic, partition, offset)
            if place in places:
                if not duplicates:
                    raise Failure(f"{place} was read by {places[place]} and again by {member}")
                continue
            places[place] = member
            identity = (producer, key, seq)
            if identity in where and not copies:
                raise Failure(f"record {identity} is stored twice, at {where[identity]} and {place}")
            if identity in where:
                continue
            where[identity] = place
            last = highest.get((producer, key), -1)
            if seq <= last:
                raise Failure(f"record {seq} of {producer}/{key} came after record {last} (at {place}, member {member})")
            highest[(producer, key)] = seq
