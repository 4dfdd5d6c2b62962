// Imitates a target that resumes a transfer, for tests of retained snapshots.
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

// The answer of a source to an OpenRequest.
struct Announced {
  Opened opened;
  std::vector<Family> families;
  std::vector<Part> parts;
  std::optional<Busy> busy;  // there was no free slot
};

OpenRequest SampleRequest();
OpenRequest ResumeOf(const TransferId& id);

// Connects and sends the request. If the answer is an End, returns its status.
rocksdb::Status OpenAs(const HostPort& where, const OpenRequest& request,
                       std::unique_ptr<Channel>* control,
                       Announced* announced, const Hello* as = nullptr,
                       const TlsFiles& tls = {});

// Requests one part. *end: the end of the answer. Drops the chunks' data.
rocksdb::Status TakePart(Channel* lane, const PartRequest& request,
                          PartEnd* end, std::vector<ChunkEnd>* chunks);

// Sends our totals and receives the source's. Ignores the Stats before them.
rocksdb::Status AgreeOnTotals(Channel* control, const Finish& totals);
// Agrees on the totals, and ends with OK.
rocksdb::Status FinishWith(Channel* control, const Finish& totals);

// Ends the transfer with `state`, as a failed target does.
void SendEndState(Channel* control, EndState state);

// Returns the private snapshot directories in `parent`.
std::vector<std::string> SnapshotsIn(const std::string& parent);
// Waits until `parent` has `count` snapshot directories; returns false after 60
// seconds.
bool WaitForSnapshots(const std::string& parent, size_t count);

// A clock in seconds that only a test advances.
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

// A sample database at dir/source/db, and the options to serve it with leases.
struct RetainedBench {
  RetainedBench();
  ServeOptions Options();
  std::string parent() const { return dir / "source"; }
  ScratchDir dir;
  HandClock clock;
};

}  // namespace sstferry
