//! The rules of the verdict, in the order in which they are applied and shown. A new rule is a function and a row here.

use super::usable::Spoils;
use super::{
    Finding, VerdictInput, books, client_programs, content, faults, generator, links, nodes, pairs, requests, samples,
    subscriptions, system,
};
use crate::codes::Page;

/// Cause of a violated rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// pubmark was too slow: the run is generator-limited.
    Generator,
    /// The machine had no spare CPU: the result shows the limit of the machine, not of the system.
    Machine,
    /// The system, the accounting, or a requested condition.
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
    /// Cause of a violation.
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

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        code: "V01",
        name: "load as scheduled",
        meaning: "Scheduler lag is the time from a message's due time until pubmark got to it. The lower bound of the latency \
                  leaves it out, so it makes intervals wider and no figure wrong. But what is sent late is sent in a burst, \
                  which no device sends, and what the burst costs the system is in both bounds. If 99 % of the messages were \
                  reached within 10 ms, the load was what was scheduled; if not, the run is suspect, and beyond 1 % of the \
                  measured window, or 100 ms, it is invalid: the generator was the limit. A responder's lag (its reply was \
                  due, and pubmark had not got to it) has the same limits. With too few samples for a p99, p95 or p90 stands \
                  in, or the largest sample. A full in-flight window or a full socket is back-pressure of the system and never counts \
                  here. Until 0.1 this rule was called `schedule kept`, and more than 0.5 ms or 50 % of the latency's p99 made \
                  a run invalid.",
        remedy: "Use `--realtime`, more `--shards`, a lower rate, or a machine with free cores; stop other programs. \
                 `pubmark doctor` shows what the machine is like.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::load_as_scheduled,
    },
    Rule {
        code: "V02",
        name: "read as it came",
        meaning: "Receive lateness is an upper bound of the time a message lay in our socket before we read it: our read \
                  minus the latest of: the previous read that left the socket empty, the due time, and the kernel's \
                  receive stamp where it is this message's own. The lower bound of the latency leaves it out. But a message that \
                  is read late counts in another moment of the window, and a socket that is full makes the system wait or drop. \
                  The limits are those of V01: 10 ms for 99 % of the messages, beyond 1 % of the window or 100 ms the run is \
                  invalid. Where a client library reads the sockets, it is not known, and lower bounds are 0. Until 0.1 this \
                  rule was called `reads in time`, and more than 0.5 ms or 50 % of the latency's p99 made a run invalid.",
        remedy: "Give the receivers more threads with `--shards`, lower the rate, or use a machine with free cores.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::read_as_it_came,
    },
    Rule {
        code: "V04",
        name: "threads have time to spare",
        meaning: "In a flood, a thread of pubmark that is always busy measures itself. Its CPU time over the measured window may be \
                  80 % of a core; up to 95 % the run is suspect, beyond that it is invalid. Where messages have due times, V01 and \
                  V02 see how late a busy thread is; above 95 % of a core the run is suspect.",
        remedy: "Spread the load over more threads with `--shards`, or lower the rate.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::threads_have_time,
    },
    Rule {
        code: "V05",
        name: "real-time scheduling leaves room",
        meaning: "With `--realtime` pubmark's threads run before all others (SCHED_FIFO). On up to 4 cores they have a budget: in \
                  each 10 ms they take half a core together; a thread that has used up its part has ordinary priority \
                  until the next 10 ms (`cost.threads[].ordinary_share`). Threads that are pinned to some of the cores (`--pin`) \
                  need none. Whether the system had the CPU it wanted is V28's to say. In records made before there was a \
                  budget, more than half a core on up to 4 cores is suspect.",
        remedy: "Run without `--realtime`, at a lower rate, or on a machine with more cores.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: generator::realtime_leaves_room,
    },
    Rule {
        code: "V06",
        name: "CPU not stolen",
        meaning: "On a virtual machine the hypervisor may give the processor to others. Above 5 % of the CPU time during \
                  the run, both the system and pubmark were slowed by something that is not in the figures: suspect.",
        remedy: "Run again when the host is quieter, or on a machine of your own.",
        blames: Blame::Machine,
        spoils: Spoils::Everything,
        judge: generator::cpu_not_stolen,
    },
    Rule {
        code: "V07",
        name: "accounting of sending closes",
        meaning: "Every message due in the measured window was sent, skipped because its device was planned offline, \
                  skipped because its connection was lost, refused, or still waiting at the end. If these do not add up \
                  to what was offered, the run is invalid.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::sending_closes,
    },
    Rule {
        code: "V08",
        name: "accounting of delivery closes",
        meaning: "Every message sent was expected once for each subscription that held a session then, and was delivered, \
                  lost, or unknown (its connection died before the acknowledgement). If these do not add up to what was \
                  expected, the run is invalid.",
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
        meaning: "Missing messages are kept as ranges, and memory for them is capped. Past the cap a late message can no \
                  longer be told from a second copy, so the counts of lost, late and duplicated may be off: suspect.",
        remedy: "Lower the rate or the number of streams until fewer messages go missing.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::exact,
    },
    Rule {
        code: "V11",
        name: "clocks agree",
        meaning: "A latency below zero cannot be: the clocks behind it disagree. Such samples are counted as 0 and never \
                  dropped. Any makes the run suspect, more than 1 % make it invalid.",
        remedy: "Check the clocks of the machines with `pubmark doctor`.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: samples::clocks_agree,
    },
    Rule {
        code: "V12",
        name: "samples fit",
        meaning: "Samples above a histogram's range (1 h) are counted as its largest value, so what is printed as an upper \
                  bound is none: invalid. Until 0.1 such a run was suspect.",
        remedy: "Lower the rate, or find out why messages take longer than an hour.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: samples::samples_fit,
    },
    Rule {
        code: "V13",
        name: "something was measured",
        meaning: "A run without messages due, sent or expected measured nothing and is invalid. Messages that arrived \
                  without a latency make it suspect. Few samples alone do not: a percentile that rests on fewer than 10 \
                  samples is not printed, and the largest sample stands in for it in V01 and V02.",
        remedy: "Run longer with `--duration`, and look at the causes of refused connections and subscriptions.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: samples::enough_was_measured,
    },
    Rule {
        code: "V14",
        name: "ran to its end",
        meaning: "An interrupted run holds what was measured until then. Its window is shorter than asked for and its \
                  drain may be cut: suspect.",
        remedy: "Run again to the end.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: samples::came_to_its_end,
    },
    Rule {
        code: "V16",
        name: "accounting of requests closes",
        meaning: "Every request sent was answered in time, answered late, given up, or unknown (its requester's connection \
                  ended meanwhile, or the run did); every request that a responder received was answered, dropped, refused \
                  or still there at the end. If these do not add up, the run is invalid; if its cap was \
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
                  and the loss has to lie in the 99 % interval of its binomial distribution. A link that is none of what was \
                  asked makes the run suspect. What a probe cannot measure in its time is said in the record.",
        remedy: "Run again; on a machine with free cores, if it comes back. `pubmark doctor` shows what the machine is like.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: links::as_asked,
    },
    Rule {
        code: "V18",
        name: "emulator kept up",
        meaning: "A packet that the kernel dropped on its way to the emulator, or that the emulator had no room for, is a loss \
                  that nobody asked for: any makes the run invalid. A packet that was handed on later than it was due adds to \
                  the latency, as the generator's own lag does: p99 of that has the limits of V01.",
        remedy: "Fewer messages or larger ones, a machine with free cores, root for real-time priority.",
        blames: Blame::Generator,
        spoils: Spoils::Everything,
        judge: links::kept_up,
    },
    Rule {
        code: "V19",
        name: "lost, not late",
        meaning: "A message that has not come when the drain is over is counted as lost. If bytes are then still on their way, in \
                  our sockets or in the system's, TCP is sending them again, and some of those messages are late and not lost: \
                  suspect. So are messages that a subscriber still processes (`processing`), and those in a system whose \
                  threads waited for a CPU for more than a quarter of the drain: silence does not end the drain while they \
                  wait. What the sockets of a system hold that this run did not start is not known.",
        remedy: "Give late messages more time with `--drain`, or lower the rate.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::lost_not_late,
    },
    Rule {
        code: "V20",
        name: "faults as configured",
        meaning: "What was to be broken was broken, at most 0.5 s late, and put right again. A fault that failed, came later, or \
                  did not end makes the run invalid: it is not the run that was asked for. Where connections had more events \
                  than are recorded (1,048,576 a shard), their figures are too low and the run is suspect. What a fault does \
                  to the system, its messages and its clients is the result, and no reason for a verdict.",
        remedy: "Run again. If the system did not start again, its log says why.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: faults::done_as_asked,
    },
    Rule {
        code: "V21",
        name: "nodes there",
        meaning: "A node or a worker process that ended, froze or was cut off takes what it had measured with it, and what its devices \
                  would have sent is missing from the load: the run is invalid. What the others measured until then is kept. A \
                  worker counts as frozen when its heartbeat, which is a thread of its own, is silent for 3 s.",
        remedy: "Run again with all nodes; the output of the lost one says what ended it.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: nodes::all_there,
    },
    Rule {
        code: "V22",
        name: "clocks of nodes have a bound",
        meaning: "A latency between two machines contains the error of their clocks. Its bound is measured, and both bounds of \
                  the latency are widened by it. Where a clock jumped there is none, and the run is invalid. Until 0.1 this rule \
                  was called `clocks of nodes` and compared the bound with the latency's p50.",
        remedy: "Nothing may set `CLOCK_MONOTONIC_RAW` back during a run: no suspended or migrated machines.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: nodes::clocks,
    },
    Rule {
        code: "V23",
        name: "subscriptions granted",
        meaning: "Nothing is expected of a filter that the system refused. If it refused some, fewer messages were delivered than the \
                  workload asks for, and the run is suspect. If it refused all of them, nobody received anything: the run is \
                  invalid. The reason is the system's own.",
        remedy: "Check the system's access rules, or the credentials of the subscribers (`--user`).",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: subscriptions::granted,
    },
    Rule {
        code: "V24",
        name: "every pair met",
        meaning: "Without a broker clients find each other by themselves, and a writer and a reader that never met look like a pair \
                  whose messages were lost. A pair of which a message was expected (its writer had sent it, its reader was there) and \
                  nothing arrived, in the warm-up neither, did not meet, unless loss as it was between the other pairs makes one such \
                  pair in a hundred runs likely: the run is invalid; with faults, which may keep two apart, suspect.",
        remedy: "A longer `--warmup`, for clients to find each other; on several machines, a network that lets them through, or \
                 `pubmark node --address IP` with an address of the node that the others reach; or all on one machine.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: pairs::met,
    },
    Rule {
        code: "V25",
        name: "system there to the end",
        meaning: "A broker that ends by itself, by a signal or because it was OOM-killed takes its messages and connections along, and what \
                  is measured after that is its absence: the run is invalid. The record says how it ended and when \
                  (`system.ended`). A fault that was asked for is no such end. A system that this run did not start is taken for \
                  ended when every connection was lost and none could be made again to the end; what else becomes of it is not \
                  known.",
        remedy: "Read the end of the system's log, which the run printed. If it was OOM-killed: a higher `--limit memory=`, or a lower \
                 load.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: system::there_to_the_end,
    },
    Rule {
        code: "V26",
        name: "samples are deliveries",
        meaning: "Each latency belongs to one delivery in the account. A peer that sends messages which nobody published (a broker that \
                  makes up sequence numbers) can add samples, and they cannot be taken out again: with more samples than \
                  deliveries the run is invalid. Where publisher and subscriber run in one process, such a message is recognised \
                  when it arrives, counted as foreign, and adds nothing.",
        remedy: "Find out what else publishes to these topics, or what the system does to messages.",
        blames: Blame::Run,
        spoils: Spoils::Times,
        judge: samples::are_deliveries,
    },
    Rule {
        code: "V27",
        name: "offered as scheduled",
        meaning: "What is offered is a property of the schedule, however late pubmark is: every message due in the window is \
                  offered, and what was not sent is unsent. The messages of the window are counted a second time from the \
                  schedule itself; if the two counts differ, the run is invalid. Reactions have no schedule and are left out, \
                  and so are interrupted runs, runs that lost a node, and floods.",
        remedy: "This is an error in pubmark: please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: books::offered_as_scheduled,
    },
    Rule {
        code: "V28",
        name: "system had the CPU it wanted",
        meaning: "A system that is kept from running shows nothing of what it can do. The kernel counts how long each thread was \
                  ready to run and did not (run-queue wait). Some microseconds for each wake-up are ordinary and not \
                  judged; in intervals of some 4 ms, half a millisecond or more above what is usual for the thread is a long wait. \
                  Of long waits, what others can have caused is judged: at most what all others on the machine used, and without what a \
                  limit that was asked for held the system back. Where that is at least 1 % of the window, so that p99 is touched, \
                  and more than 10 % of the time in which the system was ready (wait / (wait + CPU time)), the run is suspect, \
                  and invalid if messages are missing or were not sent. \
                  Where every core of the machine was busy, short waits count, too: above 5 % of the window and a quarter of the \
                  time in which the system was ready. Something is missing in any flood, which is suspect at most. \
                  The finding names who had the CPU: other programs, pubmark, the hypervisor. Only a system that runs on this \
                  machine, started by this run, or that a node observes, can be looked at. Until 0.1 this rule was called `system had \
                  processors`, judged the sum of all waits, and needed missing messages.",
        remedy: "Stop other programs, give the system cores of its own (`--pin`), run without `--realtime`, lower the rate, or let \
                 another machine send (`--nodes`).",
        blames: Blame::Machine,
        spoils: Spoils::Everything,
        judge: system::had_processors,
    },
    Rule {
        code: "V29",
        name: "client program reported the truth",
        meaning: "With `--client` a program of the user's is the client. If it ended, stalled for 10 s, or broke the client program \
                  protocol, all its clients stayed disconnected from then on: the run is invalid. What it reported and cannot be \
                  true (a message that it was never given, a stamp in the future) is counted by name and not used. If that is more \
                  than one report in a thousand messages, the run is invalid, otherwise suspect.",
        remedy: "See `connections.client_programs` in the record, and the client program protocol.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: client_programs::reported_the_truth,
    },
    Rule {
        code: "V30",
        name: "matched as built",
        meaning: "Subscribers with `where` ask their predicate of each message that they received. Publishers ask it of each \
                  message that they build, and note the answers by sequence number. Of the messages that arrived, as many must \
                  have matched as publishers say, and matched and filtered ones together must be all that arrived, for each \
                  group and for each of its subscribers (`delivery.content[].differing_subscribers`). If not, the \
                  system changed payloads, or pubmark is wrong: the run is invalid. Where the answers of publishers are not \
                  known of all messages (more than half a billion on a thread, approximate message accounting), the run is \
                  suspect. So is a run whose system accepted a filter (`at: broker`) and let messages through for which it does \
                  not hold.",
        remedy: "Find out what the system does to payloads. If it changes none, please report it with the record.",
        blames: Blame::Run,
        spoils: Spoils::Everything,
        judge: content::matched_as_built,
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
