// The target's checks of a clone's plan, before anything is written.
#include <functional>

#include "format/limits.h"
#include "pipeline/pull/plan_receiver.h"
#include "tests/format/samples.h"
#include "tests/support/catch.h"

namespace sstferry::clone_plan_test {
namespace {

using rocksdb::Status;

// A clone's plan as a source sends it. Tests change it.
struct Said {
  CloneSet set;
  std::vector<CloneFile> files;
  std::vector<Part> parts;
};

Said Honest() {
  Said said;
  said.files = {{CloneFileKind::kTable, 7, 3 * kMinChunkBytes + 5, 0},
                {CloneFileKind::kManifest, 4, 300, 290}};
  said.set.unit_bytes = kMinChunkBytes;
  said.set.file_count = 2;
  REQUIRE_OK(CutIntoUnits(said.files, said.set.unit_bytes, &said.parts));
  return said;
}

// Adds a file, with its units.
void Add(const CloneFile& file, Said* said) {
  said->files.push_back(file);
  said->set.file_count++;
  REQUIRE_OK(CutIntoUnits(said->files, said->set.unit_bytes, &said->parts));
}

template <typename Message>
Status Take(PlanReceiver* receiver, FrameType type, const Message& message) {
  Frame frame;
  frame.type = type;
  const std::string payload = Encode(message);
  frame.payload = payload;
  return receiver->Take(frame);
}

Status Receive(const Said& said, Plan* plan) {
  PlanReceiver receiver;
  receiver.Begin();
  Opened opened;
  opened.family_count = 1;
  Family family;
  family.description.name = "default";
  PlanEnd end;
  end.part_count = static_cast<uint32_t>(said.parts.size());
  Status status = Take(&receiver, FrameType::kOpened, opened);
  if (status.ok()) status = Take(&receiver, FrameType::kFamily, family);
  if (status.ok()) status = Take(&receiver, FrameType::kCloneSet, said.set);
  if (status.ok()) {
    status = Take(&receiver, FrameType::kCloneFiles, CloneFiles{said.files});
  }
  if (status.ok()) {
    status = Take(&receiver, FrameType::kParts, Parts{said.parts});
  }
  if (status.ok()) status = Take(&receiver, FrameType::kPlanEnd, end);
  if (status.ok()) *plan = receiver.TakePlan();
  return status;
}

TEST_CASE("A clone's plan has one part for each unit", "[pipeline][clone]") {
  Plan plan;
  REQUIRE_OK(Receive(Honest(), &plan));
  REQUIRE(plan.clone->files == Honest().files);
  REQUIRE(plan.parts.size() == 5);
  Said with_identity = Honest();
  Add({CloneFileKind::kIdentity, 0, kMaxIdentityBytes, 0}, &with_identity);
  REQUIRE_OK(Receive(with_identity, &plan));
  REQUIRE(plan.parts.size() == 6);
}

TEST_CASE("False statements of a source about a clone's files are found",
          "[pipeline][clone][corruption]") {
  const std::vector<std::pair<const char*, std::function<void(Said*)>>> lies =
      {{"a part too few", [](Said* s) { s->parts.pop_back(); }},
       {"units that overlap",
        [](Said* s) { s->parts[1].bytes += 1; }},
       {"a unit of another file", [](Said* s) { s->parts[1].file = 1; }},
       {"a unit from elsewhere", [](Said* s) { s->parts[1].offset += 1; }},
       {"a unit that says it is keys",
        [](Said* s) { s->parts[1].kind = PartKind::kRebuilt; }},
       {"a unit with bounds",
        [](Said* s) { s->parts[1].interval.begin = "k"; }},
       {"a unit of another need",
        [](Said* s) { s->parts[2].need = PartNeed::kCompare; }},
       {"a file twice", [](Said* s) { s->files[1] = s->files[0]; }},
       {"a number twice", [](Said* s) { s->files[1].number = 7; }},
       {"no MANIFEST",
        [](Said* s) { s->files[1].kind = CloneFileKind::kWal; }},
       {"an absurd size", [](Said* s) { s->files[0].bytes = UINT64_MAX; }},
       {"an IDENTITY that is too large",
        [](Said* s) {
          Add({CloneFileKind::kIdentity, 0, kMaxIdentityBytes + 1, 0}, s);
        }},
       {"OPTIONS that are too large",
        [](Said* s) {
          Add({CloneFileKind::kOptions, 9, kMaxOptionsFileBytes + 1, 0}, s);
        }},
       {"fewer files than announced", [](Said* s) { s->set.file_count = 3; }},
       {"more files than announced", [](Said* s) { s->set.file_count = 1; }}};
  for (const auto& [what, lie] : lies) {
    Said said = Honest();
    lie(&said);
    Plan plan;
    const Status status = Receive(said, &plan);
    INFO(what << ": " << status.ToString());
    REQUIRE(EndStateOf(status) == EndState::kCorrupt);
  }
}

}  // namespace
}  // namespace sstferry::clone_plan_test
