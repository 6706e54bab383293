# Client to daemon. Capabilities carry file descriptors: a File is a capability whose fd is all it is.
@0xb3f1c2a4d5e60718;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("railhead::schema");

interface File {}

struct Error {
  code @0 :UInt16;     # railhead::Code
  message @1 :Text;
}

struct GroupParams {
  ranks @0 :UInt32;
  experts @1 :UInt32;
  hidden @2 :UInt32;
  topk @3 :UInt32;
  sideBytes @4 :UInt32;
  channels @5 :UInt32;
  depth @6 :UInt32;
  ringSlots @7 :UInt32;
  chunkBytes @8 :UInt32;
  maxHandles @9 :UInt32;
  abortOnRefusal @10 :Bool;
  expertRank @11 :List(UInt32);
}

interface Daemon {
  # First call on every connection. A version that does not fit is refused with both versions in the message.
  hello @0 (client :ClientInfo, pidfd :File) -> (error :Error, session :Session, info :DaemonInfo, page :File,
                                                  words :File, bells :List(File));
  # For operators: allowed to the daemon's user and root.
  admin @1 (version :UInt32) -> (error :Error, admin :Admin);
}

struct ClientInfo {
  version @0 :UInt32;
  build @1 :Text;
  features @2 :UInt64;
  pid @3 :UInt32;       # as the client sees itself; the kernel's word wins, this is for messages from namespaces
  job @4 :Text;
}

struct DaemonInfo {
  version @0 :UInt32;
  build @1 :Text;
  hostId @2 :Text;
  session @3 :UInt32;
  limits @4 :List(Limit);
}

struct Limit {
  name @0 :Text;
  value @1 :UInt64;
}

interface Session {
  # An id that names a group to be made; this daemon will coordinate it.
  uniqueId @0 () -> (error :Error, id :Data);
  # Waits until every rank has joined. deadlineMs 0 = the daemon's own limit. Dropping the call leaves the group.
  join @1 (id :Data, rank :UInt32, params :GroupParams, deadlineMs :UInt64)
      -> (error :Error, member :Member, epoch :UInt32, domainOfRank :List(UInt16), proxy :UInt32, name :Text);
}

struct Segment {
  kind @0 :UInt8;      # railhead::ipc::SegmentKind
  id @1 :UInt8;
  bytes @2 :UInt64;
  file @3 :File;
}

# One rank in one group.
interface Member {
  # The rank's memory. Waits until every rank of the group has attached and every daemon is wired. The rail segment may be
  # absent when the group has one domain.
  attach @0 (segments :List(Segment), deadlineMs :UInt64)
      -> (error :Error, groupWords :File, railWords :File, generation :UInt8);
  # A further segment of this rank.
  addSegment @1 (segment :Segment) -> (error :Error);
  # A segment of another rank of the same domain.
  peerSegment @2 (rank :UInt32, id :UInt8) -> (error :Error, segment :Segment);
  # Ends the group for every rank.
  abort @3 (code :UInt16, reason :Text) -> (error :Error);
  # This rank will publish nothing more; others go on up to its last operation.
  leave @4 () -> (error :Error);
  # A call of this rank did not happen, for `why` on every host: op is the number it would have had, or, for a run that was
  # refused, that of the planned operation.
  refused @5 (op :UInt64, planned :Bool, reason :Text) -> ();
}

interface Admin {
  # A snapshot as JSON text: what is one of status, why, sessions, groups, arenas, rings, peers.
  snapshot @0 (what :Text) -> (error :Error, json :Text);
  # Ends a session (session > 0) or one rank of a group.
  evict @1 (session :UInt32, group :Text, rank :Int32, reason :Text) -> (error :Error);
}
