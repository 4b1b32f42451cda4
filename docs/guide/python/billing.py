"""Works on orders as a member of the group "billing", until it is told to stop: python billing.py NAME"""

import os
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException

name = sys.argv[1]
running = True


def stop(*_):
    global running
    running = False


signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)

consumer = Consumer(
    {
        "bootstrap.servers": os.environ.get("BOOTSTRAP_SERVERS", "127.0.0.1:9092"),
        "group.id": "billing",
        "client.id": f"billing-{name}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe(["orders"])


def work(message):
    time.sleep(0.001)
    print(name, message.key().decode(), message.value().decode(), flush=True)


try:
    while running:
        messages = consumer.consume(100, timeout=0.2)
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            work(message)
        if messages:
            consumer.commit(asynchronous=False)
finally:
    # Leaves the group at once: the other members need not wait for the session to end.
    consumer.close()
