// A pubmark client program over MQTT.js: `pubmark run … --client 'node clients/mqttjs/client.js'`.
//
// Its libraries are looked for beside it, then in target/clients/mqttjs, where `.ci/install-clients mqttjs` puts them.
// Standard input and output are one socket, so one handle reads and writes it (docs/reference/client-protocol.md).
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const tls = require('node:tls');
const { createRequire } = require('node:module');

const places = [__dirname, path.join(__dirname, '../../target/clients/mqttjs')];
const place = places.find((folder) => fs.existsSync(path.join(folder, 'node_modules/mqtt')));
if (!place) {
  console.error('Error: MQTT.js is not installed: `pubmark install mqttjs`, or `npm ci` in clients/mqttjs');
  process.exit(1);
}
const load = createRequire(path.join(place, 'client.js'));
const mqtt = load('mqtt');

const END = { unreachable: 1, refused: 2, notAuthorized: 3, tls: 4, server: 5, dropped: 6, silent: 7 };
const CUT = 2;
const REASON_BYTES = 256;
const NOT_AUTHORIZED = new Set([4, 5, 134, 135]);
const CLAIMS = { qos: [0, 1, 2], wildcards: true, retain: true, tls: true };
const HELLO = {
  versions: [1],
  name: 'MQTT.js',
  version: load('mqtt/package.json').version,
  stamps: true,
  protocols: [
    { name: 'mqtt5', shared_subscriptions: true, ...CLAIMS },
    { name: 'mqtt311', ...CLAIMS },
  ],
};

const pubmark = new net.Socket({ fd: 0, readable: true, writable: true });
const now = () => process.hrtime.bigint();

function say(kind, fields, rest = Buffer.alloc(0)) {
  const head = Buffer.allocUnsafe(5);
  head.writeUInt32LE(1 + fields.length + rest.length, 0);
  head[4] = kind;
  pubmark.write(head);
  if (fields.length) pubmark.write(fields);
  if (rest.length) pubmark.write(rest);
}

// A reason in UTF-8, cut between letters: what is no UTF-8 ends the program.
function reason(text) {
  const whole = Buffer.from(String(text));
  let end = Math.min(whole.length, REASON_BYTES);
  while (end < whole.length && (whole[end] & 0xc0) === 0x80) end -= 1;
  return whole.subarray(0, end);
}

// Fields of fixed length: pairs of a number of bytes and a value.
function pack(...pairs) {
  const out = Buffer.allocUnsafe(pairs.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of pairs) {
    if (bytes === 8) out.writeBigUInt64LE(BigInt(value), at);
    else out.writeUIntLE(Number(value), at, bytes);
    at += bytes;
  }
  return out;
}

class Reader {
  constructor(body) {
    this.body = body;
    this.at = 0;
  }
  number(bytes) {
    this.at += bytes;
    return this.body.readUIntLE(this.at - bytes, bytes);
  }
  big() {
    this.at += 8;
    return this.body.readBigUInt64LE(this.at - 8);
  }
  text() {
    const length = this.number(2);
    this.at += length;
    return this.body.toString('utf8', this.at - length, this.at);
  }
  rest() {
    return this.body.subarray(this.at);
  }
}

let begin = null;
const topics = new Map();
const filters = new Map();
const connections = new Map();

class Connection {
  constructor(client, connection) {
    this.names = [[4, client], [4, connection]];
    this.client = client;
    this.connection = connection;
    this.subscriptions = filters.get(`${client} ${connection}`) || [];
    filters.delete(`${client} ${connection}`);
    this.over = false;
    this.open = false;
    this.why = [END.dropped, 0, 'closed without a word'];
  }

  connect(endpoint, window, clientId, login) {
    const options = {
      protocol: endpoint.tls ? 'mqtts' : 'mqtt',
      host: endpoint.host,
      port: endpoint.port,
      protocolVersion: begin.protocol === 'mqtt5' ? 5 : 4,
      clientId,
      clean: true,
      keepalive: begin.keep_alive_s,
      reconnectPeriod: 0,
      resubscribe: false,
      queueQoSZero: false,
      ...login,
    };
    if (endpoint.tls) {
      const name = endpoint.tls.server_name;
      options.rejectUnauthorized = Boolean(endpoint.tls.authorities);
      options.servername = net.isIP(name) ? '' : name;
      options.checkServerIdentity = (_, certificate) => tls.checkServerIdentity(name, certificate);
      if (endpoint.tls.authorities) options.ca = fs.readFileSync(endpoint.tls.authorities);
    }
    this.mqtt = mqtt.connect(options);
    this.mqtt.on('connect', (connack) => this.connected(connack));
    this.mqtt.on('error', (error) => this.failed(error, endpoint));
    this.mqtt.on('disconnect', (packet) => {
      this.why = [END.server, packet.reasonCode || 0, 'the server said goodbye'];
    });
    this.mqtt.on('close', () => this.closed());
    this.mqtt.on('message', (topic, payload, packet) => {
      const stamp = now();
      if (this.over) return;
      say(0x8a, pack(...this.names, [1, packet.retain ? 1 : 0], [8, stamp], [4, payload.length]), payload);
    });
  }

