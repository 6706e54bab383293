/*
 * Progress of the data plane: every rank finishes every operation whatever the order of events.
 * docs/progress.md explains the rules, the reductions and what this file leaves out.
 *
 * Parameters (-D): R ranks, N domains, DEPTH ops in flight, OPS ops, KIND of sequence, T tokens per rank and op (one
 * token is one chunk), SLOTS per ring. The switches below MUTANTS break one rule each and must make the check fail.
 */
#ifndef R
#define R 3
#endif
#ifndef N
#define N 3
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef OPS
#define OPS 4
#endif
#ifndef T
#define T 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef KIND
#define KIND 0 /* 0: D C D C ...   1: D D C C ...   2: D D D ...   (D dispatch, C combine) */
#endif

/* ---- shape: contiguous ranks per domain; the last domain may be smaller */
#define WIDTH ((R + N - 1) / N)
#define dom(r) ((r) / WIDTH)
#define width(d) ((d) < N - 1 -> WIDTH : R - WIDTH * (N - 1))
#define other(s, k) ((k) + ((k) >= dom(s))) /* the k-th domain that is not the one of s */
#define forwarder(s, k) (other(s, k) * WIDTH + ((s) % WIDTH) % width(other(s, k)))
#define ring(s, k) ((s) * (N - 1) + (k)) /* dispatch s -> domain, and combine back to s, on the same index */
#define RINGS (R * (N - 1))

/* ---- the sequence of operations, numbered from 1 */
#if KIND == 0
#define is_combine(n) ((n) % 2 == 0)
#define dispatches(n) (((n) + 1) / 2) /* among the ops 1..n */
#define dispatch_op(i) (2 * (i) + 1)  /* number of the i-th dispatch, i from 0 */
#define combine_op(i) (2 * (i) + 2)
#define source_of(n) ((n) - 1) /* the dispatch that combine n belongs to */
#elif KIND == 1
#define is_combine(n) (((n) - 1) % 4 >= 2)
#define dispatches(n) (2 * ((n) / 4) + ((n) % 4 > 2 -> 2 : (n) % 4))
#define dispatch_op(i) (4 * ((i) / 2) + (i) % 2 + 1)
#define combine_op(i) (dispatch_op(i) + 2)
#define source_of(n) ((n) - 2)
#else
#define is_combine(n) false
#define dispatches(n) (n)
#define dispatch_op(i) ((i) + 1)
#define combine_op(i) 255
#define source_of(n) 0
#endif
#define combines(n) ((n) - dispatches(n))

/* ---- routing: every token to every domain, or (SPARSE) only the last token of an op to the second other domain */
#ifdef SPARSE
#define per_op(k) ((k) == 1 -> 1 : T)
#define routed(t, k) ((k) == 0 || (t) % T == T - 1)
#define records(tokens, k) ((k) == 1 -> (tokens) / T : (tokens))
#else
#define per_op(k) T
#define routed(t, k) true
#define records(tokens, k) (tokens)
#endif

/* ---- state; every counter only grows */
byte published[R];      /* headers published by the rank */
byte consumed[R];       /* live watermark: ops the rank is through with */
byte spans[R];          /* last dispatch op whose span the rank has published */
byte sent[RINGS];       /* dispatch chunks filled by the source */
byte forwarded[RINGS];  /* dispatch chunks consumed by the forwarder: its credit */
byte partials[RINGS];   /* combine chunks filled by the forwarder */
byte home[R];           /* tokens that the home rank has combined: the credit of its combine rings */
byte user[R];           /* what the application of the rank does between the last op it started and the next */
#define FREE 0           /* no constraint */
#define WAIT_FIRST 1     /* starts the next op only when the last one is done */
#define RUN_AFTER_NEXT 2 /* plans the next op before it runs this one */
#define RUN_AFTER_PREV 3 /* waits for the op before this one, then runs this one */

#ifdef LATE /* headers, arrivals and credits take their own time: see process Wire */
byte on_board[RINGS];
byte arrived[RINGS];
byte credit[RINGS];
byte arrived_back[RINGS];
byte credit_back[RINGS];
#define k_of(s, d) ((d) - ((d) > dom(s)))
#define seen(s, n, d) (dom(s) == (d) -> published[s] >= (n) : on_board[ring(s, k_of(s, d))] >= (n))
#define at_forwarder(i) arrived[i]
#define at_home(i) arrived_back[i]
#define dispatch_credit(i) credit[i]
#define combine_credit(s, k) credit_back[ring(s, k)]
#else
#define seen(s, n, d) (published[s] >= (n))
#define at_forwarder(i) sent[i]
#define at_home(i) partials[i]
#define dispatch_credit(i) forwarded[i]
#define combine_credit(s, k) records(home[s], k)
#endif

