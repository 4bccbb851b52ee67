/* Echoes samples by Cyclone DDS, with types that its own IDL compiler made: what comes on one topic goes out on another, or the
   same, marked as ECHO.
   Arguments: domain, "plain" or "keyed", topic in, topic out, "reliable" or "best-effort". Ends with its standard input. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "message.h"

static char ECHO[] = "echo/back";

static dds_entity_t checked(dds_entity_t entity, const char *what) {
  if (entity < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(entity));
    exit(1);
  }
  return entity;
}

int main(int count, char **arguments) {
  if (count != 6) return 2;
  int keyed = strcmp(arguments[2], "keyed") == 0, reliable = strcmp(arguments[5], "reliable") == 0;
  const dds_topic_descriptor_t *type = keyed ? &pubmark_KeyedMessage_desc : &pubmark_Message_desc;
  dds_entity_t participant = checked(dds_create_participant((dds_domainid_t)atoi(arguments[1]), NULL, NULL), "participant");
  dds_entity_t in = checked(dds_create_topic(participant, type, arguments[3], NULL, NULL), "topic");
  dds_entity_t out = checked(dds_create_topic(participant, type, arguments[4], NULL, NULL), "topic");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_SECS(1));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t writer = checked(dds_create_writer(participant, out, qos, NULL), "writer");
  dds_entity_t reader = checked(dds_create_reader(participant, in, qos, NULL), "reader");
  puts("ready");
  fflush(stdout);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (poll(&input, 1, 1) == 0) {
    void *samples[16] = {NULL};
    dds_sample_info_t infos[16];
    int taken = dds_take(reader, samples, infos, 16, 16);
    for (int i = 0; i < taken; i++) {
      /* Both types have the same struct. */
      pubmark_Message *message = samples[i];
      if (!infos[i].valid_data || strcmp(message->topic, ECHO) == 0) continue;
      pubmark_Message back = {.topic = ECHO, .payload = message->payload};
      back.payload._release = false;
      checked(dds_write(writer, &back), "write");
    }
    if (taken > 0) dds_return_loan(reader, samples, taken);
  }
  return dds_delete(participant) == 0 ? 0 : 1;
}
