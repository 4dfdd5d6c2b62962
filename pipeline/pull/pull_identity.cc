#include "pipeline/pull/pull_identity.h"

#include <algorithm>

#include "format/end_state.h"
#include "format/limits.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Status;

std::string& ImitatedBootId() {
  static std::string id;
  return id;
}

// Returns an id that changes with every boot of the machine; empty if the
// kernel has no such id.
std::string BootId() {
  if (!ImitatedBootId().empty()) {
    return ImitatedBootId();
  }
  const std::string id = ReadProc("sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

Status Another(const std::string& dir, const std::string& what) {
  return MakeStatus(EndState::kRefused,
                    dir + " holds an unfinished pull " + what +
                        "; --restart discards it and starts over");
}

std::string Sorted(std::vector<std::string> names) {
  if (names.empty()) {
    return "all";
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "'" : ", '") + name + "'";
  }
  return text;
}

std::string Bounds(const KeyInterval& interval) {
  const auto text = [](const std::optional<std::string>& key) {
    return key ? "'" + KeyToText(*key) + "'" : std::string("none");
  };
  return text(interval.begin) + " to " + text(interval.end);
}

}  // namespace

JournalTransfer MakeJournalHead(const PullOptions& options,
                                const std::string& mode,
                                const OpenRequest& asked,
                                const Plan& plan) {
  JournalTransfer head;
  head.transfer_id = plan.opened.transfer_id;
  head.source = options.source.ToString();
  head.source_database_id = plan.opened.source_database_id;
  head.snapshot_sequence = plan.opened.snapshot_sequence;
  head.mode = mode;
  head.families = asked.families;
  head.interval = asked.interval;
  head.chunk_bytes = asked.chunk_bytes;
  head.application = asked.application;
  head.durable = options.durability == Durability::kChunk;
  head.boot_id = BootId();
  if (options.command_line.size() <= kMaxCommandLineBytes) {
    head.command_line = options.command_line;
  }
  return head;
}

Status CheckSameRequest(const PullOptions& options, const std::string& mode,
                        const JournalTransfer& head, const std::string& dir) {
  const std::string families = Sorted(options.selection.families);
  if (families != Sorted(head.families)) {
    return Another(dir, "of other column families (" + Sorted(head.families) +
                            "; now " + families + ")");
  }
  if (!(options.selection.interval == head.interval)) {
    return Another(dir, "of other keys (" + Bounds(head.interval) + "; now " +
                            Bounds(options.selection.interval) + ")");
  }
  if (!options.for_rocksdb.empty() && options.for_rocksdb != head.application) {
    return Another(dir, "for another RocksDB (" +
                            (head.application.empty()
                                 ? "that of the source's application"
                                 : head.application) +
                            "; now " + options.for_rocksdb + ")");
  }
  if (head.mode != mode) {
    return Another(dir, "in mode '" + head.mode + "' (now '" + mode + "')");
  }
  return Status::OK();
}

Status CheckSameSource(const PullOptions& options, const Plan& plan,
                       const JournalTransfer& head, const std::string& dir) {
  if (plan.opened.source_database_id == head.source_database_id) {
    return Status::OK();
  }
  return Another(dir, "of another source (" + head.source + ", database " +
                          head.source_database_id + "; now " +
                          options.source.ToString() + ", database " +
                          plan.opened.source_database_id + ")");
}

Status CheckSamePlan(const Plan& plan, const JournalState& unfinished) {
  const bool same =
      plan.opened.transfer_id == unfinished.head.transfer_id &&
      plan.opened.source_database_id == unfinished.head.source_database_id &&
      plan.opened.snapshot_sequence == unfinished.head.snapshot_sequence &&
      plan.Digest() == unfinished.plan.Digest();
  return same ? Status::OK()
              : MakeStatus(EndState::kSnapshotGone,
                           "the source resumed the transfer, but its plan "
                           "differs from the one that this pull recorded");
}

bool SurvivedReboots(const JournalTransfer& head) {
  return head.durable || (!head.boot_id.empty() && head.boot_id == BootId());
}

void TEST_SetBootId(const std::string& id) { ImitatedBootId() = id; }

}  // namespace sstferry
