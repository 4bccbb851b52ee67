// `pubmark::Message` for eProsima Fast DDS 2.9: what pubmark's own DDS clients send and receive (crates/cyclone/message.idl), serialised by
// hand over Fast CDR.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/topic/TopicDataType.hpp>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

struct Message {
  std::string topic;
  std::vector<uint8_t> payload;
};

struct MessageType : TopicDataType {
  MessageType() {
    setName("pubmark::Message");
    m_typeSize = 4 << 20;
    m_isGetKeyDefined = false;
  }
  bool serialize(void *data, SerializedPayload_t *out) override {
    auto *message = static_cast<Message *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(out->data), out->max_size);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN, eprosima::fastcdr::Cdr::DDS_CDR);
    out->encapsulation = cdr.endianness() == eprosima::fastcdr::Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    cdr.serialize_encapsulation();
    cdr << message->topic << message->payload;
    out->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }
  bool deserialize(SerializedPayload_t *in, void *data) override {
    auto *message = static_cast<Message *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(in->data), in->length);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN, eprosima::fastcdr::Cdr::DDS_CDR);
    cdr.read_encapsulation();
    cdr >> message->topic >> message->payload;
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    auto *message = static_cast<Message *>(data);
    return [message] { return static_cast<uint32_t>(32 + message->topic.size() + message->payload.size()); };
  }
  void *createData() override { return new Message(); }
  void deleteData(void *data) override { delete static_cast<Message *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};
