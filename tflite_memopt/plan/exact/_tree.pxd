# cython: language_level=3
# The C types of tree.py, which is compiled as _tree; a test compares the two.

cdef long long NEVER
cdef long long FOUND
cdef long long NONE
cdef long long LIMIT
cdef long long FULL
cdef long long _COMPLETE
cdef long long _CLOSED
cdef long long _OPEN
cdef long long CAPACITY
cdef long long DEPTH
cdef long long TRAIL
cdef long long PARTS
cdef long long DIRTY
cdef long long NODES
cdef long long WORK
cdef long long _LEAST
cdef long long _CANDIDATE
cdef long long _PLACED
cdef long long _RANK

cdef class TreeData:
    cdef public long long[::1] size
    cdef public long long[::1] alignment
    cdef public long long[::1] fixed
    cdef public long long[::1] first
    cdef public long long[::1] last
    cdef public long long[::1] conflict_from
    cdef public long long[::1] conflict_other
    cdef public long long[::1] conflict_low
    cdef public long long[::1] conflict_high
    cdef public long long[::1] count_from
    cdef public long long[::1] count_row
    cdef public long long[::1] count_bytes
    cdef public long long[::1] row_from
    cdef public long long[::1] row_item
    cdef public long long[::1] row_load
    cdef public long long[::1] row_spare
    cdef public long long[::1] order
    cdef public long long by_load
    cdef public long long canonical
    cdef public long long decomposes
    cdef public long long ranks_anew
    cdef public long long infers
    cdef public long long reserve

cdef class TreeState:
    cdef public long long[::1] least
    cdef public long long[::1] candidate
    cdef public long long[::1] placed
    cdef public long long[::1] left
    cdef public long long[::1] crossing
    cdef public long long[::1] rank
    cdef public long long[::1] items
    cdef public long long[::1] keys
    cdef public long long[::1] spare
    cdef public long long[::1] trail_kind
    cdef public long long[::1] trail_at
    cdef public long long[::1] trail_value
    cdef public long long[::1] frame_low
    cdef public long long[::1] frame_high
    cdef public long long[::1] frame_base
    cdef public long long[::1] frame_mark
    cdef public long long[::1] frame_item
    cdef public long long[::1] frame_offset
    cdef public long long[::1] frame_begin
    cdef public long long[::1] frame_turn
    cdef public long long[::1] parts
    cdef public long long[::1] dirty
    cdef public long long[::1] is_dirty
    cdef public long long[::1] registers

cpdef void start(TreeData d, TreeState s, long long capacity) noexcept
cpdef long long run(TreeData d, TreeState s, long long nodes, long long work) noexcept
cdef void _push(TreeState s, long long low, long long high) noexcept
cdef long long _visit(TreeData d, TreeState s) noexcept
cdef long long _lowest_candidate(TreeState s, long long low, long long high) noexcept
cdef long long _raise_waiting(TreeData d, TreeState s, long long low, long long high, long long floor) noexcept
cdef long long _lowest_support(TreeData d, TreeState s, long long item, long long floor) noexcept
cdef long long _aligned(TreeData d, long long item, long long offset) noexcept
cdef long long _place(TreeData d, TreeState s, long long item, long long offset) noexcept
cdef long long _make_room(TreeData d, TreeState s, long long item, long long end) noexcept
cdef long long _go_to(TreeData d, TreeState s, long long item, long long floor) noexcept
cdef long long _wait(TreeData d, TreeState s, long long item, long long offset) noexcept
cdef long long _lowest_allowed(TreeData d, TreeState s, long long item, long long floor) noexcept
cdef long long _raise(TreeData d, TreeState s, long long item, long long bound) noexcept
cdef void _set_candidate(TreeState s, long long item, long long offset) noexcept
cdef void _mark(TreeState s, long long row) noexcept
cdef void _forget_dirty(TreeState s) noexcept
cdef long long _settle(TreeData d, TreeState s) noexcept
cdef void _count(TreeData d, TreeState s, long long item, long long sign) noexcept
cdef void _record(TreeState s, long long kind, long long item, long long value) noexcept
cdef void _undo(TreeData d, TreeState s, long long mark) noexcept
cdef void _open_parts(TreeData d, TreeState s, long long item) noexcept
cdef long long _split(TreeData d, TreeState s, long long low, long long high, long long section) noexcept
cdef long long _finish(TreeData d, TreeState s) noexcept
cdef long long _parts_end(TreeState s, long long depth) noexcept
cdef long long _go_back(TreeData d, TreeState s) noexcept
cdef long long _after_failure(TreeData d, TreeState s) noexcept
cdef void _rank_slice(TreeData d, TreeState s, long long low, long long high) noexcept
cdef void _sort_slice(TreeState s, long long low, long long high) noexcept
