#!/usr/bin/env python3
"""Mean age of information (Kaul, Yates, Gruteser: Real-time status: how often should one update?, INFOCOM 2012), in ms.

    pubmark run WORKLOAD --metric 'age:ms=python3 metrics/age_of_information.py'

How old the newest value of a publisher is that a subscriber has, from its due time on, as a mean over time: between two deliveries
the age grows with time, and a delivery that is newer takes it back to that message's latency. A message that overtakes others makes
these older ones useless. Each pair of a publisher and a subscriber counts by the time between its first and its last delivery.
"""

import json
import sys
from collections import defaultdict

streams = defaultdict(list)
for line in sys.stdin:
    row = json.loads(line)
    if row["outcome"] == "delivered":
        stream = (row["publisher"], row["subscriber"], row["type"])
        streams[stream].append((row["received_ns"], row["due_ns"]))


def age(deliveries):
    """Area below the age, ns², and how long it was observed, ns."""
    deliveries.sort()
    area, newest = 0.0, deliveries[0][1]
    for (since, due), (until, _) in zip(deliveries, deliveries[1:]):
        newest = max(newest, due)
        area += ((until - newest) ** 2 - (since - newest) ** 2) / 2
    return area, deliveries[-1][0] - deliveries[0][0]


whole, by_type = [0.0, 0], defaultdict(lambda: [0.0, 0])
for (_, _, device_type), deliveries in streams.items():
    area, time = age(deliveries)
    for total in (whole, by_type[device_type]):
        total[0] += area
        total[1] += time


def mean_ms(total):
    return total[0] / total[1] / 1e6


value = None
if whole[1] > 0:
    parts = {device_type: mean_ms(total) for device_type, total in sorted(by_type.items()) if total[1] > 0}
    value = {"value": mean_ms(whole), "by": parts}
print(json.dumps({"age": value}))
