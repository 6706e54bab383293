/* Railhead client library, C interface.
 *
 * Expert-parallel dispatch and combine for Mixture-of-Experts models, through the node's daemon epd.
 *
 * Conventions
 *  - Calls return an rh_status; RH_OK is 0. rh_last_error() holds the sentence of the last failure on this thread.
 *  - Structs start with their own size, so that the ABI can grow: rh_group_config config = {.size = sizeof config}; in
 *    C++ railhead::make<rh_group_config>(). Arguments without it are refused, results without it count as of this
 *    version. Zero means "default" in every optional field.
 *  - A call whose arguments are refused did not happen: nothing was published, its operation number is not used, the
 *    corrected call works, and the other ranks wait for it. The same call works again after RH_OUT_OF_MEMORY or
 *    RH_SYSTEM (no progress thread), unless that came in the middle of an operation: then the group has ended, as
 *    rh_group_status says.
 *  - Threads: every call may be made from any thread. All ranks of a group must make the same dispatches, plans and
 *    combines in the same order, so threads that share a group must agree on that order. An object must not be used
 *    while it is being closed or released.
 *  - Lifetime: a session that is closed closes its groups, a group that is closed takes its handles, events and memory
 *    along. A call with one of these is RH_INVALID_USAGE from then on; pointers into their memory are dead.
 *  - fork(): the parent is not affected. In a child of a process that has opened a session, calls return RH_FORKED.
 *    After exec() it is a process of its own.
 *  - No call waits without a deadline: rh_session_config.timeout_ms, rh_group_config.join_timeout_ms, op_timeout_ms;
 *    10 s for other questions to the daemon. A limit of 100 years or more is none.
 */
#ifndef RAILHEAD_H_
#define RAILHEAD_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RH_API __attribute__((visibility("default")))
#else
#define RH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* C callers may put any integer into an enum; with a fixed type C++ may look at it before refusing it. */
#ifdef __cplusplus
#define RH_ENUM(name) enum name : int
#else
#define RH_ENUM(name) enum name
#endif

#define RH_VERSION_MAJOR 0
#define RH_VERSION_MINOR 1

/* clang-format off */
typedef RH_ENUM(rh_status) {
  RH_OK = 0,
  RH_INVALID_ARGUMENT = 1,  /* a value is out of range */
  RH_INVALID_USAGE = 2,     /* a right value at the wrong time: closed, released, of another group */
  RH_MISMATCH = 3,          /* ranks disagree on a group's parameters or on a call: the group has ended */
  RH_OUT_OF_MEMORY = 4,     /* of an arena: with needed and free bytes */
  RH_LIMIT_EXCEEDED = 5,    /* a limit of the daemon or the group, or too small a place; with both numbers */
  RH_TIMEOUT = 6,           /* names who was waited for; of an operation: the group has ended */
  RH_ABORTED = 7,           /* the group was ended by rh_group_abort, a refusal (abort_on_refusal) or the daemon */
  RH_RANK_LOST = 8,         /* a rank closed the group, ended, or was evicted: the group has ended */
  RH_DAEMON_LOST = 9,       /* this host's daemon is gone: open the session again */
  RH_PEER_LOST = 10,        /* another host's daemon, or the path to it, is gone: the group has ended */
  RH_UNAVAILABLE = 11,      /* no daemon there, or it is shutting down */
  RH_PERMISSION = 12,       /* the daemon does not admit this user */
  RH_VERSION_MISMATCH = 13, /* library and daemon, or two daemons, do not fit each other */
  RH_UNSUPPORTED = 14,      /* from a newer version of this header */
  RH_PROTOCOL = 15,         /* another process sent what it must not send */
  RH_SYSTEM = 16,           /* a system call failed; with errno */
  RH_INTERNAL = 17,         /* a fault of the library: please report it */
  RH_FORKED = 18,           /* see fork() above */
  RH_IN_PROGRESS = 19       /* of an event: not complete yet */
} rh_status;

/* Element types. RH_U8 is opaque bytes (fp8, int8, packed): dispatch only. */
typedef RH_ENUM(rh_type) { RH_U8 = 0, RH_BF16 = 1, RH_FP16 = 2, RH_FP32 = 3 } rh_type;
typedef RH_ENUM(rh_id_type) { RH_INT64 = 0, RH_INT32 = 1 } rh_id_type;

/* rank: one row per (token, receiving rank), ordered by source rank, token.
 * expert: one row per (token, local expert), expert-major, inside an expert by source rank, token; every expert's rows
 *         are padded with zero rows to a multiple of `align`. */
typedef RH_ENUM(rh_layout) { RH_LAYOUT_RANK = 0, RH_LAYOUT_EXPERT = 1 } rh_layout;
/* clang-format on */

