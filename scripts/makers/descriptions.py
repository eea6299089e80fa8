"""What every field of the JSON means, for its schemas: by dataclass, then by field. Sizes are bytes, times seconds."""

from __future__ import annotations

from collections.abc import Mapping

_NAME = "Name of the file that was read, without its folder; null where bytes were given."
_TARGET = "Core or chip that figures are for; null: any 32-bit one."
_KERNELS = "Name of the kernel profile that figures are for."
_SUBGRAPH = "Number of the subgraph in the file, from 0."
_INDEX = "Position of the operator in its subgraph, from 0."
_OPERATOR = "Kind of the operator: its name in the TFLite schema, or the code of a custom operator."
_OUTPUT = "Name of the operator's first output."
_SHAPE = "Size along each axis."
_TYPE = "Element type, as NumPy names it where it has it."
_MACS = "Multiply-accumulates."
_OPERATORS = "Number of operators, those of all subgraphs."
_SUMMARY = "The same in sentences, for people; for programs there are the other fields."
_ARENA = "What lies where and when in the head."
_LOOPS = "Regions that run as one loop."
_TFLM = "Whether TensorFlow Lite Micro has kernels for the model."
_DEVICE = "Chip or board that --target named; null where it named a core or nothing."
_METHOD = "Name of the method, as --scheduler or --planner takes it."
_OPTIMAL = "Whether it is proved that nothing smaller exists."
_GAP = "Bytes by which the result is above lower_bound; 0 where it is optimal."
_ENDED_BY = 'What ended the search: "proof", "work_limit" (its own, the same on every machine) or "clock" (time_limit).'
_RULE = "Name of the rule, or of several joined by ' + '."
_OBJECTIVE = '"total": the whole arena; "head": the part that tensors share over time.'
_SCOPES = "Time is counted in scopes, as TFLM does."
_LIMITS = "What would have to get smaller for the model to need less, in sentences."
_ADVICE = "Options that could lower the result further."

