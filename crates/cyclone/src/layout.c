/* What the headers of Cyclone DDS say of the types that pubmark declares by hand: a line each. */
#include <stddef.h>
#include <stdio.h>

#include "dds/dds.h"
#include "message.h"

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))

int main(void) {
  SIZE(dds_topic_descriptor_t);
  FIELD(dds_topic_descriptor_t, m_typename);
  FIELD(dds_topic_descriptor_t, m_ops);
  FIELD(dds_topic_descriptor_t, type_information);
  FIELD(dds_topic_descriptor_t, restrict_data_representation);
  SIZE(dds_key_descriptor_t);
  SIZE(dds_sample_info_t);
  FIELD(dds_sample_info_t, valid_data);
  FIELD(dds_sample_info_t, source_timestamp);
  SIZE(dds_publication_matched_status_t);
  FIELD(dds_publication_matched_status_t, current_count);
  SIZE(dds_builtintopic_endpoint_t);
  FIELD(dds_builtintopic_endpoint_t, topic_name);
  SIZE(pubmark_Message);
  FIELD(pubmark_Message, payload);
  printf("constants %d %d %d %d %d %d\n", DDS_RETCODE_TIMEOUT, DDS_RELIABILITY_RELIABLE, DDS_HISTORY_KEEP_ALL,
         DDS_DURABILITY_TRANSIENT_LOCAL, DDS_LIVELINESS_AUTOMATIC, DDS_BUILTIN_TOPIC_DCPSPUBLICATION);
  for (uint32_t i = 0; i < 5; i++) printf("plain %08x\n", pubmark_Message_desc.m_ops[i]);
  for (uint32_t i = 0; i < 7; i++) printf("keyed %08x\n", pubmark_KeyedMessage_desc.m_ops[i]);
  printf("operations %u %u\n", pubmark_Message_desc.m_nops, pubmark_KeyedMessage_desc.m_nops);
  return 0;
}
