"""The operators and element types that TFLM has kernels for, checked without running a file.

What is not in here is taken to run: nothing is said to be impossible that TFLM may do.
Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/micro/kernels: the types that Prepare and Eval take. The test
asks the wheel for every operator and type of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import printable
from ..model.ir.check import reachable
from ..model.ir.model import DType, Graph, Model, Operator, Tensor
from ..model.ir.tensors import integers, quantized_alike
from ..operators.kind import F32, I4, I8, I16, I64, U8, Arrival
from ..operators.reduce import REDUCTIONS
from ..operators.table import BY_LABEL, REFERENCE, kind_of
from .profiles import PORTABLE
from .since import PRESENT, TflmBuild, lacking

_OfNumbers = Literal["int2", "int4", "int4_channels", "blocks", "weights_only", "uint8", "float16", "int16"]
_OfTypes = Literal["positions", "masks", "types"]
_OfShapes = Literal["shapes", "computed_size", "computed", "dimensions", "index", "axis", "scales", "bias"]
_OfOperators = Literal["flex", "missing", "unassigned", "uncalled", "parts", "newer"]
ObstacleKind = Literal[_OfNumbers, _OfTypes, _OfShapes, _OfOperators]


@dataclass(frozen=True)
class OperatorName:
    """An operator of a file."""

    subgraph: int
    """Number of the subgraph in the file, from 0."""
    index: int
    """Position of the operator in its subgraph, from 0."""
    operator: str
    """Kind of the operator: its name in the TFLite schema, or the code of a custom operator."""
    output: str
    """Name of the operator's first output."""


def names_of(subgraph: int, index: int, operator: Operator) -> tuple[int, int, str, str]:
    """Return the fields of an ``OperatorName``."""
    return subgraph, index, operator.opcode.label, operator.outputs[0].name if operator.outputs else ""


@dataclass(frozen=True)
class Obstacle(OperatorName):
    """An obstacle that keeps TFLM from running a model, and the first operator with it."""

    kind: ObstacleKind
    """ "int2", "int4": no kernel for elements of so many bits. "int4_channels": one for one scale alone. "blocks": a
    scale a block of weights. "weights_only": weights are quantized and activations are not. "uint8", "float16",
    "int16", "types": no kernel for this type of activations. "positions": of a maximum, in 64 bits. "masks": of truth
    values. "shapes": an operator that computes shapes. "computed_size": the size of its output depends on values.
    "computed": an operand that its kernel takes as a constant alone. "dimensions": more or fewer than its kernel takes.
    "index": a way to index that its kernel does not know. "axis": one that its input does not have. "scales": the
    output has others than its kernel takes. "bias": it has none. "flex": one of TensorFlow's own. "missing": no
    kernel at all. "unassigned": it reads a variable that nothing assigns. "uncalled": it is in a subgraph that
    nothing calls, and a kernel of it asks for scratch memory. "parts": more inputs than a CONCATENATION has.
    "newer": it came to TFLM after the day of the firmware's."""
    types: tuple[str, ...]
    """Distinct element types of its inputs and outputs."""
    operators: int = 1
    """Number of operators with this obstacle."""
    since: str | None = None
    """What came to TFLM too late, with its day and commit; null for other obstacles."""
    build: str | None = None
    """The build of TFLM that lacks it, and its day; null for other obstacles."""
    cure: str | None = None
    """What to do beside linking a newer TFLM; null for other obstacles."""


@dataclass(frozen=True)
class TflmSupport:
    """The verdict on whether TFLM can run a model."""

    runs: bool
    """False: TFLM cannot run the model. Your own custom operators do not count: the firmware has their kernels."""
    reasons: tuple[Obstacle, ...] = ()
    """Obstacles visible in the file, one per kind; of what is newer than the firmware's TFLM, one per arrival."""
    refusal: str | None = None
    """TFLM's message if it refused for a reason not visible in the file; null otherwise."""


