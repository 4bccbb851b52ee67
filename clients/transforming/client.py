"""A pubmark client program that transforms bodies: the Paho client beside it, which compresses each body before it publishes it and
undoes that when it arrives. Another transformation is another pair of `before_publish` and `after_receipt`: to encrypt with a key
of the device, to drop fields that a subscriber may not see, to turn JSON into a binary format.

    pubmark run WORKLOAD --system mosquitto --client 'target/clients/paho/bin/python3 clients/transforming/client.py'
"""

import importlib.util
import os
import zlib

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("paho_client", os.path.join(here, "../paho/client.py"))
paho_client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(paho_client)

# Bytes of pubmark's header by its first byte (docs/explanation/payload-header.md). It stays as it is, in front of the body.
HEADERS = {0xC1: 24, 0xC2: 16, 0xC4: 32}


def before_publish(body):
    return zlib.compress(body, 6)


def after_receipt(body):
    return zlib.decompress(body)


def transformed(payload, transform):
    """The payload with another body; as it is without a header of pubmark's, or without a body that can be undone."""
    length = HEADERS.get(payload[0], len(payload)) if payload else 0
    try:
        return payload[:length] + transform(payload[length:]) if length < len(payload) else payload
    except zlib.error:
        return payload


class Connection(paho_client.Connection):
    def publish(self, publish):
        super().publish({**publish, "payload": transformed(publish["payload"], before_publish)})

    def on_message(self, client, data, message):
        message.payload = transformed(message.payload, after_receipt)
        super().on_message(client, data, message)


paho_client.Connection = Connection
paho_client.HELLO["name"] += " with zlib"
if __name__ == "__main__":
    paho_client.Program().run()
