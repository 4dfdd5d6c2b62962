// A target that goes on with a transfer, as the tests of held snapshots play
// it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "pipeline/pull/source_session.h"
#include "tests/support/fake_peer.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

// What a source answered to an OpenRequest.
struct Announced {
  Opened opened;
  std::vector<Family> families;
  std::vector<Part> parts;
  std::optional<Busy> busy;  // there was no place
};

OpenRequest SampleRequest();
OpenRequest ResumeOf(const TransferId& id);

// Connects and opens; the End's state when that is the answer.
rocksdb::Status OpenAs(const HostPort& where, const OpenRequest& request,
                       std::unique_ptr<Channel>* control,
                       Announced* announced, const Hello* as = nullptr,
                       const TlsFiles& tls = {});

// Asks for one part; *end is its answer, the chunks are dropped.
rocksdb::Status TakePart(Channel* lane, const PartRequest& request,
                          PartEnd* end, std::vector<ChunkEnd>* chunks);

// Tells the totals, and gets those of the source; what it says of its progress
// before them is dropped.
rocksdb::Status AgreeOnTotals(Channel* control, const Finish& totals);
// The same, and ends with OK.
rocksdb::Status FinishWith(Channel* control, const Finish& totals);

// Ends it as a target does that failed.
void SendEndState(Channel* control, EndState state);

// Private snapshot directories in `parent`.
std::vector<std::string> SnapshotsIn(const std::string& parent);
// Waits until there are so many; false after 20 seconds.
bool WaitForSnapshots(const std::string& parent, size_t count);

// Seconds that pass when a test says so.
class HandClock {
 public:
  std::function<uint64_t()> function() {
    return [this] { return seconds_.load(); };
  }
  uint64_t now() const { return seconds_; }
  void Advance(uint64_t seconds) { seconds_ += seconds; }
  void Set(uint64_t seconds) { seconds_ = seconds; }

 private:
  std::atomic<uint64_t> seconds_{1'000'000};
};

// One sample database at dir/source/db and how it is served with leases.
struct RetainedBench {
  RetainedBench();
  ServeOptions Options();
  std::string parent() const { return dir / "source"; }
  ScratchDir dir;
  HandClock clock;
};

}  // namespace sstferry
