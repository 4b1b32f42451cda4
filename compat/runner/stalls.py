"""Notices when the machine itself stands still.

A durable broker waits for the disk. Where several builds share a disk, a flush may take many seconds, and then every timeout of
every client runs out, through no fault of theirs. A scenario that was late (errors.Late) while that happened is run once more,
and the table, the last line and RESULTS.md say that it took two tries. A wrong result is never tried again, and on a quiet
machine nothing is.
"""

import os
import threading
import time

# Between two looks.
PAUSE_SECONDS = 0.25
# Longer than a flush or a wake-up takes on a machine that is merely busy; half of the shortest session timeout in use.
STALL_SECONDS = 3.0


class Stalls:
    """Writes and flushes a block again and again, and remembers when that took long."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "stall-probe")
        self._seen = []
        # When the look began that has not ended yet.
        self._begun = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def worst_since(self, begun):
        """Seconds of the longest stall that ended after `begun` (monotonic time), or has not ended yet; 0 if there was none."""
        lengths = [length for ended, length in self._seen if ended >= begun]
        now = time.monotonic() - self._begun
        return max([*lengths, now if now > STALL_SECONDS else 0.0])

    def close(self):
        """Ends the watch."""
        self._stop.set()
        self._thread.join(timeout=60)

    def _watch(self):
        with open(self._path, "wb", buffering=0) as probe:
            while not self._stop.is_set():
                begun = self._begun = time.monotonic()
                os.pwrite(probe.fileno(), b"x" * 4096, 0)
                os.fdatasync(probe.fileno())
                self._stop.wait(PAUSE_SECONDS)
                ended = time.monotonic()
                if ended - begun - PAUSE_SECONDS > STALL_SECONDS:
                    self._seen.append((ended, ended - begun))
