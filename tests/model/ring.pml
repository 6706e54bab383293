/*
 * One ring over a fabric that keeps no order: slots, arrivals, credits. docs/progress.md explains it.
 *
 * Slot i of the sender is written to slot i of the receiver. The sender fills a slot when it holds a credit for it.
 * A write lands at any time, its immediate is delivered later, perhaps twice. The receiver publishes the contiguous
 * prefix, the consumer takes the slots in order and credits go back as a 16-byte word {v, ~v} of which either half may
 * land first; the sender's daemon reads it when the immediate comes and takes no notice of a torn pair.
 *
 * Parameters (-D): SLOTS per ring, CHUNKS to send, SEQ modulus of the sequence number in the immediate, COPIES of an
 * immediate, BATCH: credits that are given together. CREDITS_IN_FLIGHT: a credit word is posted while earlier ones of the ring are under way. With ORDERED (a
 * fabric that keeps the order of writes and of immediates, as tcp does) this is right, without it is a mutant.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHUNKS
#define CHUNKS 5
#endif
#ifndef SEQ
#define SEQ 16
#endif
#ifndef COPIES
#define COPIES 2
#endif

#ifndef BATCH
#define BATCH 1
#endif

#ifdef CREDITS_IN_FLIGHT
#define may_post true
#else
#define may_post (under_way == 0)
#endif

byte tx[SLOTS];       /* chunk in the slot, counted from 1 */
bool in_flight[SLOTS]; /* the NIC may still read the slot */
byte rx[SLOTS];
bool bitmap[SLOTS]; /* offset from the prefix */
byte sent, prefix, consumed, credit, posted;
byte low, high; /* the landing place of the credit word */
byte under_way; /* credit words posted and not yet delivered */
#ifdef ORDERED
byte landed, announced; /* credit words so far */
#define may_land(turn) (landed == (turn) - 1)
#define may_announce(turn) (announced == (turn) - 1)
#define has_landed landed++
#define has_announced announced++
#else
#define may_land(turn) true
#define may_announce(turn) true
#define has_landed skip
#define has_announced skip
#endif

inline deliver(chunk) {
  offset = ((chunk - 1) % SEQ + SEQ - prefix % SEQ) % SEQ;
  if
  :: offset < SLOTS -> bitmap[offset] = true
  :: else /* a copy of an old one */
  fi;
  do
  :: bitmap[0] ->
     prefix++;
     i = 0;
     do
     :: i < SLOTS - 1 -> bitmap[i] = bitmap[i + 1]; i++
     :: else -> bitmap[SLOTS - 1] = false; break
     od
  :: else -> break
  od;
  offset = 0;
  i = 0
}

proctype DataWrite(byte chunk) {
  byte offset, i, copies;
  d_step { /* the data lands */
    assert(tx[(chunk - 1) % SLOTS] == chunk);
    assert(consumed + SLOTS >= chunk); /* what lay there has been consumed */
    rx[(chunk - 1) % SLOTS] = chunk;
    in_flight[(chunk - 1) % SLOTS] = false
  }
  d_step { deliver(chunk) }
  do
  :: copies + 1 < COPIES -> d_step { copies++; deliver(chunk) }
  :: break
  od
}

proctype CreditWrite(byte value; byte turn) {
  byte a, b;
  may_land(turn);
  if
  :: low = value; high = value
  :: high = value; low = value
  fi;
  has_landed;
  may_announce(turn);
  a = low; /* the immediate: read, check, take the maximum */
  b = high;
  d_step {
    if
    :: a == b && a > credit -> credit = a
    :: else
    fi;
    under_way--;
    has_announced
  }
}

active proctype Sender() {
  byte slot;
  do
  :: sent < CHUNKS ->
     atomic {
       sent - credit < SLOTS;
       slot = sent % SLOTS;
       assert(!in_flight[slot]); /* the credit implies the arrival: no ack is needed to reuse the tx slot */
       sent++;
       tx[slot] = sent;
       in_flight[slot] = true;
       run DataWrite(sent)
     }
  :: else -> break
  od
}

active proctype Consumer() {
  do
  :: consumed < CHUNKS ->
     d_step {
       consumed < prefix;
       assert(rx[consumed % SLOTS] == consumed + 1);
       rx[consumed % SLOTS] = 0;
       consumed++
     }
  :: else -> break
  od
}

active proctype CreditPoster() {
  byte turn;
  do
  :: posted + BATCH <= CHUNKS ->
     atomic {
       consumed - posted >= BATCH && may_post ->
       posted = consumed;
       under_way++;
       turn++;
       run CreditWrite(posted, turn)
     }
  :: else -> break
  od
  credit == posted && posted + BATCH > CHUNKS /* the sender learns of every credit that was given */
}
