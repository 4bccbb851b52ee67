// A pubmark client program over eProsima Fast DDS 2.9 (Debian's libfastrtps-dev):
//
//   c++ -O2 -std=c++17 -o client clients/fastdds/client.cpp -lfastrtps -lfastcdr
//   pubmark run … --system dds --client ./client
//
// It speaks the type that pubmark's own DDS clients speak, `pubmark::Message` (topic, payload), one DDS topic for each topic of the
// workload. All clients of the process share one participant. A publisher is connected when each of its writers has found a reader, or
// after a second.
//
// `written` has the time at which the writer took the sample: it waits for nobody. Acknowledgements are all or none: Fast DDS 2.9 says
// only whether readers have all that a writer sent. They are asked for without waiting, and reported when that is so, which under a
// steady flow may be late; a reliable publisher is then held up by its window, and not by the system.
//
// It stands where PSMark has OpenDDS, which no package registry has. What differs from OpenDDS:
//   - discovery: RTPS over UDP with the loopback interface's address as initial peer; OpenDDS also has a repository server (DCPSInfoRepo);
//   - transport: UDP alone (Fast DDS would use shared memory between processes of one machine, OpenDDS TCP by default);
//   - threads: Fast DDS sends asynchronously from a thread of its own here (fragments need it), OpenDDS from the writing thread;
//   - type support: serialised by hand over Fast CDR, OpenDDS generates it from IDL.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fastrtps/config.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include "message.hpp"

static const int FIRST_PORT = 7400, PORTS_PER_DOMAIN = 250;
static const uint64_t MATCH_LIMIT_NS = 1000000000, LOOK_NS = 2000000;

static uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec);
}

// Frames to pubmark: fields in their order, written at once; readers call from threads of the library's.
static std::mutex output;

struct Out {
  std::vector<uint8_t> bytes;
  explicit Out(uint8_t kind) : bytes(4, 0) { bytes.push_back(kind); }
  template <typename T> Out &add(T value) {
    auto *at = reinterpret_cast<const uint8_t *>(&value);  // Little-endian, as x86-64 and ARM64 are.
    bytes.insert(bytes.end(), at, at + sizeof value);
    return *this;
  }
  Out &add_bytes(const void *data, size_t length) {
    auto *at = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), at, at + length);
    return *this;
  }
  void send() {
    uint32_t length = uint32_t(bytes.size() - 4);
    memcpy(bytes.data(), &length, 4);
    std::lock_guard<std::mutex> held(output);
    for (size_t at = 0; at < bytes.size();) {
      ssize_t written = write(1, bytes.data() + at, bytes.size() - at);
      if (written <= 0) _exit(1);
      at += size_t(written);
    }
  }
};

// Fields of a frame from pubmark; pubmark sends no short ones.
struct In {
  const uint8_t *at, *end;
  template <typename T> T take() {
    T value;
    if (size_t(end - at) < sizeof value) _exit(1);
    memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }
  std::string text() {
    auto length = take<uint16_t>();
    if (size_t(end - at) < length) _exit(1);
    std::string value(reinterpret_cast<const char *>(at), length);
    at += length;
    return value;
  }
};

using Names = std::pair<uint32_t, uint32_t>;

// DDS has letters, digits, `_` and `/` for names: other signs are `_` and two hexadecimal digits.
static std::string name_of(const std::string &topic) {
  std::string name = "pubmark_topic/";
  char code[4];
  for (unsigned char sign : topic) {
    if (isalnum(sign) || sign == '/') {
      name.push_back(char(sign));
    } else {
      snprintf(code, sizeof code, "_%02x", sign);
      name += code;
    }
  }
  return name;
}

// Threads of the library and `open` may call it at the same time. One of them then takes the samples of all, so that they are sent in the
// order in which they are taken. A mutex would not do: the library's threads hold the reader's lock, which `take_next_sample` needs.
struct Listener : DataReaderListener {
  Names names;
  std::atomic<unsigned> calls{0};
  void on_data_available(DataReader *reader) override {
    if (calls++ > 0) return;
    for (unsigned seen = 1; seen > 0; seen = calls -= seen) take(reader);
  }
  void take(DataReader *reader) {
    Message message;
    SampleInfo info;
    while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
      uint64_t stamp = now();
      if (!info.valid_data) continue;
      Out(0x8a).add(names.first).add(names.second).add(uint8_t(0)).add(stamp).add(uint32_t(message.payload.size()))
          .add_bytes(message.payload.data(), message.payload.size()).send();
    }
  }
};