/* ---- MUTANTS */
#ifdef POOL /* a tx pool of POOL slots per rank for all its rings; a slot comes back with the credit */
byte pool[R];
#define pool_free(r) (pool[r] < POOL)
#define pool_take(r) pool[r]++
#define pool_give(r) pool[r]--
#else
#define pool_free(r) true
#define pool_take(r) skip
#define pool_give(r) skip
#endif
#ifdef WATERMARK_IN_HEADERS /* what a rank knows of its neighbours' watermark came with their last header */
byte told[R];
#define watermark(m, r) ((m) == (r) -> consumed[m] : told[m])
#define tell(r) told[r] = consumed[r]
#else
#define watermark(m, r) consumed[m]
#define tell(r) skip
#endif
#ifndef SLACK /* 1: rows are gated on consumed n-D-1 */
#define SLACK 0
#endif
#ifdef BLOCKING /* a forwarder that has looked at a ring waits there until it could serve it; 0 = free, else ring + 1 */
byte stuck_at[R];
#define may_serve(f, code) (stuck_at[f] == (code))
#define served(f) stuck_at[f] = 0
#else
#define may_serve(f, code) true
#define served(f) skip
#endif
#ifdef PLAN_BLOCKS /* a plan call returns only with all headers of its op */
byte planning[R];
#define plan_returned(r) headers(planning[r], dom(r))
#else
#define plan_returned(r) true
#endif
#ifdef SAME_ORDER /* the application calls plan and run in one order on all ranks */
byte order[OPS + 1];
#define order_is(n, x) (order[n] == 0 || order[n] == (x))
#define order_set(n, x) order[n] = x
#else
#define order_is(n, x) true
#define order_set(n, x) skip
#endif

/* ---- "for all": f(rank, a, b) */
#if R == 2
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b))
#elif R == 3
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b) && f(2, a, b))
#else
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b) && f(2, a, b) && f(3, a, b))
#endif
#if N == 2
#define EACH_OTHER(f, s, a) f(s, 0, a)
#else
#define EACH_OTHER(f, s, a) (f(s, 0, a) && f(s, 1, a))
#endif
#define headers(n, d) ALL(seen, n, d)
#define in_published(m, n, d) (dom(m) != (d) || published[m] >= (n))
#define in_span(m, n, d) (dom(m) != (d) || spans[m] >= (n))
#define in_consumed(m, n, d) (dom(m) != (d) || consumed[m] + DEPTH >= (n))
#define in_watermark(m, n, r) (dom(m) != dom(r) || watermark(m, r) + DEPTH + SLACK >= (n))
#define in_home(m, tokens, d) (dom(m) != (d) || home[m] >= (tokens))
#define row_free(n, d) ALL(in_consumed, n, d) /* every member of the domain has consumed n-D */

/* ---- one rank: application, source, home, completion */
#define next_op(r) (published[r] + 1)
#define user_starts(r, n)                                      \
  (user[r] == WAIT_FIRST -> consumed[r] + 1 >= (n)             \
                         : (user[r] == RUN_AFTER_PREV -> consumed[r] + 2 >= (n) && spans[r] + 1 >= (n) : true))
#define may_start(r, n) \
  ((n) <= OPS && user_starts(r, n) && (!is_combine(n) || consumed[r] >= source_of(n)) && ALL(in_watermark, n, r))

#define next_run(r) dispatch_op(dispatches(spans[r]))
#define user_runs(r, n)      \
  (published[r] > (n) ||     \
   (user[r] != RUN_AFTER_NEXT && (user[r] != RUN_AFTER_PREV || consumed[r] + 1 >= (n))))
#define may_run(r, n) \
  ((n) <= OPS && published[r] >= (n) && user_runs(r, n) && headers(n, dom(r)) && plan_returned(r))

/* domains outermost: one cursor per channel walks over op, domain, token */
#define index_of(s, k) (sent[ring(s, k)] / per_op(k))
#if N == 2
#define cursor_at(s, k) true
#else
#define cursor_at(s, k)                                                  \
  ((k) == 0 -> sent[ring(s, 1)] >= index_of(s, 0) * per_op(1)            \
            : sent[ring(s, 0)] >= (index_of(s, 1) + 1) * per_op(0))