RUNS = TflmSupport(True)
MAX_PARTS = 10
"""Inputs of a CONCATENATION. Source: micro/kernels/concatenation.cc, ``kMaxInputNum``."""
_MASK = "leave the mask out (keras.layers.Masking, mask_zero=True): train on sequences of one length"
_BYTES = "quantize these weights to int8"
_ADVICE: Mapping[ObstacleKind, tuple[str, str]] = {
    "int2": ("TFLM does not know int2", f"{_BYTES}, and the activations as well"),
    "int4": ("TFLM has no kernel for int4 here", _BYTES),
    "int4_channels": (
        "TFLM multiplies int4 weights of this layer only with one scale",
        "quantize them with one scale for the whole tensor, or to int8",
    ),
    "blocks": (
        "TFLM has no kernel for weights with a scale a block",
        "quantize them to int8 with a scale a channel, and the activations as well",
    ),
    "weights_only": ("only the weights are quantized", "give the converter a representative dataset"),
    "uint8": ("TFLM no longer has kernels for uint8 activations", "convert to int8"),
    "float16": ("TFLM has no kernels for floats of 16 bits", "convert to int8 or to float32"),
    "int16": ("TFLM has fewer kernels for 16 bits", "convert to int8 or float, or replace the layer"),
    "positions": ("TFLM computes positions only in 32 bits", "ask for these (tf.argmax(..., output_type=tf.int32))"),
    "masks": ("TFLM has no kernel for masks here", _MASK),
    "types": ("TFLM has no kernel for these types", "convert to int8 or float, or replace the layer"),
    "shapes": (
        "it computes shapes",
        "give the network's input a batch size (keras.Input(..., batch_size=1), and Model.export an input_signature)",
    ),
    "computed_size": (
        "the size of its output depends on values, and TFLM takes the size in the file",
        "in a recurrent layer unroll it (unroll=True) or return only its last step, elsewhere give sizes as numbers",
    ),
    "computed": (
        "TFLM takes this operand only as a constant, and the model computes it",
        "give the network's input a batch size (keras.Input(..., batch_size=1)), and sizes and indices as numbers",
    ),
    "dimensions": ("TFLM's kernel takes a different number of dimensions", "reshape around the layer"),
    "index": (
        "TFLM's kernel knows neither Ellipsis nor a new axis",
        "index all dimensions, and reshape (keras.ops.reshape)",
    ),
    "axis": ("TFLM's kernel reduces no axis that its input does not have", "give axes of the input"),
    "scales": (
        "TFLM's kernel asks for one scale: that of its input, or one for the whole tensor",
        "give its output the quantization of its input, and requantize behind it",
    ),
    "bias": ("TFLM crashes on this float layer without a bias", "give it one, such as zeros"),
    "flex": (
        "it is an operator of TensorFlow",
        "convert without SELECT_TF_OPS, and replace the layer that the converter refuses",
    ),
    "missing": ("TFLM has no such kernel", "replace the layer that makes it"),
    "unassigned": (
        "the file has no weights, since nothing assigns this variable",
        "convert with TFLiteConverter.from_keras_model or from_saved_model",
    ),
    "uncalled": (
        "TFLM crashes on an operator with scratch memory in a subgraph that nothing calls, such as a second signature",
        "convert with one signature",
    ),
    "newer": ("the firmware's TFLM lacks it", "link a newer TFLM"),
    "parts": (f"TFLM joins at most {MAX_PARTS} tensors at once", "join them in groups"),
}
"""The problem and its remedy, by kind."""
_OF_SHAPES = frozenset({"FILL", "RANGE", "RANK", "REDUCE_PROD", "SHAPE", "UNIQUE", "UNSORTED_SEGMENT_PROD", "WHERE"})
"""Kinds that the converter writes to compute shapes that the network leaves open."""
_ARGUMENTS = ("ARG_MAX", "ARG_MIN")
_CALLERS = ("IF", "WHILE", "CALL_ONCE")


