//! Every bound of the server, with its reason.

use std::time::Duration;

const MIB: usize = 1024 * 1024;

/// The longest line on stdio. Images and file contents travel inside messages, so lines of tens of
/// megabytes are normal; a longer one than this is refused instead of filling the memory.
pub(crate) const MAX_LINE: usize = 256 * MIB;

/// How much of a line beyond [`MAX_LINE`] is kept, to find the id that the refusal must carry.
pub(crate) const OVERSIZED_HEAD: usize = 64 * 1024;

/// How long an HTTP peer may take to send its request head.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);

/// The largest websocket frame and message. A peer that sends more is cut.
pub(crate) const MAX_FRAME: usize = 16 * MIB;
pub(crate) const MAX_MESSAGE: usize = 64 * MIB;

/// Messages, and bytes of them, read from stdin but not yet looked at. The reader waits beyond either.
pub(crate) const INBOUND_QUEUE: usize = 128;
pub(crate) const INBOUND_BYTES: usize = 64 * MIB;

/// Requests of one connection that are being worked on. One more is refused with `-32001`.
pub(crate) const MAX_IN_FLIGHT: usize = 1024;

/// Requests in flight, not counting those that take as long as a program of the client, at which no more are read until
/// one is answered. So a client that sends faster than it is answered waits, and is not refused.
pub(crate) const PAUSE_IN_FLIGHT: usize = MAX_IN_FLIGHT / 2;

/// When none of them is answered for this long, they may be waiting for something that the client has yet to send.
pub(crate) const IN_FLIGHT_STALLED: Duration = Duration::from_secs(1);

/// Unsent bytes of answers to a connection above which no further request of it is read. Its peer must read
/// answers before further requests are read, so unsent answers are bounded.
pub(crate) const OUTBOUND_PAUSE: usize = 4 * MIB;

/// Unsent bytes above which text deltas of the same item are merged. Below it the peer keeps up and
/// sees each delta as it was made.
pub(crate) const OUTBOUND_MERGE: usize = 64 * 1024;

/// Unsent bytes at which a network peer is cut, and a stdio peer makes the senders wait.
pub(crate) const OUTBOUND_FULL: usize = 64 * MIB;

/// Unsent bytes above which the programs that a client runs wait with more output. Output goes to one
/// client only, so no other client waits for it.
pub(crate) const OUTBOUND_STREAM: usize = MIB;

/// The longest piece of a program's output in one message, before it is encoded for JSON.
pub(crate) const OUTPUT_PIECE: usize = 32 * 1024;

/// What is kept of a program's output for an answer without a cap: as much as could be a message at all.
pub(crate) const UNCAPPED_OUTPUT: usize = MAX_LINE;

/// The longest message that merging makes. Clients that read by lines may not take more than 64 KiB.
pub(crate) const MERGED_MESSAGE: usize = 32 * 1024;

/// How many queued deltas are looked at to find one to merge with: as many as there may be texts
/// growing at the same time.
pub(crate) const MERGE_REACH: usize = 64;

/// The most bytes handed to a transport at once.
pub(crate) const WRITE_BATCH: usize = 64 * 1024;

/// How long a network peer may take for a batch before it is cut: a while, and more for a large answer.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
const SLOWEST_BYTES_PER_SECOND: usize = 32 * 1024;

pub(crate) fn time_to_take(bytes: usize) -> Duration {
    STALLED + Duration::from_secs((bytes / SLOWEST_BYTES_PER_SECOND) as u64)
}

/// Websocket clients at a time. Each may have [`MAX_IN_FLIGHT`] requests, so this bounds those, too.
pub(crate) const MAX_CLIENTS: usize = 10_000;

/// How often a websocket peer is pinged, and how many pings in a row may stay unanswered.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
pub(crate) const UNANSWERED_PINGS: u32 = 3;

/// The smallest buffer for frames: clients are many and mostly silent.
pub(crate) const FRAME_BUFFER: usize = 8 * 1024;

/// When the server stops, a connection without a message for this long counts as quiet.
pub(crate) const QUIET: Duration = Duration::from_millis(20);

/// How long requests in progress, and then unsent messages, are waited for at the end.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// How long turns may take to end when the server does.
pub(crate) const CLOSE: Duration = Duration::from_secs(10);

/// How long a node may take to let its threads go. Longer than a running step may take.
pub(crate) const LET_GO: Duration = Duration::from_secs(60);

/// Files above this are read one at a time: each is one message that waits in memory until it is taken.
pub(crate) const LARGE_FILE: u64 = 16 * MIB as u64;
