"""Describe every field of the JSON, by dataclass and field, for schemas and reference. Bytes and seconds throughout."""

from __future__ import annotations

from collections.abc import Mapping

_NAME = "Name of the file that was read, without its folder; null where bytes were given."
_TARGET = "Core or chip of the figures; null: any 32-bit one."
_KERNELS = "Kernel profile of the figures."
_SUBGRAPH = "Number of the subgraph in the file, from 0."
_INDEX = "Position of the operator in its subgraph, from 0."
_OPERATOR = "Kind of the operator: its name in the TFLite schema, or the code of a custom operator."
_OUTPUT = "Name of the operator's first output."
_SHAPE = "Size along each axis."
_TYPE = "Element type, as NumPy names it where it has it."
_MACS = "Multiply-accumulates."
_OPERATORS = "Number of operators in all subgraphs."
_SUMMARY = "The report in sentences, for people; programs read the other fields."
_ARENA = "Location and lifetime of every tensor in the head."
_LOOPS = "Regions that run as one loop."
_TFLM = "TensorFlow Lite Micro's kernels for the model."
_DEVICE = "Chip or board named by --target; null for a core or no target."
_METHOD = "Name of the method, as --scheduler or --planner takes it."
_OPTIMAL = "True if it is proved that nothing smaller exists."
_GAP = "Bytes between lower_bound and the result; 0 if it is optimal."
_ENDED_BY = 'What ended the search: "proof", "work_limit", the same on every machine, or "clock" (compare).'
_RULE = "Name of the rule, or of several joined by ' + '."
_OBJECTIVE = '"total": the whole arena; "head": the part that tensors share over time.'
_SCOPES = "Time is counted in scopes, as TFLM does."
_LIMITS = "What limits the size, in sentences."
_ADVICE = "Options that could lower the result further."