#endif
#define may_send(s, k)                                                                            \
  (dispatch_op(index_of(s, k)) <= published[s] && sent[ring(s, k)] - dispatch_credit(ring(s, k)) < SLOTS && \
   cursor_at(s, k) && pool_free(s))
#ifdef LATE /* the credit alone says that the slot's previous write has arrived: no arrival ack */
#define check_slot_free(sent_count, arrived_count) assert(sent_count < SLOTS || arrived_count + SLOTS > sent_count)
#else
#define check_slot_free(sent_count, arrived_count) skip
#endif
#define SEND(k)                                                     \
  ::atomic {                                                        \
    may_send(r, k) -> check_slot_free(sent[ring(r, k)], at_forwarder(ring(r, k))); \
    sent[ring(r, k)]++;                                             \
    pool_take(r)                                                    \
  }

#define record_there(s, k, unused) (!routed(home[s], k) || at_home(ring(s, k)) > records(home[s], k))
#define may_combine(s) \
  (ALL(in_published, combine_op(home[s] / T), dom(s)) && EACH_OTHER(record_there, s, 0))

#define own_sent(s, k, n) (sent[ring(s, k)] >= dispatches(n) * per_op(k))
#define ring_forwarded(s, k, n, d) (other(s, k) != (d) || forwarded[ring(s, k)] >= dispatches(n) * per_op(k))
#define ring_partials(s, k, n, d) (other(s, k) != (d) || partials[ring(s, k)] >= combines(n) * per_op(k))
#if N == 2
#define all_forwarded(s, n, d) ring_forwarded(s, 0, n, d)
#define all_partials(s, n, d) ring_partials(s, 0, n, d)
#else
#define all_forwarded(s, n, d) (ring_forwarded(s, 0, n, d) && ring_forwarded(s, 1, n, d))
#define all_partials(s, n, d) (ring_partials(s, 0, n, d) && ring_partials(s, 1, n, d))
#endif
#define dispatch_done(r, n) \
  (ALL(in_span, n, dom(r)) && EACH_OTHER(own_sent, r, n) && ALL(all_forwarded, n, dom(r)))
/* own tokens combined, own forwarding done, own rows pulled by every home of the domain and by its forwarders */
#define combine_done(r, n) (ALL(in_home, combines(n) * T, dom(r)) && ALL(all_partials, n, dom(r)))
#define may_complete(r, n)                     \
  (published[r] >= (n) && headers(n, dom(r)) && \
   (is_combine(n) -> combine_done(r, n) : dispatch_done(r, n)))

inline choose_user(r, n) {
#if DEPTH > 1
  if
  :: n == OPS || is_combine(n) -> user[r] = FREE
  :: n < OPS && is_combine(n) -> user[r] = WAIT_FIRST
  :: n < OPS && !is_combine(n) && order_is(n, 1) -> user[r] = FREE; order_set(n, 1)
  :: n < OPS && !is_combine(n) && order_is(n, 1) -> user[r] = WAIT_FIRST; order_set(n, 1)
  :: n < OPS && !is_combine(n) && order_is(n, 1) -> user[r] = RUN_AFTER_PREV; order_set(n, 1)
  :: n < OPS && !is_combine(n) && order_is(n, 2) && !(is_combine(n + 1) && source_of(n + 1) == n) ->
     user[r] = RUN_AFTER_NEXT; order_set(n, 2)
  fi
#else
  skip /* with one op in flight the next one cannot start before this one is done, whatever the application does */
#endif
}

proctype Application(byte r) {
end:
  do
  :: atomic {
       may_start(r, next_op(r)) ->
       assert(row_free(next_op(r), dom(r))); /* board row n, counter row n mod D, span word n mod D */
#ifdef PLAN_BLOCKS
       if
       :: user[r] == RUN_AFTER_NEXT -> planning[r] = next_op(r)
       :: else
       fi;
#endif
       published[r]++;
       tell(r);
       choose_user(r, published[r])
     }
  :: atomic { may_run(r, next_run(r)) -> spans[r] = next_run(r) }
  od
}