def support_of(model: Model, build: TflmBuild = PRESENT) -> TflmSupport:
    """Return whether a build of TFLM can run all operators of a model.

    TFLM prepares the subgraphs that nothing calls as well, and plans no scratch memory for them.
    """
    found: dict[ObstacleKind | Arrival, Obstacle] = {}
    unassigned, called = _unassigned(model), reachable(model, 0)
    for number, graph in enumerate(model.graphs):
        fixed = _fixed_values(graph)
        for index, operator in enumerate(graph.operators):
            kind, is_called = _kind(operator), number in called
            if kind is None and not is_called and _asks_for_scratch(operator):
                kind = "uncalled"
            if kind is None and is_called and any(tensor in unassigned for tensor in operator.outputs):
                kind = "unassigned"
            if kind is None and is_called and _has_computed_size(operator, fixed):
                kind = "computed_size"
            if kind is None and any(_is_computed(operator, slot) for slot in kind_of(operator).tflm.constants):
                kind = "computed"
            late = lacking(operator, build) if kind is None else None
            key = kind or late
            if key in found:
                found[key] = replace(found[key], operators=found[key].operators + 1)
            elif kind is not None:
                found[kind] = _obstacle(kind, number, index, operator)
            elif late is not None:
                found[late] = _too_late(late, build, _obstacle("newer", number, index, operator))
    return TflmSupport(not found, tuple(found.values()))


def types_of(operator: Operator) -> tuple[str, ...]:
    """Types of its inputs and outputs, each once."""
    return tuple(dict.fromkeys(tensor.dtype.label for tensor in (*operator.present_inputs(), *operator.outputs)))


def said_of(support: TflmSupport, mended: str | None = None) -> str:
    """Return the obstacles of a model that TFLM cannot run, with their remedies, in words.

    ``mended``: the first words where rewrites are the remedy.
    """
    said = "; ".join(_said(each, mended is None) for each in support.reasons) or support.refusal or "it gave no reason"
    return f"{mended or 'TFLM cannot run this model'}: {printable(said)}"


def advice_on(kind: ObstacleKind, operator: str = "") -> str:
    """Return the problem and its remedy, for an operator of this name."""
    problem, remedy = _ADVICE[kind]
    of_kind = BY_LABEL[operator].instead if kind in ("missing", "flex") and operator in BY_LABEL else ""
    return f"{problem}, {of_kind or remedy}"


def _said(obstacle: Obstacle, with_remedy: bool) -> str:
    first = f"operator {obstacle.index} {obstacle.operator} '{obstacle.output.partition(';')[0]}'"
    where = first if obstacle.subgraph == 0 else f"{first} of subgraph {obstacle.subgraph}"
    where = where if obstacle.operators == 1 else f"{obstacle.operators} operators, the first is {where}"
    said = advice_on(obstacle.kind, obstacle.operator) if with_remedy else _ADVICE[obstacle.kind][0]
    if obstacle.since is not None:
        remedy = f"; {_ADVICE[obstacle.kind][1]}, or {obstacle.cure}" if with_remedy else ""
        said = f"{obstacle.build} lacks {obstacle.since}{remedy}"
    return f"{said} ({where}: {', '.join(obstacle.types)})"


def kind_by_types(operator: Operator) -> ObstacleKind:
    """Why TFLM has no kernel for an operator that it has for other types."""
    kinds = {tensor.dtype for tensor in (*operator.present_inputs(), *operator.outputs)}
    if operator.name in _ARGUMENTS and I64 in kinds:
        return "positions"
    activation = operator.operand(kind_of(operator).tflm.activation)
    if activation is not None and activation.dtype is DType.BOOL:
        return "masks"
    for dtype, kind in _BY_TYPE.items():
        if dtype in kinds:
            return kind
    return "weights_only" if F32 in kinds and I8 in kinds else "types"


