"""A pubmark client program over Eclipse Paho for Python: `pubmark run … --client 'python3 clients/paho/client.py'`.

One thread and Paho's external loop (`loop_read`, `loop_write`, `loop_misc`), so that one process serves many clients. Paho connects
and agrees on TLS while it blocks: an address that does not answer holds up all clients of this process for up to 5 s.
"""

import json
import os
import select
import selectors
import ssl
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import paho.mqtt
import paho.mqtt.client as mqtt

import pubmark_client as pubmark

CLAIMS = dict(qos=[0, 1, 2], wildcards=True, retain=True, tls=True)
HELLO = {
    "versions": [1],
    "name": "paho-mqtt (Python)",
    "version": paho.mqtt.__version__,
    "stamps": True,
    "protocols": [
        {"name": "mqtt5", "shared_subscriptions": True, **CLAIMS},
        {"name": "mqtt311", **CLAIMS},
    ],
}
NOT_AUTHORIZED_CODES = (134, 135)
KEEP_ALIVE_TIMEOUT = 141
# Paho checks its keep-alive only when loop_misc() is called.
MISC_EVERY_S = 0.25
# Longest wait for a server that reads no DISCONNECT: it holds up all clients of this process.
DISCONNECT_WITHIN_S = 0.1


class NamedContext(ssl.SSLContext):
    """Checks the certificate against the name that pubmark gives, whatever the address is."""

    server_name = None

    def wrap_socket(self, sock, server_hostname=None, **more):
        return super().wrap_socket(sock, server_hostname=self.server_name, **more)


def tls_context(tls):
    context = NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = tls["server_name"]
    if tls.get("authorities"):
        context.load_verify_locations(tls["authorities"])
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Connection:
    """One connection of one of pubmark's clients: a client of Paho's."""

    def __init__(self, program, connect, topics, subscriptions):
        self.program, self.topics, self.subscriptions = program, topics, subscriptions
        self.names = (connect["client"], connect["connection"])
        self.asked, self.in_flight = {}, {}
        self.is_open = self.is_over = False
        version5 = program.begin["protocol"] == "mqtt5"
        self.paho = paho = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=connect["client_id"],
            protocol=mqtt.MQTTv5 if version5 else mqtt.MQTTv311,
            clean_session=None if version5 else True,
        )
        paho.max_inflight_messages_set(max(connect["window"], 1))
        if connect["login"]:
            paho.username_pw_set(*connect["login"])
        self.endpoint = program.begin["endpoints"][connect["endpoint"]]
        paho.on_connect, paho.on_disconnect = self.on_connect, self.on_disconnect
        paho.on_subscribe, paho.on_publish, paho.on_message = self.on_subscribe, self.on_publish, self.on_message
        paho.on_socket_open = lambda client, data, sock: program.watch(sock, self)
        paho.on_socket_close = lambda client, data, sock: program.unwatch(sock)
        paho.on_socket_register_write = lambda client, data, sock: program.watch_writes(sock, self, True)
        paho.on_socket_unregister_write = lambda client, data, sock: program.watch_writes(sock, self, False)

    def connect(self):
        tls = self.endpoint.get("tls")
        try:
            if tls:
                self.paho.tls_set_context(tls_context(tls))
                self.paho.tls_insecure_set(not tls.get("authorities"))
            self.paho.connect(self.endpoint["host"], self.endpoint["port"], self.program.begin["keep_alive_s"])
        except (ssl.SSLError, ConnectionResetError) as error:
            self.over(pubmark.TLS if tls else pubmark.UNREACHABLE, 0, str(error))
        except (OSError, ValueError) as error:
            self.over(pubmark.UNREACHABLE, 0, str(error))

    def over(self, end, code, reason):
        if not self.is_over:
            self.is_over = True
            self.program.say(pubmark.closed(*self.names, end, code, reason))
            self.program.forget(self)

    def on_connect(self, client, data, flags, reason_code, properties):
        if reason_code.is_failure:
            kind = pubmark.NOT_AUTHORIZED if reason_code.value in NOT_AUTHORIZED_CODES else pubmark.REFUSED
            return self.over(kind, reason_code.value, str(reason_code))
        self.is_open = True
        maximum = getattr(properties, "ReceiveMaximum", 0)
        self.program.say(pubmark.connected(*self.names, maximum, getattr(properties, "MaximumPacketSize", 0)))
        for number, topic_filter, qos in self.subscriptions:
            self.asked[client.subscribe(topic_filter, qos)[1]] = number

    def on_disconnect(self, client, data, flags, reason_code, properties):
        if flags.is_disconnect_packet_from_server:
            self.over(pubmark.SERVER, reason_code.value, str(reason_code))
        elif reason_code.value == KEEP_ALIVE_TIMEOUT:
            self.over(pubmark.SILENT, 0, "no answer to a ping")
        else:
            self.over(pubmark.DROPPED, 0, str(reason_code))

    def on_subscribe(self, client, data, mid, reason_codes, properties):
        number = self.asked.pop(mid, None)
        if number is not None:
            code = reason_codes[0]
            self.program.say(pubmark.granted(*self.names, number, code.value, str(code) if code.is_failure else ""))

    def publish(self, publish):
        message = (*self.names, publish["publication"], publish["sequence"])
        topic, qos, retain = self.topics[publish["publication"]]
        if self.is_over or not self.is_open:
            return self.program.say(pubmark.abandoned(*message))
        info = self.paho.publish(topic, publish["payload"], qos, retain)
        stamp_ns = time.monotonic_ns()
        if info.rc != mqtt.MQTT_ERR_SUCCESS:
            return self.program.say(pubmark.abandoned(*message))
        if qos:
            self.in_flight[info.mid] = message
        self.program.say(pubmark.written(*message, stamp_ns))

    def on_publish(self, client, data, mid, reason_code, properties):
        message = self.in_flight.pop(mid, None)
        if message:
            reason = str(reason_code) if reason_code.is_failure else ""
            self.program.say(pubmark.acknowledged(*message, reason_code.value, reason))

    def on_message(self, client, data, message):
        stamp_ns = time.monotonic_ns()
        self.program.say(pubmark.delivered(*self.names, message.retain, stamp_ns, message.payload))

    def read(self):
        self.paho.loop_read()
        # What TLS has read already, no socket tells of.
        while (sock := self.paho.socket()) is not None and getattr(sock, "pending", int)():
            self.paho.loop_read()

    def disconnect(self, how, until):
        """Ends it, and sends what is left before its DISCONNECT until this time, if the server reads that."""
        self.is_over = True
        sock = self.paho.socket()
        if how == pubmark.CUT and sock is not None:
            self.program.unwatch(sock)
            sock.close()
        else:
            self.paho.disconnect()
            # A write that fails closes the socket, and Paho wants to write the packet ever after.
            while (sock := self.paho.socket()) is not None and self.paho.want_write():
                left_s = until - time.monotonic()
                writable = select.poll()
                writable.register(sock, select.POLLOUT)
                writable.poll(max(0, 1000 * left_s))
                # One attempt in any case: a socket of a server that reads accepts it at once.
                self.paho.loop_write()
                if left_s <= 0:
                    break
            if (sock := self.paho.socket()) is not None:
                self.program.unwatch(sock)
                sock.close()
        self.program.forget(self)


