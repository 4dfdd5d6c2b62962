// Lanes wait for disk space.
#include "pipeline/disk/space_gate.h"

#include "format/end_state.h"
#include "tests/support/catch.h"
#include "tests/support/faulty_file_system.h"

namespace sstferry::space_gate_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST_CASE("A chunk passes if it leaves the reserve, one byte more does not",
          "[target][nospace]") {
  FaultyFileSystem disk;
  StopSignal stop;
  SpaceGate gate(&disk, "/", 1'000'000, milliseconds(0), &stop);
  disk.SetFreeSpace(1'500'000);
  REQUIRE_OK(gate.Pass(500'000));
  const rocksdb::Status status = gate.Pass(500'001);
  INFO(status.ToString());
  REQUIRE(EndStateOf(status) == EndState::kNoSpace);
  REQUIRE(MessageOf(status).find("1.00 MB that --min-free keeps") !=
          std::string::npos);
}

// A disk that has room only at the third question.
class EmptyingDisk : public rocksdb::FileSystemWrapper {
 public:
  explicit EmptyingDisk(uint64_t full)
      : FileSystemWrapper(FileSystem::Default()), full_(full) {}
  const char* Name() const override { return "sstferry.Emptying"; }
  rocksdb::IOStatus GetFreeSpace(const std::string&,
                                 const rocksdb::IOOptions&, uint64_t* bytes,
                                 rocksdb::IODebugContext*) override {
    *bytes = ++asked_ < 3 ? full_ : full_ + 1;
    return rocksdb::IOStatus::OK();
  }
  int asked() const { return asked_; }

 private:
  const uint64_t full_;
  int asked_ = 0;
};

TEST_CASE("A chunk waits for room, and says once that it does",
          "[target][nospace]") {
  EmptyingDisk disk(1'000'000);
  StopSignal stop;
  int said = 0;
  SpaceGate gate(&disk, "/", 1'000'000, hours(1), &stop,
                 [&](const std::string& text) {
                   REQUIRE(text.find("waiting for disk space") == 0);
                   said++;
                 });
  REQUIRE_OK(gate.Pass(1));
  REQUIRE(disk.asked() == 3);
  REQUIRE(said == 1);
}

TEST_CASE("A wait for room can be stopped at once", "[target][nospace]") {
  FaultyFileSystem disk;
  disk.SetFreeSpace(0);
  StopSignal stop;
  SpaceGate gate(&disk, "/", 1, hours(1), &stop,
                 [&](const std::string&) { stop.Stop(); });
  REQUIRE(EndStateOf(gate.Pass(1)) == EndState::kCancelled);
}

}  // namespace
}  // namespace sstferry::space_gate_test