FIELDS: Mapping[str, Mapping[str, str]] = {
    "Way": {
        "flags": "Flags of optimize that write it.",
        "need": "Bytes of RAM to reserve; null without such a result.",
        "slowdown": "Run time that it adds, as a fraction, with the slowest library; null without such a result.",
        "fits": "Whether it meets the budget.",
        "reason": "Why there is no such result; null where there is one.",
    },
    "DeclinedUse": {
        "need": "Bytes of the objective.",
        "slowdown": "Run time that it adds, as a fraction, with the slowest library.",
        "kernel_bytes": "Flash of its new kernels on Cortex-M4, in bytes; null where not measured.",
        "tflm_since": "Day of the oldest TFLM that has them; null where any has.",
    },
    "Report": {
        "version": "Version of tflite-memopt.",
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "options": "Options that decide the result, by name as in Python; files without their folder.",
        "objective": f"What was made small. {_OBJECTIVE}",
        "budget": "What --budget allows, in bytes; null without one.",
        "within_budget": "Whether the result meets the budget; null without one.",
        "binding": "Where a budget is not met: the operator that needs most; null otherwise.",
        "before": "The memory of the model as it came.",
        "after": "The memory of the result.",
        "bounds": "Lower bounds on the head of the result.",
        "interface": 'Inputs, then outputs, of the model "before" and "after".',
        "schedule": "The search for the order of operators.",
        "plan": "The search for the places of tensors, in the order in force.",
        "rewrites": "What was changed in the graph, in the order in which it was done.",
        "refused": "What fits a rule and was left as it is, with the reason.",
        "sharing": "Outputs that share bytes with an input of their operator, most bytes first.",
        "operators_added": "Kinds of operators that the firmware's op resolver must have and did not need before.",
        "kernel_bytes": "Flash of the kernels of operators_added on Cortex-M4, in bytes; null where not measured.",
        "tflm_since": "Day of the oldest TFLM that has them; null where any has.",
        "ways": "Where the budget is missed: what the model needs in parts, and fed row by row.",
        "declined": "A result that needs less and was not worth its price; null without one.",
        "libraries": 'What the model needs "before" and "after" under each kernel library, by the name of its profile.',
        "equivalence": "Verdict on equality, by runtime; empty where it was switched off.",
        "basis": "What the verdicts rest on.",
        "runner": 'What the user\'s --runner measured of the model "before" and "after"; null without one.',
        "file_bytes": 'Size of the file "before" and "after", in bytes.',
        "sha256": 'SHA-256 of the file "before" and "after", in hexadecimal.',
        "timing": "Seconds of wall time by stage, and in all (total): the only part that varies between equal runs.",
        "warnings": "What to know before flashing, in sentences.",
        "summary": _SUMMARY,
        "arena": 'What lies where and when in the head, "before" and "after".',
        "loops": _LOOPS,
        "decision": "What the searches decided, on one line; optimize --replay does the same again without a search.",
        "least_in_stripes": "Bytes of the objective that nothing goes below that the search for stripes looks at; null "
        "without such a search.",
        "tflm": f"{_TFLM} For the result.",
        "mended": "What kept TFLM from loading the file as it came, where rewrites mend that; else null.",
        "device": _DEVICE,
        "proofs": 'Proofs for all inputs, of the "result" and of its "plan"; empty without verification.',
    },
    "ProofUse": {
        "status": '"proved", "reassociated" (proved as real polynomials), "different" or "unknown".',
        "reason": "Why it is not proved; null where it is.",
        "chance": "Upper bound on the probability that the proof is false, over its random keys.",
        "facts": "Names of the facts about kernels that it leans on.",
    },
    "DeviceUse": {
        "name": "Name of the chip or board.",
        "chip": "Name of the chip.",
        "ram_bytes": "RAM that one array can take, in bytes.",
        "flash_bytes": "Flash of the chip or board, in bytes; null where it is not known.",
    },
    "Analysis": {
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "file_bytes": "Size of the file, in bytes.",
        "sha256": "SHA-256 of the file, in hexadecimal.",
        "planned_for": "What the offline plan in the file was made for; null without a plan of this tool.",
        "memory": "The memory of the model as it stands.",
        "libraries": "What the model needs under each kernel library, by the name of its profile.",
        "bounds": "Lower bounds on the head.",
        "steps": "Every operator with its working set, in the order in which they run.",
        "summary": _SUMMARY,
        "arena": _ARENA,
        "loops": _LOOPS,
        "tflm": _TFLM,
        "mends": "Whether optimize makes a model of it that TensorFlow Lite Micro can run.",
        "device": _DEVICE,
    },
    "Comparison": {
        "model": _NAME,
        "kernels": _KERNELS,
        "operators": _OPERATORS,
        "schedulers": "What each scheduler found.",
        "planned_order": "Name of the scheduler whose order all planners plan.",
        "planners": "What each planner found in that order.",
        "shared_objects": "For runtimes that cannot place tensors at offsets: what each strategy found.",
        "fusion_layers": "Convolutions and pools that the model begins with, which msf-CNN fuses; 0 if nobody asked.",
        "fusion": "What msf-CNN finds under each limit of its paper; empty if nobody asked.",
    },
    "FusionUse": {
        "problem": "What is made small.",
        "limit": "Least RAM: the most MACs, in times those of no fusion. Fewest MACs: the most bytes. Null: none.",
        "ends_counted": "Whether the bytes are with the input of the first layer and the output of the last.",
        "bytes": "Peak of the blocks, in bytes; null where nothing keeps the limit.",
        "macs": "MACs of all blocks; null where nothing keeps the limit.",
        "blocks": 'Layers that are fused, counted from 0, such as "0-12".',
    },
    "MethodUse": {
        "method": _METHOD,
        "bytes": "Of a scheduler the largest working set, of a planner the head, of shared objects the sum; in bytes.",
        "lower_bound": "Bytes that no method goes below.",
        "optimal": _OPTIMAL,
        "seconds": "Wall time of the method: it varies between equal runs.",
        "states": "How many states a scheduler visited; null where nothing is counted.",
    },
    "Verification": {"verdicts": 'Verdict by runtime; "file" is that of constants and interface, which need no run.'},
    "Exploration": {
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "effort": "Effort of the searches, as --effort takes it.",
        "before": "The model as it came.",
        "points": "The Pareto front, the smallest total first.",
        "searches": "Under how many limits on stripes was searched.",
        "choice": "The point that the budget picks.",
        "warnings": "What to know of the search, in sentences.",
    },
    "FrontPoint": {
        "total": "Arena to reserve, in bytes.",
        "head": "The part of it that tensors share over time, in bytes.",
        "macs": _MACS,
        "operators": _OPERATORS,
        "file_bytes": "Size of the file, in bytes.",
        "limits": "Options of optimize under which it was found, as flags; empty for the default ones.",
        "stripes": "Regions that run in stripes, in words.",
        "slowdown": "Added run time with the library that gets slowest, as a fraction; an estimate.",
        "parts": "Models that run one after another in the arena; the head is then that of the largest.",
    },
    "Choice": {
        "objective": f"What the budget limits. {_OBJECTIVE}",
        "budget": "Bytes that may be used; null without a budget.",
        "point": "Position of the chosen point in the front, from 0: the cheapest that fits, or the nearest.",
        "fits": "Whether it fits the budget; null without one.",
        "limits": _LIMITS,
        "advice": _ADVICE,
    },
    "MemoryUse": {
        "operators": _OPERATORS,
        "tensors": "Number of tensors, those of all subgraphs and constants among them.",
        "macs": _MACS,
        "peak_bytes": "Largest working set: bytes that some operator needs at once, without gaps between tensors.",
        "arena_bytes": "The head: bytes of the arena that tensors and scratch share over time.",
        "tail_bytes": "The tail: bytes of TFLM's own structures, without what aligning the arena takes; "
        'by "32" and "64", the bits of a pointer, and "target" where one is named.',
        "planner_temporary_bytes": "Bytes that TFLM's planner takes while it loads the model, in place of the head; "
        'by "32", "64" and "target".',
        "required_bytes": 'Arena to reserve, in bytes: "32" and "64" for firmware with pointers of so many bits and '
        'enums of 4 bytes, "target" for the named target, and "table" for that with codegen --planner table.',
        "required_is_exact": "False where an operator's structures are a guess: measure the arena then.",
        "instructions": "Instructions of one run by the name of the kernel library, an estimate.",
        "scratch_operators": "How many operators have scratch: memory of the head that is theirs while they run.",
        "tflm": "Bytes that TFLM itself measured on this computer: head, tail and total, and in a module "
        "smallest_arena, the least that it accepts, and pointer_bits; or error, why it did not.",
        "peak": "The operator with the largest working set; null without any operator.",
    },
    "StepUse": {
        "subgraph": _SUBGRAPH,
        "index": _INDEX,
        "operator": _OPERATOR,
        "output": _OUTPUT,
        "bytes": "Working set in bytes; bytes that several tensors share count once.",
        "scratch_bytes": "Scratch of its kernel, in bytes.",
        "macs": _MACS,
        "live": "Tensors that are alive while it runs, the largest first. They may overlap.",
    },
    "LiveTensor": {"name": "Name in the file.", "shape": _SHAPE, "type": _TYPE, "bytes": "Size in the arena."},
    "LibraryNeed": {
        "head": "Bytes of the head that TFLM ends up with.",
        "required": "Arena to reserve, in bytes.",
        "measured": "Whether this library was run; otherwise its needs are read from its source.",
    },
    "Bounds": {
        "io": "Bytes of the head that the model's inputs or its outputs need by themselves.",
        "schedule": "Bytes of the head that no plan of any order goes below.",
        "plan": "Bytes of the head that no plan of the order in force goes below.",
    },
    "InterfaceTensor": {
        "side": '"input" or "output".',
        "name": "Name in the file.",
        "shape": _SHAPE,
        "type": _TYPE,
        "bytes": "Size in the arena.",
        "scale": "real = scale * (value - zero_point); null for what is not quantized with one scale.",
        "zero_point": "See scale.",
    },
    "ReuseInForce": {
        "operator": _OPERATOR,
        "kind": '"view": the output is bytes of the input, nothing is copied. "in-place": written exactly over it. '
        '"overlap": written over a part of it, behind where it is still read.',
        "input": "Name of the input.",
        "output": "Name of the output.",
        "saved_bytes": "Bytes that both are on.",
    },
    "TailPart": {
        "name": "What takes the bytes: structures of TFLM, or the buffers that kernels of one kind keep.",
        "bytes": "Bytes of all of these together.",
        "count": "How many tensors, operators or kernels these are.",
    },
    "ArenaMap": {
        "required": "Bytes of the arena to reserve: on the target, or on 32 bits where none is named.",
        "tail": "TFLM's own structures, at the end of the arena, by part, the largest first.",
        "head": "Bytes of the head.",
        "end": f"The scope in which the model ends. {_SCOPES}",
        "graphs": "Names of the model's subgraphs, the main one first.",
        "tensors": "What lies in the head: tensors and scratch.",
        "steps": "Operators in the order in which they run.",
    },
    "PlacedTensor": {
        "name": "Name in the file; of scratch, that of the operator's output.",
        "shape": _SHAPE,
        "type": _TYPE,
        "bytes": "Size in the arena.",
        "offset": "Its first byte in the head.",
        "start": f"The scope from which on it is alive. {_SCOPES}",
        "end": "The scope in which it is no longer alive.",
        "kind": '"input" or "output" of the model, "inner", or "scratch".',
        "operator": "Position in steps of the operator that writes it; null for an input.",
        "sharing": 'How it shares bytes with an input of that operator: "view", "in-place", "overlap" or "none".',
    },
    "OperatorUse": {
        "subgraph": _SUBGRAPH,
        "index": _INDEX,
        "operator": _OPERATOR,
        "output": _OUTPUT,
        "macs": _MACS,
        "working_set": "Bytes that are in use while it runs.",
        "reach": "The highest byte of the head that is in use then, plus one.",
        "scratch_bytes": "Scratch of its kernel, in bytes.",
        "start": f"The scope in which it begins. {_SCOPES}",
        "end": "The scope before which it has ended.",
    },
    "LoopUse": {
        "result": "Name of the tensor that the loop makes.",
        "turns": "How many turns it takes.",
        "rows": "Rows of the result that each turn writes.",
        "operators": "Kinds of operators that run in a turn, in order.",
        "reads": "Names of tensors that are read a few rows at a time.",
        "line_buffers": "Rows that are kept from one turn to the next.",
    },
    "LineBuffer": {
        "of": "Name of the tensor whose rows are kept.",
        "rows": "How many rows are kept.",
        "bytes": "Their size.",
    },
    "PlanLabel": {
        "kernels": "Kernel profile that the plan was made for.",
        "target": "Target that it was made for; null for any.",
        "decision": "With which optimize --replay makes the same file of the original; empty in files that do not say.",
        "version": "Of the tool that wrote the file; empty in files that do not say.",
        "options": "Option by name: those that are not the default ones and shape the file.",
        "overlaps": "Whether some output overwrites what its kernel still reads: right with these kernels only.",
    },
    "Summary": {
        "headline": "The first line: what the model needs, and how that was checked.",
        "changes": "What was changed, and its price.",
        "limits": _LIMITS,
        "advice": _ADVICE,
    },
    "Advice": {"option": "The option to try, or what to change.", "text": "What it would do, and what it costs."},
    "TflmSupport": {
        "runs": "False: TFLM cannot run the model. Custom operators of your own are no reason.",
        "reasons": "What the file shows to stand in the way, each kind once.",
        "refusal": "What TFLM said when it refused for a reason that the file does not show; null otherwise.",
    },
    "Obstacle": {
        "kind": '"weights_only": weights are quantized and activations are not. "uint8", "float16", "int16", "types": '
        'no kernel for this type. "positions": of a maximum, in 64 bits. "shapes": an operator that works out shapes. '
        '"computed_size": a SLICE in a loop whose size is computed. '
        '"flex": one of TensorFlow\'s own. "missing": no kernel at all.',
        "subgraph": f"Of the first such operator. {_SUBGRAPH}",
        "index": f"Of the first such operator. {_INDEX}",
        "operator": f"Of the first such operator. {_OPERATOR}",
        "output": f"Of the first such operator. {_OUTPUT}",
        "types": "Element types of its inputs and outputs, each once.",
        "operators": "How many operators there are for which this holds.",
    },
    "BindingStep": {
        "subgraph": _SUBGRAPH,
        "index": _INDEX,
        "operator": _OPERATOR,
        "output": _OUTPUT,
        "bytes": "Bytes of the head that are in use while it runs.",
    },
    "SearchUse": {
        "method": _METHOD,
        "optimal": _OPTIMAL,
        "lower_bound": "Bytes of the head that no order goes below.",
        "gap_bytes": _GAP,
        "ended_by": _ENDED_BY,
    },
    "PlanUse": {
        "method": _METHOD,
        "optimal": _OPTIMAL,
        "lower_bound": "Bytes of the head that no plan of this order goes below.",
        "gap_bytes": _GAP,
        "ended_by": _ENDED_BY,
        "bound_by": 'What proves lower_bound: the "section", or a "search" that tried everything below.',
        "section": "The tensors that are alive together and need most.",
        "dropped": "Strategies whose answer broke a rule, with the rule: please report the model.",
    },
    "SectionUse": {
        "bytes": "Bytes that they need in every plan.",
        "tensors": "Names of tensors that are alive together.",
        "scratch_requests": "How many requests for scratch are alive with them.",
        "pinned": "Whether it is one tensor that a pin has put where it lies.",
    },
    "RewriteUse": {
        "rule": _RULE,
        "operators": "What was changed, by the names of first outputs.",
        "exactness": '"exact": the same bits. "reassociates": the same sums in another order. "approximates": '
        "integers rounded once more.",
        "saved_bytes": "Bytes more that the model would need without this change alone; these do not add up. 0 for "
        "what was not searched for.",
        "stripes": "How a region runs a few rows at a time; null for what is no region.",
    },
    "Refusal": {
        "rule": _RULE,
        "operator": "Name of the operator's first output.",
        "reason": "Why it was left as it is.",
        "cause": '"judged": by the rule or by the cost. "out_of_time": the time limit ended the search. '
        '"needs_approximation": it would change values more than the options allow.',
    },
    "Basis": {
        "plan_executed": "Whether TFLM ran the plan.",
        "reason": "Why it did not; null where it did.",
        "findings": "What is wrong with the original itself, in sentences, the most serious first.",
        "executed_by": 'Where the plan was run: "tflm" on this computer, "runner" by the user\'s --runner.',
    },
    "Verdict": {
        "samples": "Number of inputs that were compared.",
        "equal": "Whether both models compute the same; null where the runtime could not judge.",
        "max_abs_diff": "Largest difference of an output, in units of the output.",
        "reason": "What differs, or why there is no verdict, in words; null without either.",
        "exactness": '"exact": the same bits. "reassociates": within the tolerance. "approximates": see the figures.',
        "tolerance": "What absolute and relative difference was allowed; null for none.",
        "max_relative_diff": "Largest difference of a float output, as a share of the largest value; null without one.",
        "max_lsb_diff": "Largest difference of an integer output, in its steps; null without one.",
        "differing_share": "Share of output values that differ, from 0 to 1.",
        "agreeing_argmax_share": "How often the largest of a row of scores is the same, 0 to 1; null without scores.",
        "signal_to_noise": "Of an approximation, in decibels; null otherwise.",
        "kernels": "Which of the runtime's kernels ran, where it has several; null: its only ones.",
    },
}
