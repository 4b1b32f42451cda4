"""Runs real Kafka clients against a real broker and prints one table of results.

How the parts play together, from the command line inwards:

  run.py         reads the command line, asks `jobs` for the work, prints the verdict
  jobs.py        pairs every client with every scenario that concerns it; runs the pairs on a few lanes
  clients.py     the table of clients: how each is started, its version, what it cannot do and why
  setup.py       installs what the clients need into the cache folder, from the ordinary package clients
  stalls.py      notices when the machine itself stands still, and failures prove nothing
  target.py      the broker under test: the real binary, or a real Kafka, in a fresh data folder
  context.py     what a scenario sees: the broker, the client's drivers, deadlines, its log
  driver.py      one client program: JSON lines on its standard input and output
  wire.py, messages.py, batch.py   a small raw client, for the odd versions that no library sends any more
  oracle.py      what was acknowledged against what was read: loss, order, duplicates
  scenarios/     the expectations, written once
  table.py       live lines, the summary, RESULTS.md
"""
