// The operators that a runner can execute: every built-in one of TensorFlow Lite Micro but Ethos-U, signal processing,
// decompression, embedding lookup, circular buffers and detection post-processing.
#pragma once

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

using Resolver = tflite::MicroMutableOpResolver<110>;

inline void AddOperators(Resolver& r) {
  r.AddAbs(); r.AddAdd(); r.AddAddN(); r.AddArgMax(); r.AddArgMin(); r.AddAssignVariable(); r.AddAveragePool2D();
  r.AddBatchMatMul(); r.AddBatchToSpaceNd(); r.AddBroadcastArgs(); r.AddBroadcastTo(); r.AddCallOnce(); r.AddCast();
  r.AddCeil(); r.AddConcatenation(); r.AddConv2D(); r.AddCos(); r.AddCumSum(); r.AddDepthToSpace();
  r.AddDepthwiseConv2D(); r.AddDequantize(); r.AddDiv(); r.AddDynamicUpdateSlice(); r.AddElu(); r.AddEqual();
  r.AddExp(); r.AddExpandDims(); r.AddFill(); r.AddFloor(); r.AddFloorDiv(); r.AddFloorMod(); r.AddFullyConnected();
  r.AddGather(); r.AddGatherNd(); r.AddGreater(); r.AddGreaterEqual(); r.AddHardSwish(); r.AddIf();
  r.AddL2Normalization(); r.AddL2Pool2D(); r.AddLeakyRelu(); r.AddLess(); r.AddLessEqual(); r.AddLog();
  r.AddLogSoftmax(); r.AddLogicalAnd(); r.AddLogicalNot(); r.AddLogicalOr(); r.AddLogistic(); r.AddMaxPool2D();
  r.AddMaximum(); r.AddMean(); r.AddMinimum(); r.AddMirrorPad(); r.AddMul(); r.AddNeg(); r.AddNotEqual(); r.AddPack();
  r.AddPad(); r.AddPadV2(); r.AddPrelu(); r.AddQuantize(); r.AddReadVariable(); r.AddReduceAll(); r.AddReduceMax();
  r.AddReduceMin(); r.AddRelu(); r.AddRelu6(); r.AddReshape(); r.AddResizeBilinear(); r.AddResizeNearestNeighbor();
  r.AddReverseV2(); r.AddRound(); r.AddRsqrt(); r.AddSelectV2(); r.AddShape(); r.AddSin(); r.AddSlice();
  r.AddSoftmax(); r.AddSpaceToBatchNd(); r.AddSpaceToDepth(); r.AddSplit(); r.AddSplitV(); r.AddSqrt();
  r.AddSquare(); r.AddSquaredDifference(); r.AddSqueeze(); r.AddStridedSlice(); r.AddSub(); r.AddSum(); r.AddSvdf();
  r.AddTanh(); r.AddTranspose(); r.AddTransposeConv(); r.AddUnidirectionalSequenceLSTM(); r.AddUnpack();
  r.AddVarHandle(); r.AddWhile(); r.AddZerosLike();
}
