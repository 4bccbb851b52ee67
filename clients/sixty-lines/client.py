import json, os, sys, threading, time
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import paho.mqtt.client as mqtt
import pubmark_client as pubmark

HELLO = {"versions": [1], "name": "sixty-lines over paho-mqtt", "version": "1", "stamps": True,
         "protocols": [{"name": "mqtt311", "qos": [0], "wildcards": True}]}
topics, filters, clients, begin, lock = {}, {}, {}, {}, threading.Lock()

def say(frame):  # Each client has a thread of Paho's.
    with lock:
        pubmark.send(frame)

def connect(names, fields):
    endpoint = begin["endpoints"][fields["endpoint"]]
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=fields["client_id"], reconnect_on_failure=False)
    client.asked = {}

    def on_connect(client, data, flags, code, properties):
        if code.is_failure:
            return over(names, pubmark.REFUSED, str(code))
        say(pubmark.connected(*names))
        for number, topic_filter in filters.pop(names, []):
            client.asked[client.subscribe(topic_filter)[1]] = number

    client.on_connect = on_connect
    client.on_subscribe = lambda c, d, mid, codes, p: say(pubmark.granted(*names, client.asked[mid], codes[0].value))
    client.on_message = lambda c, d, message: say(
        pubmark.delivered(*names, message.retain, time.monotonic_ns(), message.payload))
    client.on_disconnect = lambda c, d, flags, code, p: over(names, pubmark.DROPPED, str(code))
    clients[names] = client
    try:
        client.connect(endpoint["host"], endpoint["port"], begin["keep_alive_s"])
        client.loop_start()
    except OSError as error:
        over(names, pubmark.UNREACHABLE, str(error))

def over(names, end, reason):
    if clients.pop(names, None):
        say(pubmark.closed(*names, end, 0, reason))

def handle(name, fields):
    names = (fields.get("client"), fields.get("connection"))
    if name == "begin":
        begin.update(json.loads(fields["json"]))
    elif name == "ping":
        say(pubmark.pong(fields["number"], time.monotonic_ns()))
    elif name == "goodbye":
        os._exit(0)
    elif name == "topic":
        topics[fields["client"], fields["publication"]] = (fields["topic"], fields["qos"], fields["retain"])
    elif name == "connect":
        connect(names, fields)
    elif name == "subscribe":
        filters.setdefault(names, []).append((fields["subscription"], fields["filter"]))
    elif name == "publish" and (client := clients.get(names)):
        topic, qos, retain = topics[fields["client"], fields["publication"]]
        client.publish(topic, fields["payload"], qos, retain)
        say(pubmark.written(*names, fields["publication"], fields["sequence"], time.monotonic_ns()))
    elif name == "disconnect" and (client := clients.pop(names, None)):
        client.disconnect()

say(pubmark.hello(HELLO))
buffer = bytearray()
while piece := os.read(0, 1 << 18):
    buffer += piece
    for frame in pubmark.read_frames(buffer):
        handle(*frame)