_BY_TYPE: Mapping[DType, ObstacleKind] = {
    DType.INT2: "int2",
    I4: "int4",
    U8: "uint8",
    DType.FLOAT16: "float16",
    DType.BFLOAT16: "float16",
    I16: "int16",
}


def kind_of_missing(operator: Operator) -> ObstacleKind:
    """Why TFLM has no kernel for an operator of any type."""
    if operator.opcode.label.startswith("Flex"):
        return "flex"
    return "shapes" if operator.name in _OF_SHAPES else "missing"


def is_own(operator: Operator) -> bool:
    """Return whether it is a custom operator whose kernel the firmware brings."""
    return operator.name == "CUSTOM" and operator.opcode.label not in REFERENCE and kind_of_missing(operator) != "flex"


def _kind(operator: Operator) -> ObstacleKind | None:
    """Return the obstacle that keeps TFLM from running an operator; None without a known one."""
    if operator.opcode.label not in REFERENCE:
        return None if is_own(operator) else kind_of_missing(operator)
    tflm = kind_of(operator).tflm
    activation = operator.operand(tflm.activation)
    if activation is None:
        return None  # the check of the file's structure says so
    if operator.name in _ARGUMENTS and operator.outputs and operator.outputs[0].dtype is I64:
        return "positions"
    if operator.name == "CONCATENATION" and len(operator.inputs) > MAX_PARTS:
        return "parts"
    if not tflm.takes(activation.dtype):
        return kind_by_types(operator)
    if operator.outputs and operator.outputs[0].dtype not in tflm.outputs.get(activation.dtype, DType):
        return kind_by_types(operator)
    if kind_of(operator).keeps_scale and operator.outputs and operator.outputs[0].dtype is not activation.dtype:
        return "types"  # its kernel moves values as they are
    least, most, types = tflm.rank
    if activation.dtype in types and not least <= len(activation.shape) <= most:
        return "dimensions"
    return _kind_of_operands(operator, activation)


def _kind_of_operands(operator: Operator, activation: Tensor) -> ObstacleKind | None:
    """Return the obstacle in an operator whose types and dimensions TFLM takes."""
    at = kind_of(operator).tflm.weights
    weights = None if at is None else operator.operand(at)
    of_weights = None if weights is None else _kind_of_weights(operator, activation, weights)
    if of_weights is not None:
        return of_weights
    if operator.name == "STRIDED_SLICE" and (operator.option("ellipsisMask", 0) or operator.option("newAxisMask", 0)):
        return "index"
    if operator.name in (*REDUCTIONS, "REDUCE_ALL") and _lacks_axis(operator, activation):
        return "axis"
    if _has_other_scales(operator, activation):
        return "scales"
    is_without_bias = operator.name == "SVDF" and activation.dtype is F32 and operator.operand(3) is None
    return "bias" if is_without_bias else None


def _kind_of_weights(operator: Operator, activation: Tensor, weights: Tensor) -> ObstacleKind | None:
    """Return why TFLM does not multiply by these weights; None where it does."""
    quantization = weights.quantization
    if quantization is not None and quantization.extras.get("detailsType") == _BLOCKWISE:
        return "blocks"
    if weights.dtype is DType.INT2:
        return "int2"
    if activation.dtype is F32 and weights.dtype is not F32:
        return "float16" if _BY_TYPE.get(weights.dtype) == "float16" else "weights_only"
    taken = kind_of(operator).tflm.of_weights
    if activation.dtype in taken and weights.dtype not in taken[activation.dtype]:
        return kind_by_types(operator)
    if operator.name == "FULLY_CONNECTED" and weights.dtype is I4 and _lists_scales(weights):
        return "int4_channels"
    return None


_BLOCKWISE = 2
"""``QuantizationDetails.BlockwiseQuantization`` of the schema."""


