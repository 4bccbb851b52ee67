"""The frames of pubmark's client program protocol, version 1, for programs in Python (docs/reference/client-protocol.md).

`read_frames` takes bytes apart, the functions named after frames put them together. Standard library only.
"""

import json
import os
import struct

ASKED, UNREACHABLE, REFUSED, NOT_AUTHORIZED, TLS, SERVER, DROPPED, SILENT, PROTOCOL = range(9)
GRACEFUL, FINAL, CUT = range(3)

_SESSION = struct.Struct("<II")
_TOPIC = struct.Struct("<IHBB")
_CONNECT = struct.Struct("<IIHHB")
_SUBSCRIBE = struct.Struct("<IIHB")
_PUBLISH = struct.Struct("<IIHIQQ")
_DISCONNECT = struct.Struct("<IIB")
_NUMBER = struct.Struct("<Q")
_HEAD = struct.Struct("<IB")


def _texts(body, at, count):
    texts = []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", body, at)
        if at + 2 + length > len(body):
            raise ValueError("a text goes beyond its frame")
        texts.append(bytes(body[at + 2 : at + 2 + length]).decode())
        at += 2 + length
    if at != len(body):
        raise ValueError("bytes behind the last field")
    return texts


def _begin(body):
    return "begin", {"json": bytes(body).decode()}


def _ping(body):
    return "ping", {"number": _NUMBER.unpack(body)[0]}


def _goodbye(_):
    return "goodbye", {}


def _topic(body):
    client, publication, qos, retain = _TOPIC.unpack_from(body)
    topic, device_type = _texts(body, _TOPIC.size, 2)
    return "topic", dict(
        client=client, publication=publication, qos=qos, retain=bool(retain), topic=topic, device_type=device_type
    )


def _connect(body):
    client, connection, endpoint, window, has_login = _CONNECT.unpack_from(body)
    client_id, user, password = _texts(body, _CONNECT.size, 3)
    login = [user, password] if has_login else None
    return "connect", dict(
        client=client, connection=connection, endpoint=endpoint, window=window, login=login, client_id=client_id
    )


def _subscribe(body):
    client, connection, subscription, qos = _SUBSCRIBE.unpack_from(body)
    topic_filter, shared = _texts(body, _SUBSCRIBE.size, 2)
    return "subscribe", dict(
        client=client, connection=connection, subscription=subscription, qos=qos, filter=topic_filter, shared=shared
    )


def _publish(body):
    client, connection, publication, sequence, due_ns, ready_ns = _PUBLISH.unpack_from(body)
    return "publish", dict(
        client=client,
        connection=connection,
        publication=publication,
        sequence=sequence,
        due_ns=due_ns,
        ready_ns=ready_ns,
        payload=bytes(body[_PUBLISH.size :]),
    )


def _disconnect(body):
    client, connection, how = _DISCONNECT.unpack(body)
    return "disconnect", dict(client=client, connection=connection, how=how)


_READERS = {
    1: _begin,
    2: _ping,
    3: _goodbye,
    4: _topic,
    5: _connect,
    6: _subscribe,
    7: _publish,
    8: _disconnect,
}


def read_frames(buffer):
    """Takes the whole frames out of a bytearray: a list of (name, fields)."""
    frames, at = [], 0
    with memoryview(buffer) as view:
        while len(buffer) - at >= 4:
            (length,) = struct.unpack_from("<I", buffer, at)
            if len(buffer) - at < 4 + length:
                break
            with view[at + 5 : at + 4 + length] as body:
                frames.append(_READERS[buffer[at + 4]](body))
            at += 4 + length
    del buffer[:at]
    return frames


def _frame(kind, fields, rest=b""):
    return _HEAD.pack(1 + len(fields) + len(rest), kind) + fields + rest


def _reason(text):
    # Cut between letters: what is no UTF-8 ends the program.
    return text.encode()[:256].decode(errors="ignore").encode()


def hello(fields):
    return _frame(0x81, b"", fields if isinstance(fields, bytes) else json.dumps(fields).encode())


def pong(number, stamp_ns):
    return _frame(0x82, struct.pack("<QQ", number, stamp_ns))


def goodbye():
    return _frame(0x83, b"")


def connected(client, connection, receive_maximum=0, maximum_packet_bytes=0):
    return _frame(0x84, struct.pack("<IIHI", client, connection, receive_maximum, maximum_packet_bytes))


def closed(client, connection, end, code=0, reason=""):
    return _frame(0x85, struct.pack("<IIBB", client, connection, end, code), _reason(reason))


def granted(client, connection, subscription, qos, reason=""):
    return _frame(0x86, struct.pack("<IIHB", client, connection, subscription, qos), _reason(reason))


def written(client, connection, publication, sequence, stamp_ns):
    return _frame(0x87, struct.pack("<IIHIQ", client, connection, publication, sequence, stamp_ns))


def abandoned(client, connection, publication, sequence):
    return _frame(0x88, struct.pack("<IIHI", client, connection, publication, sequence))


def acknowledged(client, connection, publication, sequence, code=0, reason=""):
    return _frame(0x89, struct.pack("<IIHIB", client, connection, publication, sequence, code), _reason(reason))


def delivered(client, connection, retained, stamp_ns, payload, payload_bytes=None):
    whole = len(payload) if payload_bytes is None else payload_bytes
    return _frame(0x8A, struct.pack("<IIBQI", client, connection, retained, stamp_ns, whole), payload)


def revoked(client, connection, subscription, code=0, reason=""):
    """The system ended a subscription that it had granted; the connection remains. `code` is 0, or 128 and above."""
    return _frame(0x8B, struct.pack("<IIHB", client, connection, subscription, code), _reason(reason))


def send(frame):
    """Writes a frame, or several, to pubmark."""
    with memoryview(frame) as view:
        at = 0
        while at < len(view):
            at += os.write(1, view[at:])
