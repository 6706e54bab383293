/*
 * Headers and what is kept per operation: header slots at the peer daemon, boards, counters. docs/progress.md explains.
 *
 * The data plane is left out: an op is done at a rank as soon as its headers and the local writers allow. A real data
 * plane only delays this, so what never happens here never happens there. One pair, rank 0 -> the second domain, is
 * followed header by header and in any order of landing; for the other pairs it is enough to count, because ops are
 * completed in order, and by symmetry the one pair stands for all.
 *
 * Parameters (-D): R ranks, N domains, DEPTH, OPS, HEADER_SLOTS per source at a peer daemon (the design: 2 DEPTH + 1),
 * BOARD_ROWS (DEPTH + 1), COUNTER_ROWS (DEPTH). MUTANT: SLACK, ops are gated on consumed n-D-SLACK.
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
#ifndef HEADER_SLOTS
#define HEADER_SLOTS (2 * DEPTH + 1)
#endif
#ifndef BOARD_ROWS
#define BOARD_ROWS (DEPTH + 1)
#endif
#ifndef COUNTER_ROWS
#define COUNTER_ROWS DEPTH
#endif
#ifndef OPS
#define OPS (3 * DEPTH + 3)
#endif
#ifndef SLACK
#define SLACK 0
#endif

#define WIDTH ((R + N - 1) / N)
#define dom(r) ((r) / WIDTH)

byte published[R];
byte counted[R];   /* last op for which the rank has raised its counters at the receivers of its domain */
byte consumed[R];
byte on_board[R * N]; /* headers of a source on the board of a domain; not used for the followed pair */

/* the followed pair */
bool flying[OPS + 1];
byte slot[HEADER_SLOTS]; /* op of the header that lies there, 0 when it has been copied */
byte row[BOARD_ROWS];    /* op of the header of rank 0 on the board of domain 1 */

#if R == 2
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b))
#elif R == 3
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b) && f(2, a, b))
#else
#define ALL(f, a, b) (f(0, a, b) && f(1, a, b) && f(2, a, b) && f(3, a, b))
#endif
#define followed(s, d) ((s) == 0 && (d) == 1)
#define seen(s, n, d)                                                       \
  (dom(s) == (d) -> published[s] >= (n)                                     \
                 : (followed(s, d) -> row[(n) % BOARD_ROWS] == (n)          \
                                   : on_board[(s) * N + (d)] >= (n)))
#define headers(n, d) ALL(seen, n, d)
#define in_gate(m, n, d) (dom(m) != (d) || consumed[m] + DEPTH + SLACK >= (n))
#define gate(n, d) ALL(in_gate, n, d)
#define in_counted(m, n, d) (dom(m) != (d) || counted[m] >= (n))
#define in_past(m, n, d) (dom(m) != (d) || consumed[m] >= (n))
/* every member of the domain has consumed what a row of this depth held before op n */
#define row_free(n, rows, d) ((n) <= (rows) || ALL(in_past, (n) - (rows), d))

proctype Rank(byte r) {
end:
  do
  :: atomic {
       published[r] < OPS && gate(published[r] + 1, dom(r)) ->
       published[r]++;
       assert(row_free(published[r], BOARD_ROWS, dom(r)));
       if
       :: r == 0 -> flying[published[r]] = true
       :: else
       fi
     }
  :: atomic {
       counted[r] < published[r] && headers(counted[r] + 1, dom(r)) ->
       counted[r]++;
       assert(row_free(counted[r], COUNTER_ROWS, dom(r)))
     }
  :: atomic {
       consumed[r] < published[r] && headers(consumed[r] + 1, dom(r)) && ALL(in_counted, consumed[r] + 1, dom(r)) ->
       consumed[r]++
     }
  od
}

proctype Deliver(byte s; byte d) {
end:
  do
  :: atomic {
       on_board[s * N + d] < published[s] && gate(on_board[s * N + d] + 1, d) -> on_board[s * N + d]++
     }
  od
}

/* header n lands in its slot whenever the fabric likes, also before header n-1 */
proctype Land(byte n) {
end:
  atomic {
    flying[n] ->
    assert(slot[n % HEADER_SLOTS] == 0); /* the one before it has been copied to the board */
    slot[n % HEADER_SLOTS] = n;
    flying[n] = false
  }
}

/* the daemon looks at its slots in any order */
proctype Copy(byte i) {
end:
  do
  :: atomic {
       slot[i] != 0 && gate(slot[i], 1) ->
       assert(row_free(slot[i], BOARD_ROWS, 1));
       row[slot[i] % BOARD_ROWS] = slot[i];
       slot[i] = 0
     }
  od
}

#define finished(r, unused, unused2) (consumed[r] == OPS)

init {
  byte i, j;
  atomic {
    for (i : 0 .. R - 1) {
      run Rank(i);
      for (j : 0 .. N - 1) {
        if
        :: dom(i) != j && !followed(i, j) -> run Deliver(i, j)
        :: else
        fi
      }
    }
    for (i : 1 .. OPS) {
      run Land(i)
    }
    for (i : 0 .. HEADER_SLOTS - 1) {
      run Copy(i)
    }
    i = 0;
    j = 0
  }
  /* no end label here: stopping anywhere short of this is an invalid end state */
  ALL(finished, 0, 0)
}
