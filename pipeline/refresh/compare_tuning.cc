#include "pipeline/refresh/compare_tuning.h"

#include <utility>

namespace sstferry {
namespace {

CompareTuning& Tuning() {
  static CompareTuning tuning;
  return tuning;
}

}  // namespace

const CompareTuning& TuningOfComparisons() { return Tuning(); }

void SetTuningOfComparisons(CompareTuning tuning) {
  Tuning() = std::move(tuning);
}

}  // namespace sstferry
