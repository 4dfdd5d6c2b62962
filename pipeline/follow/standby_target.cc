#include "pipeline/follow/standby_target.h"

#include <algorithm>

#include "format/end_state.h"
#include "pipeline/base/this_machine.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/workspace.h"
#include "pipeline/follow/followed_source.h"

namespace sstferry {

using rocksdb::Status;

Status SetCutOptions(const CutRequest& request, Standby* standby,
                     StandbyAudit* audit, PullOptions* options) {
  RETURN_IF_ERROR(standby->BeginCut());
  options->mode = PullMode::kSwap;
  options->method = PullMethod::kClone;
  options->target_dir = standby->dir();
  options->always_swap = true;
  // A source that was restored with its id from an older copy may have less
  // than the standby, which still follows it: Standby::KeepUnproven() keeps what
  // it lost. StandbyTarget refuses a source that is another database.
  options->adopts_old = standby->adopts();
  options->adopt = options->adopt || options->adopts_old ||
                   standby->record().source == options->source.ToString();
  options->verify = options->verify || request.compares;
  options->keeps_old = false;
  // Only a regular cut (kCutEvery) yields to other work on the machine. A
  // required cut blocks all later records until it has deleted the files that
  // it replaces. During a kMaxReplay cut, the WALs, which are too long already,
  // keep growing.
  options->full_rate =
      options->full_rate || request.reason != CutReason::kCutEvery;
  if (!request.continues()) options->delete_rate_bytes_per_sec = 0;
  // Leaves half of the rate for records that arrive during the cut.
  if (request.continues()) {
    options->max_rate_bytes_per_sec = (options->max_rate_bytes_per_sec + 1) / 2;
  }
  // The files of an unfinished cut show an earlier moment than this cut. So a
  // cut resumes only if it is the first one, when there is no standby yet.
  options->restart = standby->exists();
  options->before_swap = [request, standby, audit](const SwapEvent& event) {
    const std::string new_dir = Workspace::DirOf(event.target_dir) + "/db";
    const Status prepared =
        audit == nullptr ? Status::OK()
                         : audit->Prepare(*standby, new_dir,
                                          request.continues(), event.stopped);
    return prepared.ok() ? standby->CarryInto(new_dir, request.continues())
                         : prepared;
  };
  options->after_swap = [standby](const SwapEvent& event) {
    return standby->EndCut(event.exchanged);
  };
  return Status::OK();
}

Status StandbyTarget::BuildFamilies() {
  const std::string known = standby_->record().source_database_id;
  const std::string& found = plan().opened.source_database_id;
  if (standby_->exists() && !takes_any_ && found != known) {
    return MakeStatus(
        EndState::kRefused,
        standby_->dir() + ": expected the database " + known +
            ", which this standby follows, found the database " + found +
            " at " + options().source.ToString() +
            "; the standby stays as it is; follow into another directory, or "
            "with --adopt, which replaces the standby's data and keeps it "
            "beside the standby");
  }
  return CloneTarget::BuildFamilies();
}

Status StandbyTarget::NameManifest(const std::string& dir,
                                   const Access& access) {
  FollowFile record = standby_->record();
  record.source = options().source.ToString();
  record.source_database_id = plan().opened.source_database_id;
  record.sequence = plan().opened.snapshot_sequence;
  record.cut_micros = MicrosNow();
  record.reason = request_.reason;
  record.exact_filters = request_.exact_filters;
  record.cuts.resize(kMaxCutReason + 1);
  record.cuts[static_cast<size_t>(record.reason)]++;
  FollowPosition position;
  RETURN_IF_ERROR(PositionOfCut(plan().clone->files, dir,
                                record.source_database_id, &position));
  record.manifest_number = position.manifest_number;
  record.manifest_bytes = position.cut_bytes;
  record.manifest_digest = position.manifest;
  record.wals.clear();
  for (const CloneFile& file : plan().clone->files) {
    if (file.kind == CloneFileKind::kWal && file.records_end > 0 &&
        position.wal_bytes > 0 && file.number <= position.wal_number) {
      record.wals.push_back({file.number, file.records_end});
    }
  }
  std::sort(record.wals.begin(), record.wals.end(),
            [](const CutWal& a, const CutWal& b) {
              return a.number < b.number;
            });
  if (record.wals.size() > kMaxCutWals) {
    record.wals.erase(record.wals.begin(), record.wals.end() - kMaxCutWals);
  }
  RETURN_IF_ERROR(standby_->KeepUnproven(dir, request_.reason,
                                         request_.continued, &record));
  RETURN_IF_ERROR(WriteStandbyCurrent(last_files(), dir, access.OfFiles()));
  std::string bytes;
  EncodeFollowFile(record, &bytes);
  const std::string path = dir + "/" + kFollowFileName;
  RETURN_IF_ERROR(WriteDurably(last_files(), path, bytes));
  return SetAccess(path, access.OfFiles());
}

}  // namespace sstferry
