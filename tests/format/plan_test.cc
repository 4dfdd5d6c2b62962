// The size of a plan: a source announces none that a target refuses.
#include "format/plan.h"

#include <string>

#include "format/end_state.h"
#include "format/limits.h"
#include "tests/support/catch.h"

namespace sstferry::plan_test {
namespace {

// Families with as many options as RocksDB 11 writes, and parts of the first.
Plan PlanOf(uint32_t families, uint32_t parts) {
  constexpr int kOptions = 140;
  Plan plan;
  for (uint32_t i = 0; i < families; ++i) {
    Family& family = plan.families.emplace_back();
    family.index = i;
    family.description.name = "family" + std::to_string(i);
    for (int option = 0; option < kOptions; ++option) {
      family.description.options.push_back(
          {"option_with_a_long_name_" + std::to_string(option), "1234567"});
    }
  }
  for (uint32_t i = 0; i < parts; ++i) {
    Part& part = plan.parts.emplace_back();
    part.id = i;
    part.interval.begin = "key" + std::to_string(i);
    part.interval.end = "key" + std::to_string(i + 1);
  }
  return plan;
}

TEST_CASE("A plan of many families and parts is taken, and its size is known",
          "[format]") {
  const Plan plan = PlanOf(2500, 133'000);
  REQUIRE(PlanBytes(plan) > 64u << 20);
  REQUIRE_OK(CheckPlanSize(plan));
  Opened opened;
  opened.family_count = static_cast<uint32_t>(plan.families.size());
  opened.notes.assign(kMaxNotes, std::string(kMaxNoteBytes, 'n'));
  PlanDecoder decoder;
  REQUIRE_OK(EncodePlan(opened, plan,
                        [&](FrameType type, const std::string& payload) {
                          return decoder.Add(type, payload);
                        }));
  REQUIRE(decoder.is_complete());
  const bool is_same = decoder.plan().parts == plan.parts;
  REQUIRE(is_same);
  REQUIRE(decoder.bytes() <= PlanBytes(plan));
  REQUIRE(decoder.bytes() + kMaxPayloadBytes >= PlanBytes(plan));
}

TEST_CASE("A plan that is larger than a target takes is not announced",
          "[format]") {
  const Plan plan = PlanOf(10, 100);
  REQUIRE_OK(CheckPlanSize(plan, PlanBytes(plan)));
  const rocksdb::Status status = CheckPlanSize(plan, PlanBytes(plan) - 1);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kRefused);
  REQUIRE(MessageOf(status).find("--method clone") != std::string::npos);
}

}  // namespace
}  // namespace sstferry::plan_test