typedef struct rh_session rh_session; /* one process and its daemon */
typedef struct rh_group rh_group;     /* membership of this process in one group, as one rank */
typedef struct rh_handle rh_handle;   /* the routing of one dispatch */
typedef struct rh_event rh_event;     /* completion of one asynchronous operation */

/* Never fails; static storage. */
RH_API const char* rh_status_name(rh_status status);
/* The sentence of the last failure on this thread; valid until the next call on this thread. */
RH_API const char* rh_last_error(void);
/* "0.1.0", with the commit where the build knew it: "0.1.0 (082e4eb)". Static storage. */
RH_API const char* rh_version(void);

/* ---- session ---- */

typedef struct rh_session_config {
  size_t size;
  /* NULL: environment RAILHEAD_DAEMON, else "auto".
   * "auto": the system daemon if one listens (RH_PERMISSION if this user may not connect to it), else a private daemon
   * shared by this user's ranks of this job on this host. "system", "private", or the path of a socket. */
  const char* daemon;
  /* Label for operators and part of the private daemon's key. NULL: RAILHEAD_JOB, SLURM_JOB_ID, else none. */
  const char* job;
  uint64_t timeout_ms; /* to reach and greet the daemon, and to start a private one; 0 = 10000 */
} rh_session_config;

/* One per process is enough; more work, too. config may be NULL. RAILHEAD_SIMD, "portable" or "avx512", overrides what
 * the copying and summing loops find out about the processor; the results are the same bits. */
RH_API rh_status rh_session_open(const rh_session_config* config, rh_session** session);
/* Closes its groups first (rh_group_close). NULL is allowed. */
RH_API rh_status rh_session_close(rh_session* session);

/* ---- group ---- */

#define RH_UNIQUE_ID_BYTES 256
typedef struct rh_unique_id {
  unsigned char bytes[RH_UNIQUE_ID_BYTES];
} rh_unique_id;

/* On one rank, once per group; the application spreads the bytes, as a secret: who has them can join. This session's
 * daemon coordinates the group until it stands. */
RH_API rh_status rh_unique_id_create(rh_session* session, rh_unique_id* id);

typedef struct rh_group_config {
  size_t size;
  uint32_t ranks;   /* of the group, 1 to 4096 (limits.ranks of the daemon); any number per host, in any order */
  uint32_t rank;    /* this process: 0 to ranks - 1 */
  uint32_t experts; /* of the group, 1 to 65535; their ids are 0 to experts - 1 */
  const uint32_t*
      expert_to_rank;     /* [experts]; NULL = contiguous blocks, the first experts % ranks ranks get one more */
  uint32_t hidden;        /* elements per token, 1 to 1048576 */
  uint32_t topk;          /* slots per token, at most: 1 to 256 */
  uint32_t side_bytes;    /* opaque bytes beside each token, at most (for example fp8 scales): 0 to 65536 */
  uint32_t channels;      /* 1 to 64; 0 = 1; more spread a rank's rail traffic over more forwarders */
  uint32_t depth;         /* operations in flight, 1 to 8; 0 = 2. One more call waits for room */
  uint32_t ring_slots;    /* receive slots per rail ring, 1 to 256; 0 = 2 to 4, fewer where hosts and ranks are many */
  uint32_t chunk_bytes;   /* of a rail chunk, 1 (one token) to 1 GiB; 0 = about 120 KB */
  uint32_t max_handles;   /* live handles, 1 to 65536 (limits.handles of the daemon); 0 = 64 */
  int abort_on_refusal;   /* 1: a refused call on any rank ends the group at once */
  uint64_t op_timeout_ms; /* of an operation, from its call; 0 = 1800000; UINT64_MAX = none */
  uint64_t join_timeout_ms; /* to find all ranks; 0 = the daemon's limit alone (join_timeout_s) */
  /* Bytes to have ready at once, for rows that arrive and for inputs of combine; rounded up, 4 MiB at least. No limits:
   * the arenas grow when more is needed. 0 = nothing until then. No memory for them ends the group on all ranks. */
  size_t receive_bytes;
  size_t combine_bytes;
} rh_group_config;

/* Collective: returns when every rank is there, or RH_TIMEOUT with the ranks that are missing. All parameters but
 * `rank`, the timeouts and the arena sizes must be the same on every rank: RH_MISMATCH names field, ranks and values.
 */
RH_API rh_status rh_group_create(rh_session* session, const rh_unique_id* id, const rh_group_config* config,
                                 rh_group** group);

