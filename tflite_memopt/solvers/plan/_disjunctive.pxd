# cython: language_level=3
# The C types of disjunctive.py, which is compiled as _disjunctive; a test compares the two.

cdef long long NEVER
cdef long long _PARTS
cdef long long FOUND
cdef long long NONE
cdef long long LIMIT
cdef long long FULL
cdef long long CAPACITY
cdef long long DEPTH
cdef long long TRAIL
cdef long long QUEUED
cdef long long DIRTY
cdef long long NODES
cdef long long WORK
cdef long long STAMP
cdef long long CAUSE
cdef long long REGISTERS
cdef long long _LEAST
cdef long long _MOST
cdef long long _DECIDED
cdef long long _DEEPEST
cdef long long _BIT

cdef class PairData:
    cdef public long long[::1] size
    cdef public long long[::1] alignment
    cdef public long long[::1] fixed
    cdef public long long[::1] conflict_from
    cdef public long long[::1] upper_from
    cdef public long long[::1] conflict_owner
    cdef public long long[::1] conflict_other
    cdef public long long[::1] conflict_low
    cdef public long long[::1] conflict_high
    cdef public long long[::1] conflict_mate
    cdef public long long[::1] row_from
    cdef public long long[::1] row_item
    cdef public long long[::1] row_need
    cdef public long long[::1] own_from
    cdef public long long[::1] own_row
    cdef public long long rule
    cdef public long long reserve

cdef class PairState:
    cdef public long long[::1] least
    cdef public long long[::1] most
    cdef public long long[::1] least_cause
    cdef public long long[::1] most_cause
    cdef public long long[::1] decided
    cdef public long long[::1] decided_cause
    cdef public long long[::1] weight
    cdef public long long[::1] queue
    cdef public long long[::1] is_queued
    cdef public long long[::1] dirty
    cdef public long long[::1] is_dirty
    cdef public long long[::1] least_stamp
    cdef public long long[::1] most_stamp
    cdef public long long[::1] trail_kind
    cdef public long long[::1] trail_at
    cdef public long long[::1] trail_value
    cdef public long long[::1] trail_cause
    cdef public long long[::1] frame_conflict
    cdef public long long[::1] frame_mark
    cdef public long long[::1] frame_side
    cdef public long long[::1] registers

cpdef void start_pairs(PairData d, PairState s, long long capacity) noexcept
cpdef long long run_pairs(PairData d, PairState s, long long nodes, long long work) noexcept
cdef long long _branch(PairData d, PairState s, long long conflict) noexcept
cdef long long _turn_back(PairData d, PairState s) noexcept
cdef long long _try_side(PairData d, PairState s, long long conflict, long long side, long long cause) noexcept
cdef long long _collision(PairData d, PairState s) noexcept
cdef long long _room(PairData d, PairState s, long long conflict) noexcept
cdef long long _propagate(PairData d, PairState s) noexcept
cdef long long _push_neighbors(PairData d, PairState s, long long item) noexcept
cdef void _decide(PairData d, PairState s, long long conflict, long long side, long long cause) noexcept
cdef long long _apply(PairData d, PairState s, long long conflict) noexcept
cdef void _blame(PairData d, PairState s, long long conflict) noexcept
cdef long long _raise(PairData d, PairState s, long long item, long long offset, long long cause) noexcept
cdef long long _lower(PairData d, PairState s, long long item, long long offset, long long cause) noexcept
cdef void _changed(PairData d, PairState s, long long item) noexcept
cdef long long _has_room(PairData d, PairState s, long long row) noexcept
cdef void _record(PairState s, long long kind, long long at, long long value, long long cause) noexcept
cdef void _undo(PairData d, PairState s, long long mark) noexcept
