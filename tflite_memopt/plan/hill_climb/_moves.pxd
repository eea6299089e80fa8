# cython: language_level=3
# The C types of moves.py, which is compiled as _moves; a test compares the two.

cdef long long TOP
cdef long long BEST
cdef long long MOVES
cdef long long STALL
cdef long long RANDOM
cdef long long CHANGES
cdef long long WORK
cdef long long SLACK
cdef long long PERIOD

cdef class ClimbData:
    cdef public long long[::1] size
    cdef public long long[::1] alignment
    cdef public long long[::1] conflict_from
    cdef public long long[::1] conflict_other
    cdef public long long[::1] conflict_low
    cdef public long long[::1] conflict_high
    cdef public long long[::1] neighbor_from
    cdef public long long[::1] neighbor
    cdef public long long[::1] free

cdef class ClimbState:
    cdef public long long[::1] offset
    cdef public long long[::1] rank
    cdef public long long[::1] order
    cdef public long long[::1] best
    cdef public long long[::1] is_queued
    cdef public long long[::1] changed
    cdef public long long[::1] before
    cdef public long long[::1] forbidden_low
    cdef public long long[::1] forbidden_high
    cdef public long long[::1] registers

cpdef void place_all(ClimbData d, ClimbState s) noexcept
cpdef void climb(ClimbData d, ClimbState s, long long bound, long long moves, long long stall, long long work) noexcept
cpdef long long exchange(ClimbData d, ClimbState s, long long first, long long second) noexcept
cdef long long _settle_from(ClimbData d, ClimbState s, long long low) noexcept
cdef void _queue_later(ClimbData d, ClimbState s, long long item, long long turn) noexcept
cdef long long _may_fall(ClimbData d, ClimbState s, long long conflict, long long offset) noexcept
cdef void _swap(ClimbState s, long long first, long long second) noexcept
cdef long long _lowest(ClimbData d, ClimbState s, long long item) noexcept
cdef long long _top(ClimbData d, ClimbState s) noexcept
cdef void _keep_if_better(ClimbData d, ClimbState s) noexcept
cdef long long _pick_first(ClimbData d, ClimbState s) noexcept
cdef long long _pick_second(ClimbData d, ClimbState s, long long first) noexcept
cdef long long _neighbor(ClimbData d, ClimbState s, long long item) noexcept
cdef long long _random(ClimbState s, long long count) noexcept
