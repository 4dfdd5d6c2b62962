#include "pipeline/archive/set_source.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/part.h"
#include "pipeline/archive/store.h"
#include "pipeline/base/start_thread.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

uint64_t PieceBytes(uint64_t file_bytes) {
  const uint64_t most = kPieceBytes * kMaxPutPieces;
  return kPieceBytes * (file_bytes / most + (file_bytes % most != 0));
}

Status ForEachInLanes(int lanes, size_t count,
                      const std::function<Status(size_t)>& each) {
  std::atomic<size_t> next{0};
  std::mutex mu;
  Status failed;  // first failure; guarded by mu
  const auto work = [&] {
    for (size_t at = next++; at < count; at = next++) {
      const Status status = each(at);
      if (!status.ok()) {
        const std::lock_guard<std::mutex> lock(mu);
        failed = failed.ok() ? status : failed;
        next = count;
      }
    }
  };
  std::vector<std::thread> threads(
      std::clamp<size_t>(count, 1, static_cast<size_t>(std::max(lanes, 1))) -
      1);
  for (std::thread& thread : threads) {
    // If a thread cannot be started, the other threads do its work.
    StartThread([&work] { work(); }, &thread).PermitUncheckedError();
  }
  work();
  for (std::thread& thread : threads) {
    if (thread.joinable()) {
      thread.join();
    }
  }
  return failed;
}

Sha256Digest Sha256OfPieces(const std::vector<Sha256Digest>& pieces) {
  if (pieces.size() == 1) {
    return pieces.front();
  }
  Sha256 all;
  for (const Sha256Digest& piece : pieces) {
    all.Update(Slice(reinterpret_cast<const char*>(piece.data()),
                     piece.size()));
  }
  return all.Finish();
}

void FileDigests::Add(const FileDigestReply& piece) {
  pieces.push_back(piece.sha256);
  units.insert(units.end(), piece.units.begin(), piece.units.end());
}

ArchiveSet SetOfPlan(const Plan& plan) {
  const Opened& opened = plan.opened;
  const FileSet& clone = *plan.clone;
  ArchiveSet set;
  set.database_id = opened.source_database_id;
  set.sequence = opened.snapshot_sequence;
  set.content = clone.content;
  // The push requested no other release, so this is the release of the source.
  set.application = opened.application;
  set.needs = opened.opens_since;
  set.needs_because = opened.opens_because;
  set.unit_bytes = clone.unit_bytes;
  set.notes = opened.notes;
  set.notes.resize(std::min<size_t>(set.notes.size(), kMaxNotes));
  for (const Family& family : plan.families) {
    set.families.push_back(family.description.name);
  }
  for (const CloneFile& file : clone.files) {
    set.files.emplace_back().file = file;
  }
  return set;
}

Status ForEachPiece(
    uint64_t file_bytes,
    const std::function<Status(uint64_t, uint64_t)>& each) {
  const uint64_t most = PieceBytes(file_bytes);
  uint64_t at = 0;
  do {
    const uint64_t bytes = std::min(most, file_bytes - at);
    RETURN_IF_ERROR(each(at, bytes));
    at += bytes;
  } while (at < file_bytes);
  return Status::OK();
}

PieceDigester::PieceDigester(uint64_t bytes)
    : piece_bytes_(PieceBytes(bytes)), bytes_(bytes) {}

void PieceDigester::Add(Slice bytes) {
  while (!bytes.empty()) {
    const uint64_t end =
        std::min((pieces_.size() + 1) * piece_bytes_, bytes_);
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), end - at_));
    if (piece_ == nullptr) piece_ = std::make_unique<Sha256>();
    piece_->Update(Slice(bytes.data(), count));
    bytes.remove_prefix(count);
    at_ += count;
    if (at_ == end) {
      pieces_.push_back(piece_->Finish());
      piece_.reset();
    }
  }
}

const std::vector<Sha256Digest>& PieceDigester::Finish() {
  if (bytes_ == 0) {
    pieces_.assign(1, Sha256Of(""));
  }
  return pieces_;
}

UnitDigester::UnitDigester(const CloneFile& file, uint64_t unit_bytes) {
  std::vector<Part> units;
  // This cannot fail, because all files together were already cut into units.
  CutIntoUnits({file}, unit_bytes, &units).PermitUncheckedError();
  for (const Part& unit : units) {
    ends_.push_back(unit.offset + unit.bytes);
  }
}

void UnitDigester::Add(Slice bytes) {
  while (!bytes.empty()) {
    const uint64_t end = ends_[units_.size()];
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), end - at_));
    if (unit_ == nullptr) unit_ = std::make_unique<Digest128Stream>();
    unit_->Add(Slice(bytes.data(), count));
    bytes.remove_prefix(count);
    at_ += count;
    if (at_ == end) {
      units_.push_back(unit_->Finish());
      unit_.reset();
    }
  }
}

Status DigestedFile::Digest(uint64_t offset, uint64_t bytes,
                            FileDigests* digests) {
  if (bytes == 0 && size_ != 0) {
    return Status::OK();
  }
  constexpr uint64_t kReadBytes = 1u << 20;
  Sha256 piece;
  std::string scratch;
  for (uint64_t at = offset; at < offset + bytes;) {
    Slice read;
    RETURN_IF_ERROR(bytes_->Read(
        at,
        static_cast<size_t>(std::min(kReadBytes, offset + bytes - at)),
        &scratch, &read));
    piece.Update(read);
    units_.Add(read);
    at += read.size();
  }
  digests->pieces.push_back(piece.Finish());
  digests->units = units_.units();
  return Status::OK();
}

}  // namespace sstferry
