// A resolver with the registrations of the library's own one, of which it gives those that were added.
#pragma once
#include <cstring>
#include <new>

#include "tensorflow/lite/micro/micro_common.h"

namespace tflite {
enum BuiltinOperator : int32_t {};
struct Operator;
}  // namespace tflite

TFLM_NAMESPACE
class BuiltinDataAllocator;

class MicroOpResolver {
 public:
  using Parse = TfLiteStatus (*)(const Operator*, BuiltinDataAllocator*, void**);
  virtual const TFLMRegistration* FindOp(BuiltinOperator code) const = 0;
  virtual const TFLMRegistration* FindOp(const char* name) const = 0;
  virtual Parse GetOpDataParser(BuiltinOperator code) const = 0;
  virtual ~MicroOpResolver() {}
};
TFLM_NAMESPACE_END

namespace tflite {
// The library's resolver with all operators: in memory a MicroOpResolver. Only its constructor is called here.
class PythonOpsResolver {
 public:
  PythonOpsResolver();

 private:
  alignas(16) unsigned char state_[1 << 16];
};
}  // namespace tflite

TFLM_NAMESPACE
template <unsigned int kOperators>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  MicroMutableOpResolver() : all_(reinterpret_cast<const MicroOpResolver*>(new (state_) PythonOpsResolver)) {}
  const TFLMRegistration* FindOp(BuiltinOperator code) const override { return Has(code) ? all_->FindOp(code) : nullptr; }
  const TFLMRegistration* FindOp(const char* name) const override {
    for (unsigned int each = 0; each < count_; ++each) {
      if (names_[each] != nullptr && std::strcmp(names_[each], name) == 0) {
        return given_[each] != nullptr ? given_[each] : all_->FindOp(name);
      }
    }
    return nullptr;
  }
  Parse GetOpDataParser(BuiltinOperator code) const override { return Has(code) ? all_->GetOpDataParser(code) : nullptr; }
  TfLiteStatus AddCustom(const char* name, const TFLMRegistration* registration) { return Add(-1, name, registration); }
#include "operators.inc"

 private:
  TfLiteStatus Add(int code, const char* name = nullptr, const TFLMRegistration* given = nullptr) {
    if (count_ == kOperators) return kTfLiteError;
    codes_[count_] = code;
    names_[count_] = name;
    given_[count_++] = given;
    return kTfLiteOk;
  }
  bool Has(int code) const {
    for (unsigned int each = 0; each < count_; ++each) {
      if (codes_[each] == code) return true;
    }
    return false;
  }

  int codes_[kOperators + 1] = {};  // one more: a model may have none
  const char* names_[kOperators + 1] = {};
  const TFLMRegistration* given_[kOperators + 1] = {};
  unsigned int count_ = 0;
  alignas(16) unsigned char state_[sizeof(PythonOpsResolver)];
  const MicroOpResolver* all_;
};
TFLM_NAMESPACE_END