def _lists_scales(tensor: Tensor) -> bool:
    """Return whether there is more than one scale, be they equal."""
    return tensor.quantization is not None and tensor.quantization.scale.size > 1


def _has_other_scales(operator: Operator, activation: Tensor) -> bool:
    """Return whether Prepare refuses the scales of the output."""
    if not operator.outputs or activation.dtype not in (F32, I8, I16):
        return False
    output = operator.outputs[0]
    if operator.name == "QUANTIZE":
        return _lists_scales(output)
    is_copied = kind_of(operator).tflm.one_scale and activation.dtype is not F32
    return is_copied and not quantized_alike(activation.quantization, output.quantization)


def _lacks_axis(operator: Operator, activation: Tensor) -> bool:
    axes, rank = integers(operator.operand(1)), len(activation.shape)
    return axes is not None and bool(((axes < -rank) | (axes >= max(1, rank))).any())


def _asks_for_scratch(operator: Operator) -> bool:
    """Return whether a kernel of any library asks for scratch memory, which TFLM plans for called subgraphs alone."""
    return any(library.requests(operator, library.abi).scratch for library in PORTABLE.libraries)


def _fixed_values(graph: Graph) -> set[Tensor]:
    """Return the tensors whose values are the same in every run: constants, shapes, and what is computed from them."""
    found = {tensor for tensor in graph.tensors if tensor.is_constant or not tensor.elements}
    for operator in graph.operators:
        is_fixed = all(tensor in found for tensor in operator.present_inputs()) and any(operator.inputs)
        if operator.name in ("SHAPE", "RANK") or (is_fixed and operator.name not in _CALLERS):
            found.update(operator.outputs)
    return found


def _has_computed_size(operator: Operator, fixed: set[Tensor]) -> bool:
    """Return whether the shape of its output depends on values, as where Keras 3 sets items of a list in a loop."""
    sizes = [operator.operand(slot) for slot in kind_of(operator).tflm.sizes]
    return any(tensor is not None and tensor not in fixed for tensor in sizes)


def _is_computed(operator: Operator, slot: int) -> bool:
    tensor = operator.operand(slot)
    return tensor is not None and not tensor.is_constant


def _unassigned(model: Model) -> set[Tensor]:
    """Return the handles of variables that no operator assigns, where each assignment says its variable."""
    operators = model.all_operators
    handles = {each.outputs[0]: _variable(each) for each in operators if each.name == "VAR_HANDLE" and each.outputs}
    assigned = [each.inputs[0] for each in operators if each.name == "ASSIGN_VARIABLE" and each.inputs]
    if any(handle not in handles for handle in assigned):
        return set()
    names = {handles[handle] for handle in assigned if handle is not None}
    return {handle for handle, name in handles.items() if handle.uses and name not in names}


def _variable(operator: Operator) -> tuple[object, object]:
    return operator.option("container"), operator.option("sharedName")


def _obstacle(kind: ObstacleKind, subgraph: int, index: int, operator: Operator) -> Obstacle:
    """One operator as an obstacle."""
    return Obstacle(*names_of(subgraph, index, operator), kind, types_of(operator))


def _too_late(late: Arrival, build: TflmBuild, obstacle: Obstacle) -> Obstacle:
    """One operator that came to TFLM after the day of a build."""
    name = build.name.removesuffix(f"@{build.day}")
    whose = f"TFLM of {build.day}" if name == str(build.day) else f"{name} (TFLM of {build.day})"
    since = f"{late}, in TFLM since {late.day} ({late.commit})"
    cure = late.cure or ("convert it to another type" if late.dtype else "replace the layer")
    return replace(obstacle, since=since, build=whose, cure=cure)


def newer_alone(support: TflmSupport) -> TflmSupport:
    """Return what keeps a build of TFLM from running a model that the present one has run."""
    newer = tuple(each for each in support.reasons if each.kind == "newer")
    return TflmSupport(not newer, newer)