typedef struct rh_group_info {
  size_t size;
  uint32_t ranks, rank;
  uint32_t domains, domain;         /* hosts */
  uint32_t local_ranks, local_rank; /* in this domain */
  uint32_t experts, local_experts;  /* of the group; on this rank */
  uint32_t epoch;
  uint64_t registered_bytes;             /* NIC-registered memory of this rank: independent of the tokens per call */
  uint64_t receive_bytes, combine_bytes; /* arena, now */
  uint64_t completed;                    /* operations complete on this rank */
} rh_group_info;

RH_API rh_status rh_group_query(rh_group* group, rh_group_info* info);
/* RH_OK while the group works, else why it ended (rh_last_error has the sentence). */
RH_API rh_status rh_group_status(rh_group* group);
/* Ends the group on every rank: every call on it returns RH_ABORTED with this rank and reason (NULL: none given), here
 * from now on, elsewhere within milliseconds. Of several ranks that abort at once each host's ranks hear of one. Any
 * thread may call it, also while others wait in the group's operations. The group stays to be closed. */
RH_API rh_status rh_group_abort(rh_group* group, const char* reason);
/* Not collective. Frees handles, events and arena memory of the group; what is in flight is dropped, and a call of
 * another thread that waits in the group returns RH_ABORTED. The others can complete what this rank took part in, then
 * the group ends for them with RH_RANK_LOST. NULL is allowed. */
RH_API rh_status rh_group_close(rh_group* group);

/* ---- arena memory ---- */

/* clang-format off */
typedef RH_ENUM(rh_arena) { RH_ARENA_RECEIVE = 0, RH_ARENA_COMBINE = 1 } rh_arena;
/* clang-format on */

/* 64-byte aligned memory of this many bytes in the group's arena: outputs of dispatch (RECEIVE) and inputs of combine
 * (either) are used in place there; any other memory works at the price of one copy. */
RH_API rh_status rh_alloc(rh_group* group, rh_arena arena, size_t bytes, void** memory);
/* After an abort the memory is kept aside until no peer can still write to it. NULL is allowed. */
RH_API rh_status rh_free(rh_group* group, void* memory);

/* ---- dispatch ---- */

typedef struct rh_dispatch_args {
  size_t size;
  const void* x; /* [tokens, hidden] of `type`; NULL if tokens is 0. x and side stay until the operation is complete, or
                  * its handle is released while it waits for rh_dispatch_run: then the rest of them is copied */
  size_t x_pitch; /* bytes from row to row; 0 = dense */
  rh_type type;
  uint32_t tokens; /* of this rank in this call; may differ between ranks, may be 0 */
  const void* ids; /* [tokens, topk] expert ids; -1 = unused slot; an id named twice in a token is one row with the sum
                    * of both weights. ids and weights are read during the call alone */
  rh_id_type id_type;
  uint32_t topk;        /* slots per token in this call; 0 = the group's */
  const float* weights; /* [tokens, topk]; NULL = 1 */
  const void* side;     /* [tokens, side_bytes] or NULL */
  size_t side_pitch;    /* bytes; 0 = dense */
  uint32_t side_bytes;
  rh_layout layout;
  uint32_t align; /* layout expert: pad each expert to a multiple; 0 = 1 */
  /* Not NULL: use the routing of this handle, the same on every rank; ids, weights, tokens, topk, layout and align are
   * its own. *handle is this handle again: release it once. */
  rh_handle* cached;
  void* out;       /* where rows go: arena memory (in place) or any memory (one copy); NULL = the handle's own */
  size_t out_rows; /* rows that fit at `out` */
} rh_dispatch_args;

/* What this rank received, at most 2^31 - 1 rows with padding (RH_LIMIT_EXCEEDED). Everything but rows at args.out
 * belongs to the handle and lives until its release; what a cached dispatch gave, only until the next cached dispatch
 * of the handle completes, which two in flight may do before either event is waited for. */
typedef struct rh_dispatch_result {
  size_t size;
  void* rows;         /* [row_count, hidden] of args.type, dense */
  uint64_t row_count; /* with padding */
  uint64_t received;  /* without padding */
  uint32_t local_experts;
  const int32_t* row_rank;  /* [row_count] source rank, -1 = padding */
  const int32_t* row_token; /* [row_count] its token there, -1 = padding */
  const int32_t* row_slot;  /* [row_count] first slot that named it, -1 = padding; layout rank: slot of the first id */
  const float* row_weight;  /* [row_count] layout expert: the row's weight, 0 = padding; layout rank: sum of weights */
  const int32_t* local_ids; /* layout rank: [row_count, the group's topk] local ids ascending, -1 tail; else NULL */
  const float* local_weights;    /* layout rank: [row_count, the group's topk]; else NULL */
  const void* side;              /* [row_count, side_bytes] dense, or NULL */
  const int32_t* expert_counts;  /* [local_experts] rows without padding */
  const int32_t* expert_offsets; /* [local_experts + 1] prefix offsets with padding (layout rank: of the counts, which
                                    may sum up to more than int32 holds: then expert_offsets64 alone is right) */
  const int64_t* expert_offsets64;
} rh_dispatch_result;