struct Told {
  std::string topic;
  uint8_t qos;
};

struct Writing {
  DataWriter *writer;
  std::string topic;
  std::vector<uint32_t> unacknowledged;
};

struct Client {
  bool is_open = false;
  uint64_t until = 0;
  std::map<uint16_t, Writing> writers;
  std::vector<std::pair<DataReader *, std::unique_ptr<Listener>>> readers;
  std::vector<std::pair<uint16_t, uint8_t>> granted;
};

struct Filter {
  uint16_t number;
  uint8_t qos;
  std::string filter;
};

static DomainParticipant *participant;
static Publisher *publisher;
static Subscriber *subscriber;
static TypeSupport type(new MessageType());
static std::map<std::pair<uint32_t, uint16_t>, Told> told;
static std::map<Names, std::vector<Filter>> filters;
static std::map<Names, Client> clients;
static std::map<std::string, Topic *> topics;

static Topic *topic_of(const std::string &name) {
  Topic *&topic = topics[name];
  if (!topic) topic = participant->create_topic(name, type.get_type_name(), TOPIC_QOS_DEFAULT);
  return topic;
}

// The port says which domain: 7400 + 250 × its number.
static void open_participant(const std::string &begin) {
  auto at = begin.find("\"port\":");
  int port = at == std::string::npos ? FIRST_PORT : atoi(begin.c_str() + at + 7);
  DomainParticipantQos settings;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList.push_back("127.0.0.1");
  udp->receiveBufferSize = udp->sendBufferSize = 4 << 20;
  udp->maxInitialPeersRange = 20;
  settings.transport().use_builtin_transports = false;
  settings.transport().user_transports.push_back(udp);
  eprosima::fastrtps::rtps::Locator_t peer;
  eprosima::fastrtps::rtps::IPLocator::setIPv4(peer, 127, 0, 0, 1);
  settings.wire_protocol().builtin.initialPeersList.push_back(peer);
  int domain = (port - FIRST_PORT) / PORTS_PER_DOMAIN;
  participant = DomainParticipantFactory::get_instance()->create_participant(uint32_t(domain), settings);
  if (!participant) {
    fprintf(stderr, "no participant in domain %d\n", domain);
    _exit(1);
  }
  type.register_type(participant);
  publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
}

static void connect(Names names) {
  Client &client = clients[names];
  client.until = now() + MATCH_LIMIT_NS;
  auto memory = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  for (auto &filter : filters[names]) {
    if (filter.filter.find_first_of("+#") != std::string::npos) {
      client.granted.push_back({filter.number, 0x8f});
      continue;
    }
    DataReaderQos reading;
    reading.reliability().kind = filter.qos ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    reading.history().kind = KEEP_ALL_HISTORY_QOS;
    reading.endpoint().history_memory_policy = memory;
    auto listener = std::make_unique<Listener>();
    listener->names = names;
    DataReader *reader = subscriber->create_datareader(topic_of(name_of(filter.filter)), reading);
    client.readers.push_back({reader, std::move(listener)});
    client.granted.push_back({filter.number, filter.qos ? uint8_t(1) : uint8_t(0)});
  }
  filters.erase(names);
  for (auto entry = told.lower_bound({names.first, 0}); entry != told.end() && entry->first.first == names.first; ++entry) {
    DataWriterQos writing;
    writing.reliability().kind = entry->second.qos ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    writing.durability().kind = VOLATILE_DURABILITY_QOS;
    writing.history().kind = KEEP_ALL_HISTORY_QOS;
    writing.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
    writing.endpoint().history_memory_policy = memory;
    DataWriter *writer = publisher->create_datawriter(topic_of(name_of(entry->second.topic)), writing);
    client.writers[entry->first.second] = {writer, entry->second.topic, {}};
  }
}

static void open(Names names, Client &client) {
  client.is_open = true;
  Out(0x84).add(names.first).add(names.second).add(uint16_t(0)).add(uint32_t(0)).send();
  for (auto &[number, qos] : client.granted) {
    Out frame(0x86);
    frame.add(names.first).add(names.second).add(number).add(qos);
    if (qos >= 128) frame.add_bytes("no wildcards: one DDS topic for each filter", 43);
    frame.send();
  }
  // Nothing is delivered before it is connected.
  for (auto &[reader, listener] : client.readers) {
    reader->set_listener(listener.get(), StatusMask::data_available());
    listener->on_data_available(reader);
  }
}

