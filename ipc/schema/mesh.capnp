# Daemon to daemon, over the mesh. Every message concerns one group, named by its key.
@0xd20f6c1e9a4b7c35;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("railhead::schema");

using Control = import "control.capnp";

struct MeshMessage {
  group @0 :Data;  # 16 bytes: the key of the unique id
  union {
    join @1 :Join;            # participant -> coordinator: one rank wants in
    withdraw @2 :Withdraw;    # participant -> coordinator: that rank will not be in the group, with the reason
    refused @3 :Refused;      # coordinator -> participants: no group, with the reason
    missing @4 :Missing;      # coordinator -> participants: who has not joined, or not attached, yet (for `why` and logs)
    map @5 :Map;              # coordinator -> participants: everybody is here
    wire @6 :Wire;            # daemon -> daemon: where to write what
    wired @7 :Void;           # participant -> coordinator: memory attached, paths up
    commit @8 :Void;          # coordinator -> participants: the epoch begins
    frozen @9 :Frozen;        # daemon -> daemons: the epoch ends; last operation complete here
    left @10 :Left;           # daemon -> daemons: a rank left or ended between operations
    quiesced @11 :Quiesced;   # daemon -> daemon: nothing more will be posted; how much was
    attaching @12 :Missing;   # participant -> coordinator: which of its ranks have not attached their memory yet
    refusedCall @13 :RefusedCall;  # daemon -> daemons: a call of a rank did not happen (for `why` and logs)
  }
}

struct Join {
  rank @0 :UInt32;
  secret @1 :Data;
  params @2 :Control.GroupParams;
  endpoint @3 :Text;        # of the participant's mesh
  proxies @4 :UInt32;       # that the participant has
}

struct Withdraw {
  rank @0 :UInt32;
  code @1 :UInt16;
  reason @2 :Text;
}

struct Refused {
  code @0 :UInt16;
  reason @1 :Text;
}

struct Missing {
  ranks @0 :List(UInt32);
}

struct Map {
  epoch @0 :UInt32;
  daemons @1 :List(DaemonEntry);
  daemonOfRank @2 :List(UInt16);
  proxies @3 :UInt32;       # of those that each daemon has, so many may serve the group
}

struct DaemonEntry {
  hostId @0 :Data;   # 16 bytes
  endpoint @1 :Text; # of its mesh
}

# What the receiver of this message needs to write to the sender: one connection (token), one entry per ring whose
# receiving end is at the sender, one per header ring.
struct Wire {
  fabricAddress @0 :Data;
  token @1 :Data;           # 16 bytes; set by the side that accepts
  rings @2 :List(WireRing);
  creditKey @3 :UInt64;     # region of credit words at the sender
  creditBase @4 :UInt64;
}

struct WireRing {
  kind @0 :UInt8;       # 0 = data, 1 = header
  rank @1 :UInt32;      # data: the receiving rank; header: the source rank
  index @2 :UInt32;     # data: its rx ring index
  number @3 :UInt16;    # ring number for immediates
  generation @4 :UInt8;
  key @5 :UInt64;       # remote key and address of slot 0
  base @6 :UInt64;
}

struct Frozen {
  code @0 :UInt16;
  rank @1 :UInt32;      # the cause; 0xffff = none
  reason @2 :Text;
  completed @3 :UInt64; # the smallest over the sender's surviving ranks
}

struct Left {
  rank @0 :UInt32;
  completed @1 :UInt64;
  reason @2 :Text;
}

struct RefusedCall {
  rank @0 :UInt32;
  op @1 :UInt64;
  planned @2 :Bool;     # the operation is published, its run was refused
  reason @3 :Text;
}

struct Quiesced {
  posted @0 :List(Posted);
}

struct Posted {
  number @0 :UInt16;    # the receiver's ring number
  count @1 :UInt64;
}
