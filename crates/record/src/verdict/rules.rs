//! The rules of the verdict, in the order in which they are applied and shown. A new rule is a function and a row here.

use super::usable::Spoils;
use super::{
    Finding, VerdictInput, books, client_programs, connections, content, faults, generator, links, nodes, pairs,
    requests, samples, steal, subscriptions, system,
};
use crate::codes::Page;
use crate::experiment::FailureKind;

/// Cause of a violated rule. If several rules are violated, the cause that comes first here decides: it may have caused
/// the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// pubmark was too slow: the run is generator-limited.
    Generator,
    /// The machine had no spare CPU: the result shows the limit of the machine, not of the system.
    Machine,
    /// A node or a client program was lost, and its clients with it.
    Clients,
    /// The system failed, in this way: the failure is a result, and a repetition would hide it.
    System(FailureKind),
    /// The accounting, a requested condition, or a cause that the rule cannot tell.
    Run,
}

/// A rule of the verdict.
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// What is checked, in a few words that describe a kept rule.
    pub name: &'static str,
    /// What the rule checks and why it matters, with its limits.
    pub meaning: &'static str,
    /// What to do if it is violated.
    pub remedy: &'static str,
    /// Cause of a violation. V31 blames the system only for its own answers ([`crate::connections::Connections::is_refused`]).
    pub blames: Blame,
    /// Which figures must not be used if the rule makes a run invalid.
    pub spoils: Spoils,
    /// The check; `None` where the rule does not concern the run.
    pub judge: fn(&VerdictInput) -> Option<Finding>,
}

impl Rule {
    /// The page for readers.
    pub fn page(&self) -> Page {
        let spoils = self.spoils.words();
        Page { code: self.code, title: self.name, meaning: self.meaning, spoils, remedy: self.remedy }
    }
}