proctype Rank(byte r) {
end:
  do
  SEND(0)
#if N > 2
  SEND(1)
#endif
  :: atomic {
       may_combine(r) ->
#ifdef POOL
       pool[forwarder(r, 0)] = pool[forwarder(r, 0)] - routed(home[r], 0);
#if N > 2
       pool[forwarder(r, 1)] = pool[forwarder(r, 1)] - routed(home[r], 1);
#endif
#endif
       home[r]++
     }
  :: atomic { may_complete(r, consumed[r] + 1) -> consumed[r]++ }
  od
}

/* ---- the forwarder's duty for one source in one other domain; every ring is tried on its own: round-robin with
   try-operations can reach any order of these steps */
#define chunk_op(s, k) dispatch_op(forwarded[ring(s, k)] / per_op(k))
#define may_forward(s, k) \
  (headers(chunk_op(s, k), other(s, k)) && ALL(in_span, chunk_op(s, k), other(s, k)))
#define partial_op(s, k) combine_op(partials[ring(s, k)] / per_op(k))
#define inputs_ready(s, k) ALL(in_published, partial_op(s, k), other(s, k))

proctype Duty(byte s; byte k) {
end:
  do
#ifdef BLOCKING
  :: atomic {
       stuck_at[forwarder(s, k)] == 0 && at_forwarder(ring(s, k)) > forwarded[ring(s, k)] ->
       stuck_at[forwarder(s, k)] = 1 + ring(s, k)
     }
  :: atomic {
       stuck_at[forwarder(s, k)] == 0 && inputs_ready(s, k) -> stuck_at[forwarder(s, k)] = 1 + RINGS + ring(s, k)
     }
#endif
  :: atomic {
       may_serve(forwarder(s, k), 1 + ring(s, k)) && at_forwarder(ring(s, k)) > forwarded[ring(s, k)] &&
           may_forward(s, k) ->
       assert(row_free(chunk_op(s, k), other(s, k))); /* the counter row it raises */
       forwarded[ring(s, k)]++;
       pool_give(s);
       served(forwarder(s, k))
     }
  :: atomic {
       may_serve(forwarder(s, k), 1 + RINGS + ring(s, k)) && inputs_ready(s, k) &&
           partials[ring(s, k)] - combine_credit(s, k) < SLOTS && pool_free(forwarder(s, k)) ->
       check_slot_free(partials[ring(s, k)], at_home(ring(s, k)));
       partials[ring(s, k)]++;
       pool_take(forwarder(s, k));
       served(forwarder(s, k))
     }
  od
}

#ifdef LATE
/* what the two daemons carry between a source and one other domain, each kind at its own pace; a header is copied to
   the board only when every member of that domain has consumed n-D */
proctype Wire(byte s; byte k) {
end:
  do
  :: atomic {
       on_board[ring(s, k)] < published[s] && row_free(on_board[ring(s, k)] + 1, other(s, k)) -> on_board[ring(s, k)]++
     }
  :: atomic { arrived[ring(s, k)] < sent[ring(s, k)] -> arrived[ring(s, k)]++ }
  :: atomic { credit[ring(s, k)] < forwarded[ring(s, k)] -> credit[ring(s, k)]++ }
  :: atomic { arrived_back[ring(s, k)] < partials[ring(s, k)] -> arrived_back[ring(s, k)]++ }
  :: atomic { credit_back[ring(s, k)] < records(home[s], k) -> credit_back[ring(s, k)]++ }
  od
}
#endif

#define finished(r, unused, unused2) (consumed[r] == OPS)
#define drained(s, k, unused) (forwarded[ring(s, k)] == sent[ring(s, k)] && partials[ring(s, k)] == records(home[s], k))
#define all_drained(s, unused, unused2) (EACH_OTHER(drained, s, 0) && home[s] == combines(OPS) * T)

/* SCHEDULE: applications move only when nothing else can, so that their choices are explored and few of the orders of
   the other steps. Enough where a step that is possible stays possible until it is taken: the model without mutants. */
#ifdef SCHEDULE
#define APPLICATION priority 2
#define LIBRARY priority 3
#else
#define APPLICATION
#define LIBRARY
#endif

init {
  byte i, j;
  atomic {
    for (i : 0 .. R - 1) {
      run Application(i) APPLICATION;
      run Rank(i) LIBRARY;
      for (j : 0 .. N - 2) {
        run Duty(i, j) LIBRARY;
#ifdef LATE
        run Wire(i, j) LIBRARY
#endif
      }
    }
    i = 0;
    j = 0
  }
  /* no end label here: stopping anywhere short of this is an invalid end state */
  atomic { ALL(finished, 0, 0) -> assert(ALL(all_drained, 0, 0)) }
}