FIELDS: Mapping[str, Mapping[str, str]] = {
    "Way": {
        "flags": "Flags of optimize that write this result.",
        "need": "Bytes of RAM to reserve; null without such a result.",
        "slowdown": "Added run time with the slowest library, as a fraction; null without such a result.",
        "fits": "Whether it meets the budget.",
        "reason": "The reason if there is no such result; null otherwise.",
    },
    "DeclinedUse": {
        "need": "Bytes of the objective.",
        "slowdown": "Added run time with the slowest library, as a fraction.",
        "kernel_bytes": "Flash of its new kernels on Cortex-M4, in bytes; null if not measured.",
        "tflm_since": "Date of the oldest TFLM that has them; null if every version has.",
    },
    "Report": {
        "version": "Version of tflite-memopt.",
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "options": "Options that determine the result, by their Python names; files without their folder.",
        "objective": f"The quantity that was minimized. {_OBJECTIVE}",
        "budget": "The budget in bytes; null without one.",
        "within_budget": "Whether the result meets the budget; null without one.",
        "binding": "The operator that needs the most if a budget is missed; null otherwise.",
        "before": "Memory of the original model.",
        "after": "Memory of the result.",
        "bounds": "Lower bounds on the head of the result.",
        "interface": 'Inputs, then outputs, of the model "before" and "after".',
        "schedule": "The search for the order of operators.",
        "plan": "The search for tensor offsets, in the final order.",
        "rewrites": "Changes of the graph, in the order of application.",
        "refused": "Matches of a rule that were not changed, with the reason.",
        "sharing": "Outputs that share bytes with an input of their operator, most bytes first.",
        "operators_added": "Operator kinds that the firmware's resolver needs in addition.",
        "kernel_bytes": "Flash of the kernels of operators_added on Cortex-M4, in bytes; null if not measured.",
        "tflm_since": "Date of the oldest TFLM that has them; null if every version has.",
        "ways": "Size in parts and fed row by row, if the budget is missed.",
        "declined": "A smaller result that was declined for its price; null without one.",
        "libraries": 'Needs of the model "before" and "after" under each kernel library, by profile name.',
        "equivalence": "Verdict on equality, by runtime; empty without verification.",
        "basis": "The basis of the verdicts.",
        "runner": 'What the user\'s --runner measured of the model "before" and "after"; null without one.',
        "file_bytes": 'Size of the file "before" and "after", in bytes.',
        "sha256": 'SHA-256 of the file "before" and "after", in hexadecimal.',
        "timing": "Seconds of wall time by stage and in total; the only field that varies between equal runs.",
        "warnings": "Warnings to read before flashing, in sentences.",
        "summary": _SUMMARY,
        "arena": 'Location and lifetime of every tensor in the head, "before" and "after".',
        "loops": _LOOPS,
        "decision": "The decision of the searches, on one line; optimize --replay repeats it without a search.",
        "least_in_stripes": "Lower bound of the search for stripes, in bytes of the objective; null "
        "without such a search.",
        "tflm": f"{_TFLM} For the result.",
        "mended": "What kept TFLM from loading the file as it came, where rewrites mend that; else null.",
        "device": _DEVICE,
        "proofs": 'Proofs for all inputs, of the "result" and of its "plan", with --step also of its calls ("step"); '
        "empty without verification.",
        "calls": "Calls of the result for one of the original: the time steps with --step, otherwise 1. The run time "
        '"before" is that of one step.',
    },
    "ProofUse": {
        "status": '"proved", "reassociated" (proved as real polynomials), "different" or "unknown".',
        "reason": "The reason if it is not proved; null otherwise.",
        "chance": "Upper bound on the probability that the proof is false, over its random keys.",
        "facts": "Names of the facts about kernels that the proof uses.",
    },
    "DeviceUse": {
        "name": "Name of the chip or board.",
        "chip": "Name of the chip.",
        "ram_bytes": "Largest contiguous RAM, in bytes.",
        "flash_bytes": "Flash of the chip or board, in bytes; null if unknown.",
    },
    "Analysis": {
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "file_bytes": "Size of the file, in bytes.",
        "sha256": "SHA-256 of the file, in hexadecimal.",
        "planned_for": "Target and kernels of the offline plan in the file; null without a plan of this tool.",
        "memory": "Memory of the model as it is.",
        "libraries": "Needs of the model under each kernel library, by profile name.",
        "bounds": "Lower bounds on the head.",
        "steps": "Every operator with its working set, in execution order.",
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
        "schedulers": "Results of the schedulers.",
        "planned_order": "Name of the scheduler whose order all planners plan.",
        "planners": "Results of the planners in that order.",
        "shared_objects": "Results of the strategies for runtimes that cannot place tensors at offsets.",
        "fusion_layers": "Convolutions and pools that the model begins with, which msf-CNN fuses; 0 if not requested.",
        "fusion": "Results of msf-CNN under each limit of its paper; empty if not requested.",
    },
    "FusionUse": {
        "problem": "The quantity to minimize.",
        "limit": "Least RAM: the most MACs, in times those of no fusion. Fewest MACs: the most bytes. Null: none.",
        "ends_counted": "True if the bytes include the input of the first layer and the output of the last.",
        "bytes": "Peak of the blocks, in bytes; null if nothing meets the limit.",
        "macs": "MACs of all blocks; null if nothing meets the limit.",
        "blocks": 'Layers that are fused, counted from 0, such as "0-12".',
    },
    "MethodUse": {
        "method": _METHOD,
        "bytes": "Bytes: the largest working set of a scheduler, the head of a planner, the sum of shared objects.",
        "lower_bound": "Lower bound of all methods, in bytes.",
        "optimal": _OPTIMAL,
        "seconds": "Wall time of the method; varies between equal runs.",
        "states": "Number of states that a scheduler visited; null if not counted.",
    },
    "Verification": {"verdicts": 'Verdict by runtime; "file" is that of constants and interface, which need no run.'},
    "Exploration": {
        "model": _NAME,
        "target": _TARGET,
        "kernels": _KERNELS,
        "effort": "Effort of the searches, as --effort takes it.",
        "before": "The original model.",
        "points": "The Pareto front, the smallest total first.",
        "searches": "Number of limits on stripes that were searched.",
        "choice": "The point that the budget picks.",
        "warnings": "Warnings about the search, in sentences.",
    },
    "FrontPoint": {
        "total": "Arena to reserve, in bytes.",
        "head": "The part of it that tensors share over time, in bytes.",
        "macs": _MACS,
        "operators": _OPERATORS,
        "file_bytes": "Size of the file, in bytes.",
        "limits": "Options of optimize for this point, as flags; empty for the defaults.",
        "stripes": "Regions that run in stripes, in words.",
        "slowdown": "Added run time with the slowest library, as a fraction; an estimate.",
        "parts": "Models that run one after another in the arena; the head is then that of the largest.",
    },
    "Choice": {
        "objective": f"The quantity that the budget limits. {_OBJECTIVE}",
        "budget": "Bytes that may be used; null without a budget.",
        "point": "Index of the chosen point in the front, from 0: the fastest that fits, or the nearest.",
        "fits": "Whether it fits the budget; null without one.",
        "limits": _LIMITS,
        "advice": _ADVICE,
    },
    "MemoryUse": {
        "operators": _OPERATORS,
        "tensors": "Number of tensors in all subgraphs, including constants.",
        "macs": _MACS,
        "peak_bytes": "Largest working set: bytes that some operator needs at once, without gaps between tensors.",
        "arena_bytes": "The head: bytes of the arena that tensors and scratch share over time.",
        "tail_bytes": "The tail: bytes of TFLM's own structures, without alignment; "
        'by "32" and "64", the bits of a pointer, and "target" if one is named.',
        "planner_temporary_bytes": "Bytes that TFLM's planner uses instead of the head while it loads the model; "
        'by "32", "64" and "target".',
        "required_bytes": 'Arena to reserve, in bytes: "32" and "64" for firmware with pointers of so many bits and '
        'enums of 4 bytes, "target" for the named target, and "table" for that with codegen --planner table.',
        "required_is_exact": "False if an operator's structures are a guess: measure the arena.",
        "instructions": "Estimated instructions of one run, by kernel library.",
        "scratch_operators": "Number of operators with scratch memory in the head.",
        "tflm": "Bytes that TFLM measured on this computer: head, tail, total, and on a runner "
        "smallest_arena (the smallest that it accepts) and pointer_bits; or error, the reason.",
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
        "head": "Bytes of the head in TFLM.",
        "required": "Arena to reserve, in bytes.",
        "measured": "True if this library was run; otherwise its needs were read from source.",
    },
    "Bounds": {
        "io": "Bytes of the head for the model's inputs or outputs alone.",
        "schedule": "Lower bound on the head for any order, in bytes.",
        "plan": "Lower bound on the head for the final order, in bytes.",
    },
    "InterfaceTensor": {
        "side": '"input" or "output".',
        "name": "Name in the file.",
        "shape": _SHAPE,
        "type": _TYPE,
        "bytes": "Size in the arena.",
        "scale": "real = scale * (value - zero_point); null if not quantized with one scale.",
        "zero_point": "See scale.",
    },
    "ReuseInForce": {
        "operator": _OPERATOR,
        "kind": '"view": the output is bytes of the input, nothing is copied. "in-place": written exactly over it. '
        '"overlap": written over the part that was read already.',
        "input": "Name of the input.",
        "output": "Name of the output.",
        "saved_bytes": "Bytes that both tensors share.",
    },
    "TailPart": {
        "name": "Structures of TFLM, or persistent buffers of one kind of kernel.",
        "bytes": "Total bytes.",
        "count": "Number of tensors, operators, or kernels.",
    },
    "ArenaMap": {
        "required": "Bytes of the arena to reserve: on the target, or on 32 bits without one.",
        "tail": "TFLM's own structures, at the end of the arena, by part, the largest first.",
        "head": "Bytes of the head.",
        "end": f"The scope in which the model ends. {_SCOPES}",
        "graphs": "Names of the model's subgraphs, the main one first.",
        "tensors": "Tensors and scratch in the head.",
        "steps": "Operators in execution order.",
    },
    "PlacedTensor": {
        "name": "Name in the file; of scratch, that of the operator's output.",
        "shape": _SHAPE,
        "type": _TYPE,
        "bytes": "Size in the arena.",
        "offset": "Its first byte in the head.",
        "start": f"First scope of its lifetime. {_SCOPES}",
        "end": "End of its lifetime, exclusive.",
        "kind": '"input" or "output" of the model, "inner", or "scratch".',
        "operator": "Position in steps of the operator that writes it; null for an input.",
        "sharing": 'Sharing with an input of that operator: "view", "in-place", "overlap" or "none".',
    },
    "OperatorUse": {
        "subgraph": _SUBGRAPH,
        "index": _INDEX,
        "operator": _OPERATOR,
        "output": _OUTPUT,
        "macs": _MACS,
        "working_set": "Bytes in use while it runs.",
        "reach": "Highest byte of the head in use, plus one.",
        "scratch_bytes": "Scratch of its kernel, in bytes.",
        "start": f"The scope in which it begins. {_SCOPES}",
        "end": "The scope before which it has ended.",
    },
    "LoopUse": {
        "result": "Name of the tensor that the loop computes.",
        "turns": "Number of iterations.",
        "rows": "Rows of the result per iteration.",
        "operators": "Operator kinds of an iteration, in order.",
        "reads": "Names of tensors that the loop reads a few rows at a time.",
        "line_buffers": "Rows that are kept between iterations.",
    },
    "LineBuffer": {
        "of": "Name of the tensor whose rows are kept.",
        "rows": "Number of rows that are kept.",
        "bytes": "Their size.",
    },
    "PlanLabel": {
        "kernels": "Kernel profile that the plan was made for.",
        "target": "Target that it was made for; null for any.",
        "decision": "Decision for optimize --replay; empty in files without one.",
        "version": "Version of the tool that wrote the file; empty in files without one.",
        "options": "Options that differ from the defaults and determine the file, by name.",
        "overlaps": "True if outputs overwrite inputs that kernels still read: correct with these kernels only.",
    },
    "Summary": {
        "headline": "The first line: the RAM, and how it was verified.",
        "changes": "The changes and their price.",
        "limits": _LIMITS,
        "advice": _ADVICE,
    },
    "Advice": {"option": "The option to try, or the change to make.", "text": "Its effect and its cost."},
    "TflmSupport": {
        "runs": "False: TFLM cannot run the model. Your own custom operators do not count.",
        "reasons": "Obstacles visible in the file, one per kind.",
        "refusal": "TFLM's message if it refused for a reason not visible in the file; null otherwise.",
    },
    "Obstacle": {
        "kind": '"weights_only": weights are quantized and activations are not. "uint8", "float16", "int16", "types": '
        'no kernel for this type. "positions": of a maximum, in 64 bits. "shapes": an operator that computes shapes. '
        '"computed_size": a SLICE in a loop whose size is computed. '
        '"flex": one of TensorFlow\'s own. "missing": no kernel at all.',
        "subgraph": f"Of the first such operator. {_SUBGRAPH}",
        "index": f"Of the first such operator. {_INDEX}",
        "operator": f"Of the first such operator. {_OPERATOR}",
        "output": f"Of the first such operator. {_OUTPUT}",
        "types": "Distinct element types of its inputs and outputs.",
        "operators": "Number of operators with this obstacle.",
    },
    "BindingStep": {
        "subgraph": _SUBGRAPH,
        "index": _INDEX,
        "operator": _OPERATOR,
        "output": _OUTPUT,
        "bytes": "Bytes of the head in use while it runs.",
    },
    "SearchUse": {
        "method": _METHOD,
        "optimal": _OPTIMAL,
        "lower_bound": "Lower bound on the head for any order, in bytes.",
        "gap_bytes": _GAP,
        "ended_by": _ENDED_BY,
    },
    "PlanUse": {
        "method": _METHOD,
        "optimal": _OPTIMAL,
        "lower_bound": "Lower bound on the head for this order, in bytes.",
        "gap_bytes": _GAP,
        "ended_by": _ENDED_BY,
        "bound_by": 'Proof of lower_bound: the "section", or an exhaustive "search" below it.',
        "section": "Tensors that are alive together and need the most.",
        "dropped": "Strategies whose answer broke a rule, with the rule: please report the model.",
    },
    "SectionUse": {
        "bytes": "Bytes that they need in any plan.",
        "tensors": "Names of tensors that are alive together.",
        "scratch_requests": "Number of scratch requests that are alive with them.",
        "pinned": "True if it is one tensor at a pinned offset.",
    },
    "RewriteUse": {
        "rule": _RULE,
        "operators": "Changed operators, by the names of their first outputs.",
        "exactness": '"exact": the same bits. "reassociates": the same sums in another order. "approximates": '
        "integers rounded once more.",
        "saved_bytes": "Additional bytes without this one change; these values do not add up. 0 for "
        "changes that were not searched for.",
        "stripes": "How a region runs a few rows at a time; null for other rules.",
    },
    "Refusal": {
        "rule": _RULE,
        "operator": "Name of the operator's first output.",
        "reason": "Why it was not changed.",
        "cause": '"judged": by the rule or by the cost. "out_of_time": the time limit ended the search. '
        '"needs_approximation": it would change values more than the options allow.',
    },
    "Basis": {
        "plan_executed": "True if TFLM ran the plan.",
        "reason": "The reason if it did not; null otherwise.",
        "findings": "Defects of the original, in sentences, the most serious first.",
        "executed_by": 'Where the plan was run: "tflm" on this computer, "runner" by the user\'s --runner.',
    },
    "Verdict": {
        "samples": "Number of inputs that were compared.",
        "equal": "True if both models compute the same; null if the runtime could not judge.",
        "max_abs_diff": "Largest difference of an output, in units of the output.",
        "reason": "The difference, or why there is no verdict; null without either.",
        "exactness": '"exact": the same bits. "reassociates": within the tolerance. "approximates": see the figures.',
        "tolerance": "Allowed absolute and relative difference; null for none.",
        "max_relative_diff": "Largest difference of a float output, as a share of the largest value; null without one.",
        "max_lsb_diff": "Largest difference of an integer output, in its steps; null without one.",
        "differing_share": "Share of output values that differ, from 0 to 1.",
        "agreeing_argmax_share": "Share of samples with the same largest score, from 0 to 1; null without scores.",
        "signal_to_noise": "Signal-to-noise ratio of an approximation, in decibels; null otherwise.",
        "kernels": "Kernels of the runtime that ran, if it has several; null: its only ones.",
    },
}
