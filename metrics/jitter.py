#!/usr/bin/env python3
"""Interarrival jitter (RFC 3550, section 6.4.1) of each publisher at each subscriber, in ms.

    pubmark run WORKLOAD --metric 'jitter:ms=python3 metrics/jitter.py'

For two messages one after the other, D is the difference of their latencies; J += (|D| - J) / 16. The value is the mean of the last J
over all pairs of a publisher and a subscriber. A latency is an interval, and so is |D|, and so is J.
"""

import json
import sys
from collections import defaultdict

streams = defaultdict(list)
for line in sys.stdin:
    row = json.loads(line)
    if row["outcome"] == "delivered":
        stream = (row["publisher"], row["subscriber"], row["type"])
        streams[stream].append((row["received_ns"], row["latency_lower_ns"], row["latency_upper_ns"]))


def jitter_ms(messages):
    """Both bounds of J after the last message; None for a stream of one."""
    if len(messages) < 2:
        return None
    messages.sort()
    lower = upper = 0.0
    for (_, low_before, high_before), (_, low, high) in zip(messages, messages[1:]):
        least = max(0, low - high_before, low_before - high)
        most = max(high - low_before, high_before - low)
        lower += (least - lower) / 16
        upper += (most - upper) / 16
    return lower / 1e6, upper / 1e6


def mean(bounds):
    return {"lower": sum(low for low, _ in bounds) / len(bounds), "upper": sum(high for _, high in bounds) / len(bounds)}


everything, by_type = [], defaultdict(list)
for (_, _, device_type), messages in streams.items():
    bounds = jitter_ms(messages)
    if bounds:
        everything.append(bounds)
        by_type[device_type].append(bounds)

if everything:
    value = mean(everything) | {"by": {device_type: mean(bounds) for device_type, bounds in sorted(by_type.items())}}
else:
    value = None
print(json.dumps({"jitter": value}))