class Program:
    """All clients, and what is said to pubmark."""

    def __init__(self):
        self.begin, self.topics, self.filters, self.connections = None, {}, {}, {}
        self.selector, self.out, self.input = selectors.DefaultSelector(), bytearray(), bytearray()
        self.runs, self.until = True, 0.0

    def say(self, frame):
        self.out += frame

    def watch(self, sock, connection):
        self.selector.register(sock, selectors.EVENT_READ, connection)

    def unwatch(self, sock):
        try:
            self.selector.unregister(sock)
        except (KeyError, ValueError):
            pass  # Paho tells of a socket's end a second time.

    def watch_writes(self, sock, connection, writes):
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
        try:
            self.selector.modify(sock, events, connection)
        except (KeyError, ValueError):
            pass  # As above.

    def forget(self, connection):
        if self.connections.get(connection.names[0]) is connection:
            del self.connections[connection.names[0]]

    def handle(self, name, fields):
        if name == "publish":
            connection = self.of(fields)
            if connection:
                connection.publish(fields)
        elif name == "ping":
            self.say(pubmark.pong(fields["number"], time.monotonic_ns()))
        elif name == "topic":
            topics = self.topics.setdefault(fields["client"], {})
            topics[fields["publication"]] = (fields["topic"], fields["qos"], fields["retain"])
        elif name == "connect":
            subscriptions = self.filters.pop((fields["client"], fields["connection"]), [])
            connection = Connection(self, fields, self.topics.get(fields["client"], {}), subscriptions)
            self.connections[fields["client"]] = connection
            connection.connect()
        elif name == "subscribe":
            shared = f"$share/{fields['shared']}/" if fields["shared"] else ""
            filters = self.filters.setdefault((fields["client"], fields["connection"]), [])
            filters.append((fields["subscription"], shared + fields["filter"], fields["qos"]))
        elif name == "disconnect":
            connection = self.of(fields)
            if connection:
                connection.disconnect(fields["how"], self.until)
        elif name == "begin":
            self.begin = json.loads(fields["json"])
        elif name == "goodbye":
            self.runs = False

    def of(self, fields):
        connection = self.connections.get(fields["client"])
        return connection if connection and connection.names[1] == fields["connection"] else None

    def flush(self):
        if self.out:
            pubmark.send(bytes(self.out))
            self.out.clear()

    def run(self):
        self.say(pubmark.hello(HELLO))
        self.flush()
        self.selector.register(0, selectors.EVENT_READ, None)
        misc_at = time.monotonic() + MISC_EVERY_S
        while self.runs:
            for key, events in self.selector.select(MISC_EVERY_S):
                if key.data is None:
                    piece = os.read(0, 1 << 18)
                    if not piece:
                        return
                    self.input += piece
                    # One limit for all that came together, so that servers that read nothing do not add up.
                    self.until = time.monotonic() + DISCONNECT_WITHIN_S
                    for name, fields in pubmark.read_frames(self.input):
                        self.handle(name, fields)
                        self.flush()
                    continue
                if events & selectors.EVENT_WRITE:
                    key.data.paho.loop_write()
                if events & selectors.EVENT_READ:
                    key.data.read()
                self.flush()
            if time.monotonic() >= misc_at:
                misc_at = time.monotonic() + MISC_EVERY_S
                for connection in list(self.connections.values()):
                    connection.paho.loop_misc()
                self.flush()
        until = time.monotonic() + DISCONNECT_WITHIN_S
        for connection in list(self.connections.values()):
            connection.disconnect(pubmark.GRACEFUL, until)


if __name__ == "__main__":
    Program().run()