/* event NULL: blocking. Otherwise returns as soon as there is room among the `depth` operations in flight; *result is
 * filled when the event completes and must live until then. *handle is valid on return. out_rows too small:
 * RH_LIMIT_EXCEEDED with both numbers, from the call or the event; the dispatch is planned on all ranks, finish it with
 * rh_dispatch_run of *handle and a larger output. */
RH_API rh_status rh_dispatch(rh_group* group, const rh_dispatch_args* args, rh_dispatch_result* result,
                             rh_handle** handle, rh_event** event);

/* The two halves of a dispatch, for callers that allocate the output themselves. plan sends what needs no output and
 * returns when the counts are known; run gives the place (args.out and out_rows of rh_dispatch are ignored), to the
 * oldest dispatch of the handle that waits for one.
 * Operations complete in order: while a dispatch of this rank waits for its run, a blocking call and another plan are
 * RH_INVALID_USAGE, and the events of younger operations do not complete. A call that blocks already when the place of
 * an older dispatch proves too small waits for that run, too, until op_timeout_ms: wait for the older one's event
 * first, or run it from another thread. */
RH_API rh_status rh_dispatch_plan(rh_group* group, const rh_dispatch_args* args, uint64_t* row_count,
                                  rh_handle** handle);
RH_API rh_status rh_dispatch_run(rh_group* group, rh_handle* handle, void* out, size_t out_rows,
                                 rh_dispatch_result* result, rh_event** event);

/* Ends this rank's use of the routing and frees what belongs to the handle. The handle ends on every rank with this
 * rank's next operation. A dispatch that was planned and not run, or whose place is too small, goes through, for the
 * others; its rows are dropped, and its event says RH_LIMIT_EXCEEDED. NULL is allowed. */
RH_API rh_status rh_handle_release(rh_handle* handle);

/* ---- combine ---- */

typedef struct rh_combine_args {
  size_t size;
  rh_handle* handle;
  const void* rows;   /* [row_count, hidden] of `type`, rows as dispatch gave them; NULL if row_count is 0 */
  uint64_t row_count; /* must be the handle's: a wrong buffer is refused */
  rh_type type;       /* of rows and y: bf16, fp16 or fp32 */
  rh_type wire_type;  /* of partial sums between hosts: RH_BF16 (default when 0) or RH_FP32; unused on one host */
  int weighted;       /* layout expert: multiply each row by its weight */
  void* y;            /* [tokens, hidden] of `type`; NULL if this rank dispatched 0 tokens */
  size_t y_pitch;     /* bytes; 0 = dense */
} rh_combine_args;

/* y[token] = sum over the token's rows, in the documented order (docs/data-plane.md), accumulated in fp32 and rounded
 * once; tokens without rows give +0. event NULL: returns when y is complete and the rows may be reused; otherwise the
 * event says so. The handle can be combined again. */
RH_API rh_status rh_combine(rh_group* group, const rh_combine_args* args, rh_event** event);

/* ---- events ---- */

/* Of one event, one thread at a time.
 * Waits; RH_IN_PROGRESS after timeout_ms leaves the event as it is, any other result is the operation's (RH_TIMEOUT: it
 * reached its own deadline) and frees the event. timeout_ms UINT64_MAX = until the operation ends. */
RH_API rh_status rh_event_wait(rh_event* event, uint64_t timeout_ms);
/* RH_IN_PROGRESS, or the operation's result, which frees the event. */
RH_API rh_status rh_event_test(rh_event* event);

/* ---- statistics ---- */

typedef struct rh_op_stats {
  size_t size;
  uint64_t op;
  uint32_t kind;        /* 1 dispatch, 2 combine */
  int32_t last_rank;    /* whose call came last, as seen on this host: calls of other hosts count when they are known */
  uint64_t wait_ns;     /* from this rank's call until every rank had called */
  uint64_t transfer_ns; /* from then until complete */
  uint64_t total_ns;    /* both */
  uint64_t rows;        /* dispatch: received, without padding; combine: summed here, also for ranks of other hosts */
  uint64_t rail_bytes;  /* chunks sent to other hosts since the operation before completed: with several in flight some
                         * are of the next ones */
} rh_op_stats;

/* The last `*count` completed operations of this rank, newest first; *count is set to how many were written (at most
 * 64). stats is an array of rh_op_stats of stats[0].size bytes each. */
RH_API rh_status rh_group_stats(rh_group* group, rh_op_stats* stats, size_t* count);

#ifdef __cplusplus
}
#endif

#endif /* RAILHEAD_H_ */