  connected(connack) {
    if (this.over) return;
    this.open = true;
    const { receiveMaximum = 0, maximumPacketSize = 0 } = connack.properties || {};
    say(0x84, pack(...this.names, [2, receiveMaximum], [4, maximumPacketSize]));
    for (const [number, filter, qos] of this.subscriptions) this.subscribe(number, filter, qos);
  }

  subscribe(number, filter, qos) {
    this.mqtt.subscribe(filter, { qos }, (error, granted) => {
      if (this.over) return;
      const level = granted && granted[0] ? granted[0].qos : 128;
      const why = level >= 128 ? reason(error ? error.message : 'refused') : undefined;
      say(0x86, pack(...this.names, [2, number], [1, level]), why);
    });
  }

  failed(error, endpoint) {
    const { code, message } = error;
    if (typeof code === 'number') {
      this.why = [NOT_AUTHORIZED.has(code) ? END.notAuthorized : END.refused, code, message];
    } else if (/keepalive/i.test(message)) {
      this.why = [END.silent, 0, message];
    } else if (!this.open && endpoint.tls && !['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH'].includes(code)) {
      this.why = [END.tls, 0, message];
    } else {
      this.why = [this.open ? END.dropped : END.unreachable, 0, code === 'ECONNREFUSED' ? 'Connection refused' : message];
    }
  }

  closed() {
    if (this.over) return;
    this.over = true;
    const [end, code, why] = this.why;
    say(0x85, pack(...this.names, [1, end], [1, code]), reason(why));
    this.forget();
    this.mqtt.end(true);
  }

  publish(publication, sequence, payload) {
    const message = [...this.names, [2, publication], [4, sequence]];
    const known = (topics.get(this.client) || new Map()).get(publication);
    if (this.over || !this.open || !known) return say(0x88, pack(...message));
    const { topic, qos, retain } = known;
    this.mqtt.publish(topic, payload, { qos, retain }, (error) => {
      if (this.over || qos === 0) return;
      const code = error ? error.code : 0;
      // An error without a code is the end of the connection: `close` reports it.
      if (error && !(code >= 128)) return;
      say(0x89, pack(...message, [1, code]), error ? reason(error.message) : undefined);
    });
    say(0x87, pack(...message, [8, now()]));
  }

  disconnect(how) {
    this.over = true;
    this.forget();
    if (how === CUT && this.mqtt.stream) this.mqtt.stream.destroy();
    this.mqtt.end(how === CUT);
  }

  forget() {
    if (connections.get(this.client) === this) connections.delete(this.client);
  }
}

function of(reader) {
  const found = connections.get(reader.number(4));
  const connection = reader.number(4);
  return found && found.connection === connection ? found : null;
}

const HANDLERS = {
  1: (reader) => {
    begin = JSON.parse(reader.rest().toString());
  },
  2: (reader) => say(0x82, pack([8, reader.big()], [8, now()])),
  3: () => {
    for (const connection of [...connections.values()]) connection.disconnect(0);
    pubmark.end(() => setTimeout(() => process.exit(0), 100));
  },
  4: (reader) => {
    const [client, publication, qos, retain] = [4, 2, 1, 1].map((bytes) => reader.number(bytes));
    if (!topics.has(client)) topics.set(client, new Map());
    topics.get(client).set(publication, { topic: reader.text(), qos, retain: retain === 1 });
  },
  5: (reader) => {
    const [client, number, endpoint, window, hasLogin] = [4, 4, 2, 2, 1].map((bytes) => reader.number(bytes));
    const [clientId, username, password] = [reader.text(), reader.text(), reader.text()];
    const connection = new Connection(client, number);
    connections.set(client, connection);
    connection.connect(begin.endpoints[endpoint], window, clientId, hasLogin ? { username, password } : {});
  },
  6: (reader) => {
    const names = `${reader.number(4)} ${reader.number(4)}`;
    const [number, qos] = [reader.number(2), reader.number(1)];
    const [filter, shared] = [reader.text(), reader.text()];
    if (!filters.has(names)) filters.set(names, []);
    filters.get(names).push([number, shared ? `$share/${shared}/${filter}` : filter, qos]);
  },
  7: (reader) => {
    const connection = of(reader);
    const [publication, sequence] = [reader.number(2), reader.number(4)];
    reader.at += 16;
    if (connection) connection.publish(publication, sequence, Buffer.from(reader.rest()));
  },
  8: (reader) => {
    const connection = of(reader);
    if (connection) connection.disconnect(reader.number(1));
  },
};

let input = Buffer.alloc(0);
pubmark.on('data', (piece) => {
  input = input.length ? Buffer.concat([input, piece]) : piece;
  let at = 0;
  pubmark.cork();
  while (input.length - at >= 4 && input.length - at >= 4 + input.readUInt32LE(at)) {
    const end = at + 4 + input.readUInt32LE(at);
    HANDLERS[input[at + 4]](new Reader(input.subarray(at + 5, end)));
    at = end;
  }
  pubmark.uncork();
  input = input.subarray(at);
});
pubmark.on('end', () => process.exit(0));
pubmark.on('error', () => process.exit(0));
say(0x81, Buffer.from(JSON.stringify(HELLO)));