static void disconnect(Names names) {
  auto found = clients.find(names);
  if (found == clients.end()) return;
  for (auto &[reader, listener] : found->second.readers) {
    reader->set_listener(nullptr);
    subscriber->delete_datareader(reader);
  }
  for (auto &[number, writing] : found->second.writers) publisher->delete_datawriter(writing.writer);
  clients.erase(found);
}

static void publish(Names names, In &in) {
  auto number = in.take<uint16_t>();
  auto sequence = in.take<uint32_t>();
  in.take<uint64_t>();
  in.take<uint64_t>();
  auto client = clients.find(names);
  bool is_written = false;
  if (client != clients.end() && client->second.is_open) {
    Writing &writing = client->second.writers[number];
    Message message{writing.topic, std::vector<uint8_t>(in.at, in.end)};
    is_written = writing.writer && writing.writer->write(&message);
    if (is_written && told[{names.first, number}].qos) writing.unacknowledged.push_back(sequence);
  }
  Out frame(is_written ? 0x87 : 0x88);
  frame.add(names.first).add(names.second).add(number).add(sequence);
  if (is_written) frame.add(now());
  frame.send();
}

// What the library does not tell by itself: who has matched, what is acknowledged.
static void look() {
  for (auto &[names, client] : clients) {
    if (!client.is_open) {
      bool matched = true;
      for (auto &[number, writing] : client.writers) {
        PublicationMatchedStatus status;
        writing.writer->get_publication_matched_status(status);
        matched = matched && status.current_count > 0;
      }
      if (matched || now() > client.until) open(names, client);
    }
    for (auto &[number, writing] : client.writers) {
      if (writing.unacknowledged.empty()) continue;
      if (writing.writer->wait_for_acknowledgments({0, 0}) != ReturnCode_t::RETCODE_OK) continue;
      for (uint32_t sequence : writing.unacknowledged)
        Out(0x89).add(names.first).add(names.second).add(number).add(sequence).add(uint8_t(0)).send();
      writing.unacknowledged.clear();
    }
  }
}

static void handle(uint8_t kind, In in) {
  if (kind == 1) return open_participant(std::string(in.at, in.end));
  if (kind == 2) {
    auto number = in.take<uint64_t>();
    Out(0x82).add(number).add(now()).send();
    return;
  }
  if (kind == 3) _exit(0);
  auto client = in.take<uint32_t>();
  if (kind == 4) {
    auto publication = in.take<uint16_t>();
    auto qos = in.take<uint8_t>();
    in.take<uint8_t>();
    told[{client, publication}] = {in.text(), qos};
    return;
  }
  Names names{client, in.take<uint32_t>()};
  if (kind == 5) connect(names);
  if (kind == 6) {
    auto number = in.take<uint16_t>();
    auto qos = in.take<uint8_t>();
    filters[names].push_back({number, qos, in.text()});
  }
  if (kind == 7) publish(names, in);
  if (kind == 8) disconnect(names);
}

int main() {
  static const char HELLO[] =
      "{\"versions\":[1],\"name\":\"Fast DDS\",\"version\":\"" FASTRTPS_VERSION_STR "\",\"stamps\":true,"
      "\"protocols\":[{\"name\":\"dds\",\"qos\":[0,1]}]}";
  Out(0x81).add_bytes(HELLO, sizeof HELLO - 1).send();
  std::vector<uint8_t> input;
  std::vector<uint8_t> piece(1 << 18);
  for (uint64_t looked = 0;;) {
    pollfd ready{0, POLLIN, 0};
    if (poll(&ready, 1, 2) > 0) {
      ssize_t bytes = read(0, piece.data(), piece.size());
      if (bytes <= 0) _exit(0);
      input.insert(input.end(), piece.begin(), piece.begin() + bytes);
      size_t at = 0;
      uint32_t length;
      while (input.size() - at >= 4 && (memcpy(&length, input.data() + at, 4), input.size() - at >= 4 + size_t(length))) {
        handle(input[at + 4], In{input.data() + at + 5, input.data() + at + 4 + length});
        at += 4 + length;
      }
      input.erase(input.begin(), input.begin() + long(at));
    }
    if (uint64_t time = now(); time - looked > LOOK_NS) {
      looked = time;
      look();
    }
  }
}