/// Cause of a violation of the rule with this code; [`Blame::Run`] for a rule of another version.
pub fn blame(code: &str) -> Blame {
    RULES.iter().find(|rule| rule.code == code).map_or(Blame::Run, |rule| rule.blames)
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        code: "V01",
        name: "load as scheduled",
        meaning: "Scheduler lag is the time from a message's due time until pubmark processes it. The lower bound of the \
                  latency excludes it, so lag widens intervals and makes no figure wrong. But late messages are sent in a \
                  burst, which real devices do not send, and the cost of the burst is part of both bounds. If 99 % of the \
                  messages were processed within 10 ms, the load was as scheduled. Otherwise the run is suspect. Above 1 % of \
                  the measured window, or above 100 ms, it is invalid: the generator was the limit. The lag of a responder (the \
                  time by which pubmark sent a reply late) has the same limits. With too few samples for a p99, the rule uses \
                  p95, p90 or the largest sample. A full in-flight window or a full socket is back-pressure of the system and \
                  never counts here. Until 0.1 this rule was called `schedule kept`, and more than 0.5 ms or 50 % of the \
                  latency's p99 made a run invalid.",
        remedy: "Use `--realtime`, more `--shards`, a lower rate, or a machine with free cores; stop other programs. \
                 `pubmark doctor` checks the machine.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::load_as_scheduled,
    },
    Rule {
        code: "V02",
        name: "messages read in time",
        meaning: "Receive lateness is an upper bound of the time that a message lay in the socket of pubmark before it was \
                  read: the time of the read minus the latest of the previous read that emptied the socket, the beginning of its \
                  write, and the kernel's receive time stamp if it belongs to this message. The lower bound of the latency excludes it. \
                  But a message that is read late is counted in a later part of the window, and a full socket makes the system \
                  wait or drop messages. The limits are those of V01: 10 ms for 99 % of the messages; above 1 % of the window \
                  or 100 ms the run is invalid. It is invalid as well if messages are missing and pubmark itself dropped some \
                  of what had arrived (`delivery.own_drops`), in a flood too: its queue behind a client library was full, more \
                  samples waited than a DDS reader's depth (RustDDS), or the buffer of a UDP socket was full (CoAP). If the kernel \
                  dropped datagrams in a socket of a client library (DDS, Zenoh) and messages are missing, it is suspect: the dropped \
                  datagrams may be copies of messages that arrived. With Zenoh and with client \
                  programs, receive lateness is unknown, and lower bounds end with the write: they are 0 unless the device or the \
                  system delayed it. With DDS it is the time since a check that found the reader empty, or 0 where each sample is taken \
                  as it arrives; what waits in the library's sockets, for instance while the whole process is stopped, is not in it. \
                  Until 0.1 this rule was called `reads in time`, and more than 0.5 ms or 50 % of the latency's p99 made a run invalid.",
        remedy: "Give the receivers more threads with `--shards`, lower the rate, or use a machine with free cores.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::read_in_time,
    },
    Rule {
        code: "V04",
        name: "threads not saturated",
        meaning: "In a flood, a thread of pubmark that is always busy measures its own speed. Its CPU time over the measured \
                  window may be 80 % of a core; up to 95 % the run is suspect, above that it is invalid. Threads of a client library \
                  (Zenoh, DDS) or of a client program are not measured one by one: above 80 % of a core for all of them together, \
                  or if that is unknown, the run is suspect, because one of them may be the limit. If messages have due \
                  times, V01 and V02 measure the delays that a busy thread causes; above 95 % of a core the run is suspect.",
        remedy: "Spread the load over more threads with `--shards`, or lower the rate.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::threads_not_saturated,
    },
    Rule {
        code: "V05",
        name: "real-time scheduling leaves room",
        meaning: "With `--realtime` the threads of pubmark run before all others (SCHED_FIFO). On machines with up to 4 cores, and \
                  where a system that the run started inherited the same cores and these are 4 at most (`taskset`, a CPU set), \
                  they have a budget: together half a core in each period of 10 ms. A thread that has used its part of the \
                  budget runs with ordinary priority until the next period (`cost.threads[].ordinary_share`). Threads that are \
                  pinned to some of the cores (`--pin`) have no budget. V28 checks whether the system had enough CPU. In \
                  records from before the budget existed, more than half a core on up to 4 cores is suspect.",
        remedy: "Run without `--realtime`, at a lower rate, or on a machine with more cores.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::realtime_leaves_room,
    },
    Rule {
        code: "V06",
        name: "CPU not stolen",
        meaning: "On a virtual machine the hypervisor may run other guests on the processor (steal time). Above 5 % of the CPU \
                  time of the measured window, the figures of the system and of pubmark contain delays that neither of them \
                  caused: suspect. Each machine with clients or the system is measured: this one, those of the nodes, and the \
                  system's if an observer, the node that started it or a node_exporter (`--node-exporter`) reports it. A \
                  coordinator without clients is left out if the system is known to run elsewhere. Machines above the limit \
                  are named, each with its own steal time, otherwise the one with most; those of which it is not known are \
                  named, and not checked.",
        remedy: "Run again when the host is less busy, or on a dedicated machine.",
        blames: Blame::Machine,
        spoils: Spoils::Everything,
        judge: steal::cpu_not_stolen,
    },
    Rule {
        code: "V07",
        name: "accounting of sending closes",
        meaning: "Every message due in the measured window was sent, skipped because its device was planned to be offline, \
                  skipped because its connection was lost, refused, or still waiting at the end. If these counts do not add up \
                  to the offered messages, the run is invalid.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::sending_closes,
    },
    Rule {
        code: "V08",
        name: "accounting of delivery closes",
        meaning: "Every message sent was expected once for each subscription that held a session at that time, and was \
                  delivered, lost, or unknown (its connection ended before the acknowledgement). If these counts do not add up \
                  to the expected messages, the run is invalid.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::delivery_closes,
    },
    Rule {
        code: "V09",
        name: "device types add up",
        meaning: "The messages of the device types must add up to those of the run. If they do not, the run is invalid.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::types_add_up,
    },
    Rule {
        code: "V10",
        name: "accounting exact",
        meaning: "Missing messages are stored as ranges, and the memory for them is limited. Beyond the limit a late message \
                  cannot be distinguished from a duplicate, so the counts of lost, late and duplicated messages may be wrong: \
                  suspect. The memory for the times at which messages were sent is limited as well: over nodes, to 8 million \
                  ticks of 10 ms with messages for all publishers of a shard together; on one machine, to as many begins and ends \
                  of absences, counted for each publisher that sends after them. Beyond that limit messages lost near the \
                  absence of a subscriber may count as absent: suspect if any message is absent.",
        remedy: "Lower the rate or the number of streams until fewer messages are missing; with absences, shorten the run or use \
                 more shards or nodes.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::exact,
    },
    Rule {
        code: "V11",
        name: "clocks agree",
        meaning: "A latency below zero is impossible: the clocks that it was computed from disagree. Such samples are counted \
                  as 0 and never dropped. One of them makes the run suspect, more than 1 % make it invalid.",
        remedy: "Check the clocks of the machines with `pubmark doctor`.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: samples::clocks_agree,
    },
    Rule {
        code: "V12",
        name: "samples fit",
        meaning: "Samples above the range of a histogram (1 h) are counted as its largest value, so the printed upper bound \
                  would be wrong: invalid. Until 0.1 such a run was suspect.",
        remedy: "Lower the rate, or find out why messages take longer than an hour.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: samples::samples_fit,
    },
    Rule {
        code: "V13",
        name: "something was measured",
        meaning: "A run in which no message was due, sent or expected measured nothing and is invalid. Few samples alone do \
                  not make a run suspect: a percentile with fewer than 10 samples beyond it is not printed, and V01 and V02 use \
                  p95, p90 or the largest sample instead. Messages that arrived without a latency are judged by V26.",
        remedy: "Run longer with `--duration`, and look at the causes of refused connections and subscriptions.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: samples::enough_was_measured,
    },
    Rule {
        code: "V14",
        name: "ran to its end",
        meaning: "The record of an interrupted run contains what was measured before the interruption. Its window is shorter \
                  than requested, and its drain may be incomplete: suspect.",
        remedy: "Run again without an interruption.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: samples::came_to_its_end,
    },
    Rule {
        code: "V16",
        name: "accounting of requests closes",
        meaning: "Every request sent was answered in time, answered late, given up, or unknown (the connection of its requester \
                  or the run ended first). Every request that a responder received was answered, dropped, refused or still \
                  waiting at the end. If these counts do not add up, the run is invalid; if the limit of their memory was \
                  reached, suspect.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: requests::books_close,
    },
    Rule {
        code: "V17",
        name: "links as configured",
        meaning: "Before the run, probes measure each emulated link: the mean delay may differ by 2 % + 50 µs, the rate by 1 %, \
                  and the loss must lie in the 99 % interval of its binomial distribution. A link that differs more makes the \
                  run suspect. The record names what probes do not measure: what takes longer, the width of jitter, \
                  reordering, the length of bursts, and the later steps of a link that changes.",
        remedy: "Run again. If it happens again, use a machine with free cores. `pubmark doctor` checks the machine.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: links::as_requested,
    },
    Rule {
        code: "V18",
        name: "emulator kept up",
        meaning: "A packet that the kernel dropped on its way to the emulator, that found a full queue of the emulator, or that \
                  the relay to a system dropped or the trunk between nodes lost, is a loss that the link does not have: one makes \
                  the run invalid, and so does a connection for which the relay had no descriptor or port. An \
                  emulator that ends by itself (on a node: found at the end), or a relay that ends or does not respond for 3 s, \
                  ends the run, which is invalid; what was measured until then remains. A process that does not report its end \
                  of the trunk makes the run invalid, too. The trunk numbers its packets, and only a later one shows that \
                  one is missing: what was lost on a way that broke is the difference of the packets that were sent \
                  and received in the window. More than 1 % makes the run invalid, if it is also more than 1,000 packets or half of \
                  those sent: fewer may be under way at the edges of the window. A packet \
                  that the emulator forwarded too late adds to the latency, as the generator's own lag does. The p99 of this delay \
                  may be 0.1 ms or 10 % of the latency's p99, whichever is more; up to 0.5 ms or 50 % the run is suspect, above \
                  that it is invalid. In a flood, and without a latency, the times alone are the limits. How long packets waited \
                  for the emulator to read them is shown beside it, as an upper bound, and not judged.",
        remedy: "Use fewer or larger messages, a machine with free cores, or root for real-time priority; for connections, raise \
                 `ulimit -Hn`.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: links::kept_up,
    },
    Rule {
        code: "V19",
        name: "lost, not late",
        meaning: "A message that has not arrived at the end of the drain is counted as lost. If bytes are still in transit at \
                  that time, in the sockets of pubmark or of the system, in the relay from emulated links to a system, or on the \
                  links, TCP is retransmitting them, their receiver has not read them or a queue holds them, and some of \
                  those messages are late, not lost: suspect. The same applies to messages that a \
                  subscriber is still processing (`processing`), and to a system whose threads waited for a CPU for more than a \
                  quarter of the drain: silence does not end the drain while they wait, nor while the system has not read what \
                  was sent to it. It applies to the messages that the system may have stored for subscribers with persistent \
                  sessions that had lost their connection and were not connected again. What was sent to a connection \
                  that the fault `cut` had silenced is lost, not late, and its bytes in the system's sockets do not count. The \
                  sockets of a system that this run did not start cannot be examined.",
        remedy: "Give late messages more time with `--drain`, or lower the rate.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::lost_not_late,
    },
    Rule {
        code: "V20",
        name: "faults as configured",
        meaning: "Each fault was injected at most 0.5 s late and was ended at most 0.5 s late. A fault that failed, came later, \
                  or did not end makes the run invalid, because it is not the run that was requested. One that ended later makes \
                  it suspect: an engine may take seconds to start a container again. So does a kill that may have taken effect \
                  later, because the engine's command took long. When a `restart` ends is not judged: how \
                  long a system needs to end when it is asked to is its own. If connections had more events than are recorded \
                  (1,048,576 for each shard), their figures are too low and the run is suspect. The same applies if more sessions \
                  ended than are recorded: losses with a session may then be too high. The effects of a fault on the \
                  system, its messages and its clients are results, and never a reason for a verdict.",
        remedy: "Run again. If the system did not start again, see its log.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: faults::done_as_requested,
    },
    Rule {
        code: "V21",
        name: "all nodes present",
        meaning: "The measurements of a node or worker process are lost if it ends, freezes or is disconnected. The load then lacks \
                  the messages of its devices, so the run is invalid. The record keeps the measurements of the others. \
                  A worker counts as frozen if its heartbeat, which has its own thread, is missing for 3 s.",
        remedy: "Run again with all nodes. The output of the lost node contains the reason for its end.",
        blames: Blame::Clients,
        spoils: Spoils::Everything,
        judge: nodes::all_present,
    },
    Rule {
        code: "V22",
        name: "clocks of nodes have a bound",
        meaning: "A latency between two machines contains the error of their clocks. A bound of this error is measured, and \
                  both bounds of the latency are widened by it. If a clock jumped there is no bound, and the run is invalid. \
                  Until 0.1 this rule was called `clocks of nodes` and compared the bound with the latency's p50.",
        remedy: "Nothing may set `CLOCK_MONOTONIC_RAW` back during a run: do not suspend or migrate the machines.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: nodes::clocks,
    },
    Rule {
        code: "V23",
        name: "subscriptions granted",
        meaning: "No message is expected for a filter that the system refused, or from the moment on at which it revoked \
                  the filter on an open connection. If that concerns some filters, fewer messages were delivered than the \
                  workload requires, and the run is suspect. If it concerns all messages, nothing was received: the run \
                  is invalid. The reason shown is the system's.",
        remedy: "Check the system's access rules, the credentials of the subscribers (`--user`), and who deletes its queues or \
                 streams.",
        blames: Blame::System(FailureKind::Refused),
        spoils: Spoils::Everything,
        judge: subscriptions::granted,
    },
    Rule {
        code: "V24",
        name: "every pair met",
        meaning: "Without a broker, clients discover each other. A writer and a reader that never matched look like a pair \
                  whose messages were lost. A pair never met if a message was expected (the writer sent it while the reader was \
                  present) and none arrived, not even in the warm-up, unless the loss between the other pairs makes one such \
                  pair likely in a hundred runs. Such a pair makes the run invalid; in a run with faults, which may separate \
                  two clients, suspect.",
        remedy: "Use a longer `--warmup`, so that clients have time to discover each other. On several machines: a network that \
                 lets their packets through, or `pubmark node --address IP` with an address that the other nodes can reach; or \
                 run all clients on one machine.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: pairs::met,
    },
    Rule {
        code: "V25",
        name: "system running to the end",
        meaning: "If a broker exits, is ended by a signal or is OOM-killed, its messages and connections are lost, and later \
                  figures measure its absence: the run is invalid. The record says how and when it ended (`system.ended`). \
                  Planned faults do not count. A system that this run did not start counts as ended if every connection was \
                  lost and none could be made again until the end; anything else that happens to it is unknown.",
        remedy: "Read the end of the system's log, which the run printed. If it was OOM-killed, use a higher `--limit memory=` \
                 or a lower load.",
        blames: Blame::System(FailureKind::Ended),
        spoils: Spoils::Everything,
        judge: system::ran_to_the_end,
    },
    Rule {
        code: "V26",
        name: "samples are deliveries",
        meaning: "Each delivery in the accounting has one latency, and each latency belongs to one delivery. A peer can send \
                  messages which no publisher sent (a broker that invents sequence numbers). If publisher and subscriber run in \
                  one process, such a message is recognised on arrival, counted as foreign, and is in no other figure. Otherwise \
                  (`--isolate`, several nodes) it is recognised only after the run: by then it is in latency, rate and series, and may \
                  have triggered reactions and replies. One of them makes the run invalid (`delivery.never_sent`), and so do more \
                  latencies than deliveries. A peer can also change the due time that a message carries. If it is then \
                  outside the window, the delivery has no latency. One such delivery makes the run suspect, more than 1 % of \
                  them make it invalid. A due time that is changed within the window is noticed by an audit after the run: of each \
                  thread of pubmark up to 256 deliveries, drawn at random, are compared with the schedule, and one that carried \
                  another due time makes the run invalid (`delivery.due_times`). Floods, reactions and replies have no schedule \
                  and are not audited.",
        remedy: "Find out what else publishes to these topics, or how the system changes messages.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: samples::are_deliveries,
    },
    Rule {
        code: "V27",
        name: "offered as scheduled",
        meaning: "The offered messages are a property of the schedule, however late pubmark is: every message due in the window \
                  is offered, and those that were not sent are unsent. The messages of the window are counted a second time \
                  from the schedule itself; if the two counts differ, the run is invalid. The rule does not apply to reactions, \
                  which have no schedule, to interrupted runs, to runs that lost a node, and to floods.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::offered_as_scheduled,
    },
    Rule {
        code: "V28",
        name: "system had the CPU it wanted",
        meaning: "A system that does not get the CPU does not show what it can do. The kernel counts how long each thread was \
                  ready to run and did not run (run-queue wait). A few microseconds for each wake-up are ordinary and not \
                  judged. A long wait is an interval of about 4 ms in which a thread waited at least half a millisecond more \
                  than usual. Of the long waits, the rule counts what other programs can have caused: at most the CPU time of \
                  all others on the machine, without the waits that a requested CPU limit caused. If this is at least 1 % of \
                  the window, so that p99 is affected, and more than 10 % of the time in which the system was ready (wait / \
                  (wait + CPU time)), the run is suspect. It is invalid if messages are missing, were not sent, were refused or had \
                  no connection, or if requests had no reply in time: a system without CPU drops connections and answers late. \
                  Planned absences, messages that are too large and what faults of the run did to connections do not count. If every \
                  core of the machine was busy, short waits count too: above 5 % of the window and a quarter of the time in \
                  which the system was ready. A flood, in which messages are always missing, is suspect at most. \
                  In an experiment suspect runs count and invalid ones do not: where one cell has both, a caution says that the \
                  runs that the system survived represent the others. The finding names who used the CPU: other programs, \
                  pubmark, or the hypervisor. Only a system that runs on this machine, \
                  started by this run or observed by a node, can be examined. Until 0.1 this rule was called `system had \
                  processors`, judged the sum of all waits, and required missing messages.",
        remedy: "Stop other programs, give the system cores of its own (`--pin`), run without `--realtime`, lower the rate, or let \
                 another machine send (`--nodes`).",
        blames: Blame::Machine,
        spoils: Spoils::Everything,
        judge: system::had_the_cpu,
    },
    Rule {
        code: "V29",
        name: "client program reported correctly",
        meaning: "With `--client` a program of the user is the client. If it ended, stalled for 10 s, or violated the client \
                  program protocol, all its clients were disconnected from then on: the run is invalid. Reports that cannot be \
                  true (a message that the program never received from pubmark, a stamp in the future) are counted by name and \
                  not used. If there are more of them than one in a thousand messages, the run is invalid, otherwise suspect.",
        remedy: "See `connections.client_programs` in the record, and docs/reference/client-protocol.md.",
        blames: Blame::Clients,
        spoils: Spoils::Everything,
        judge: client_programs::reported_correctly,
    },
    Rule {
        code: "V30",
        name: "content filters consistent",
        meaning: "Subscribers with `where` evaluate their predicate for each message that they receive. Publishers evaluate it \
                  for each message that they build, and store the result by sequence number. For each group and each of its \
                  subscribers (`delivery.content[].differing_subscribers`), the number of matching messages must be that of the \
                  publishers, and matching and filtered messages together must be all messages that arrived. If not, the system \
                  changed payloads, or pubmark is wrong: the run is invalid. If the results of the publishers are not known for \
                  all messages (more than half a billion on a thread, approximate message accounting), the run is suspect. A \
                  run whose system accepted a filter (`at: broker`) and delivered messages that do not match it is suspect too.",
        remedy: "Find out how the system changes payloads. If it changes none, please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: content::filters_consistent,
    },
    Rule {
        code: "V31",
        name: "clients connected",
        meaning: "A client that should be connected and never was sends nothing, and nothing is expected for it: the load is \
                  smaller than the scheduled one, and a system that refuses clients would look better than one that serves \
                  them. With such a client the run is suspect; if they are more than 1 % of all clients, it is invalid. It is a \
                  failure of the system if the most frequent cause is a refusal or an end of the connection by the system; with \
                  another cause, such as a missing route or too few ports or open files here, the system is not judged by it. \
                  Clients that lose their connection later are not counted: their messages are `skipped_disconnected`. Records \
                  from before this rule have no count and are not judged.",
        remedy: "The most frequent cause is in the finding, all of them are in the report (*Connections*). Correct addresses, \
                 log-ins or limits of the system, or run with fewer clients.",
        blames: Blame::System(FailureKind::Refused),
        spoils: Spoils::Everything,
        judge: connections::clients_connected,
    },
];

/// A rule that no longer exists.
pub struct Retired {
    /// Its code, which is not reused.
    pub code: &'static str,
    /// What it checked.
    pub name: &'static str,
    /// What it did, and what replaces it.
    pub history: &'static str,
}

impl Retired {
    /// The page for readers.
    pub fn page(&self) -> Page {
        let remedy = "Nothing: records made since do not have it.";
        Page { code: self.code, title: self.name, meaning: self.history, spoils: "", remedy }
    }
}

/// Retired rules, which older records may name.
pub const RETIRED: &[Retired] = &[
    Retired {
        code: "V03",
        name: "tail is the system's (retired)",
        history: "Until 0.1 a run was suspect when p99.9 of scheduler lag or receive lateness was above 0.5 ms and above half the \
                  latency's p99.9, or the largest of them above 10 ms and above half the largest latency. Each latency is an \
                  interval now: what pubmark added to the tail is the width of p99.9 and max.",
    },
    Retired {
        code: "V15",
        name: "round trip is the system's (retired)",
        history: "Until 0.1 the p99 of pubmark's four parts of a round trip were added and held against the round trip's p99. The \
                  round trip is an interval now, its lower bound without these parts. The responder's lag is in V01, the lateness \
                  in reading replies in V02.",
    },
];
