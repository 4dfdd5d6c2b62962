#include "pipeline/operation/source_choice.h"

#include <algorithm>

#include "format/end_state.h"

namespace sstferry {
namespace {

using rocksdb::Status;

Status Refused(const std::string& expected, const std::string& found) {
  return MakeStatus(EndState::kRefused, "several sources: expected " +
                                            expected + ", found " + found);
}

}  // namespace

Status CheckSources(const PullOptions& options, bool in_place) {
  if (options.more_sources.empty()) {
    return Status::OK();
  }
  const std::vector<SourceAddress> all = SourcesInOrder(options, "");
  if (all.size() > kMaxSources) {
    return Refused("at most " + std::to_string(kMaxSources),
                   std::to_string(all.size()));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_directory() || all[i].name.empty()) {
      return Refused("sst://HOST[:PORT]/NAME for each", all[i].ToString());
    }
    for (size_t j = 0; j < i; ++j) {
      if (all[i].ToString() == all[j].ToString()) {
        return Refused("each once", all[i].ToString() + " twice");
      }
    }
  }
  if (in_place) {
    return Refused("a pull that makes a new database",
                   "a refresh in place; name the source that the replica was "
                   "made from");
  }
  return options.snapshot_of.has_value()
             ? Refused("--snapshot new or latest",
                       "the id of a transfer, which one source has")
             : Status::OK();
}

std::vector<SourceAddress> SourcesInOrder(const PullOptions& options,
                                          const std::string& begun_with) {
  std::vector<SourceAddress> all = {options.source};
  all.insert(all.end(), options.more_sources.begin(),
             options.more_sources.end());
  std::stable_partition(all.begin(), all.end(),
                        [&begun_with](const SourceAddress& source) {
                          return source.ToString() == begun_with;
                        });
  return all;
}

bool MayTryAnother(const Status& status) {
  switch (EndStateOf(status)) {
    case EndState::kDenied:
    case EndState::kSourceError:
    case EndState::kCorrupt:
      return true;
    default:
      return MayTryAgain(status);
  }
}

bool MayTryAgain(const Status& status) {
  switch (EndStateOf(status)) {
    case EndState::kDeadPeer:
    case EndState::kTooSlow:
    case EndState::kSnapshotGone:
    case EndState::kBusy:
      return true;
    default:
      return false;
  }
}

void SourceTally::AddOne(const SourceSummary& one) {
  const auto known = std::find_if(
      sources_.begin(), sources_.end(),
      [&one](const SourceSummary& other) { return other.url == one.url; });
  if (known == sources_.end()) {
    sources_.push_back(one);
    return;
  }
  known->bytes += one.bytes;
  known->units += one.units;
  if (one.state != "unused" && one.state != "unreachable") {
    known->state = one.state;
  }
}

void SourceTally::Add(const SourceAddress& source, const Status& status,
                      bool source_failed, const Summary& summary) {
  // Chunks come from the first one alone.
  SourceSummary first = {source.ToString(),
                         summary.sst_bytes - summary.sst_bytes_resumed,
                         summary.chunks - summary.chunks_resumed, "used"};
  if (!summary.sources.empty()) {
    first = summary.sources.front();
  }
  if (source_failed) {
    first.state = !MayTryAgain(status)          ? "refused"
                  : summary.transfer_id.empty() ? "unreachable"
                                                : "lost";
  }
  AddOne(first);
  for (size_t i = 1; i < summary.sources.size(); ++i) {
    AddOne(summary.sources[i]);
  }
}

void SourceTally::Fill(const PullOptions& options, Summary* summary) const {
  SourceTally all = *this;
  for (const SourceAddress& source : SourcesInOrder(options, "")) {
    all.AddOne({source.ToString(), 0, 0, "unused"});
  }
  summary->sources = std::move(all.sources_);
}

}  // namespace sstferry
