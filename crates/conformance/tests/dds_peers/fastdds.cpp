// Echoes samples by Fast DDS: what comes on one topic goes out on another, or the same, marked as ECHO.
// Arguments: domain, "plain", topic in, topic out, "reliable" or "best-effort". Ends with its standard input.
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include "../../../../clients/fastdds/message.hpp"

static const char *ECHO = "echo/back";

int main(int count, char **arguments) {
  if (count != 6) return 2;
  if (strcmp(arguments[2], "plain")) return 2;
  bool reliable = !strcmp(arguments[5], "reliable");
  DomainParticipantQos settings;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList.push_back("127.0.0.1");
  udp->receiveBufferSize = udp->sendBufferSize = 4 << 20;
  settings.transport().use_builtin_transports = false;
  settings.transport().user_transports.push_back(udp);
  auto *participant = DomainParticipantFactory::get_instance()->create_participant(atoi(arguments[1]), settings);
  if (!participant) return 1;
  TypeSupport type(new MessageType());
  type.register_type(participant);
  auto *in = participant->create_topic(arguments[3], type.get_type_name(), TOPIC_QOS_DEFAULT);
  auto *out = participant->create_topic(arguments[4], type.get_type_name(), TOPIC_QOS_DEFAULT);
  DataWriterQos writing;
  DataReaderQos reading;
  auto kind = reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  writing.reliability().kind = reading.reliability().kind = kind;
  writing.durability().kind = reading.durability().kind = VOLATILE_DURABILITY_QOS;
  writing.history().kind = reading.history().kind = KEEP_ALL_HISTORY_QOS;
  writing.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
  writing.endpoint().history_memory_policy = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  reading.endpoint().history_memory_policy = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  auto *writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)->create_datawriter(out, writing);
  auto *reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)->create_datareader(in, reading);
  if (!writer || !reader) return 1;
  puts("ready");
  fflush(stdout);
  pollfd input{0, POLLIN, 0};
  while (poll(&input, 1, 1) == 0) {
    Message message;
    SampleInfo info;
    while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK)
      if (info.valid_data && message.topic != ECHO) {
        message.topic = ECHO;
        writer->write(&message);
      }
  }
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
  return 0;
}
