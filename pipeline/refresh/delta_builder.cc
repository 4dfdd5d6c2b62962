#include "pipeline/refresh/delta_builder.h"

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/parts/chunk_writer.h"
#include "pipeline/parts/range_entries.h"
#include "pipeline/parts/read_failure.h"
#include "pipeline/refresh/compare_tuning.h"
#include "pipeline/refresh/next_place.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Number of entries between two polls of `cancelled`.
constexpr uint64_t kDeltaLookInterval = 64;

}  // namespace

DeltaBuilder::DeltaBuilder(rocksdb::DB* db,
                           rocksdb::ColumnFamilyHandle* family,
                           const rocksdb::Options& chunk_options,
                           const ChunkBuilderOptions& options, ChunkSink* sink)
    : db_(db),
      family_(family),
      options_(options),
      sink_(sink),
      chunk_options_(chunk_options) {}

DeltaBuilder::~DeltaBuilder() = default;

Status DeltaBuilder::BuildDifferences(const Part& part,
                                      const PieceDifference& piece,
                                      EntryDigester* digester) {
  chunk_ = ChunkEnd();
  chunk_.part_id = part.id;
  chunk_.ordinal = piece.ordinal;
  next_ = 0;
  between_ = 0;
  read_ = 0;
  run_ = Run();
  const bool by_spans = piece.basis == DeltaBasis::kGroups ||
                        piece.basis == DeltaBasis::kSifted;
  RETURN_IF_ERROR(by_spans ? MergeSpans(piece, digester)
                           : MergeAll(piece, digester));
  RETURN_IF_ERROR(DeleteBefore(nullptr, piece));
  RETURN_IF_ERROR(EndRun(piece));
  return Finish();
}

Status DeltaBuilder::MergeSpans(const PieceDifference& piece,
                                EntryDigester* digester) {
  // Do not read ahead: the reader skips the data between the spans.
  IntervalReader reader(db_, family_, piece.interval, /*readahead_bytes=*/0,
                        options_.cancelled);
  NextPlace place(family_->GetComparator(), &reader);
  for (const KeyInterval& span : piece.spans) {
    place.MoveTo(*span.begin);
    RETURN_IF_ERROR(MergeSpan(span, piece, digester, &reader));
  }
  return Status::OK();
}

Status DeltaBuilder::MergeAll(const PieceDifference& piece,
                              EntryDigester* digester) {
  RangeEntriesOptions options;
  options.readahead_bytes = options_.readahead_bytes;
  options.files = options_.files;
  options.cancelled = options_.cancelled;
  RangeEntries reader(db_, family_, piece.interval, options);
  reader.SeekToBegin();
  if (piece.basis == DeltaBasis::kOutermost && reader.Valid()) {
    return MakeStatus(EndState::kCorrupt,
                      "delta request: expected an interval in which the source "
                      "has nothing, found " +
                          EntryForMessage(*family_, reader.key()));
  }
  return MergeSpan(piece.interval, piece, digester, &reader);
}

Status DeltaBuilder::MergeSpan(const KeyInterval& span,
                               const PieceDifference& piece,
                               EntryDigester* digester, EntryReader* reader) {
  const rocksdb::Comparator* const order = family_->GetComparator();
  const std::vector<GroupEntry>& entries = piece.entries;
  std::string scratch;
  for (; reader->Valid(); reader->Next()) {
    const Slice key = reader->key();
    if (span.end.has_value() && order->Compare(key, *span.end) >= 0) {
      break;
    }
    RETURN_IF_ERROR(DeleteBefore(&key, piece));
    RETURN_IF_ERROR(EndRun(piece));
    bool same = read_ < piece.common.size() && piece.common[read_];
    ++read_;
    if (next_ < entries.size() &&
        order->Compare(key, entries[next_].key) == 0) {
      bool entity = false;
      const Slice value = reader->DigestValue(&scratch, &entity);
      same = same || digester->DigestOfEntry(key, value, entity) ==
                         entries[next_].digest;
      ++next_;
    }
    if (!same && !IsPlanted(CompareFault::kPutLeftOut)) {
      RETURN_IF_ERROR(Put(reader));
    }
    RETURN_IF_ERROR(Poll());
  }
  return ReadFailure(reader->status(),
                     "read column family '" + family_->GetName() + "'");
}

Status DeltaBuilder::DeleteBefore(const Slice* key,
                                  const PieceDifference& piece) {
  const rocksdb::Comparator* const order = family_->GetComparator();
  while (next_ < piece.entries.size()) {
    const std::string& theirs = piece.entries[next_].key;
    if (key != nullptr && order->Compare(theirs, *key) >= 0) {
      break;
    }
    bool ends = run_.end != next_;
    while (between_ < piece.between.size() &&
           order->Compare(piece.between[between_], theirs) < 0) {
      ++between_;
      ends = true;
    }
    if (ends) {
      RETURN_IF_ERROR(EndRun(piece));
      run_ = {next_, next_};
    }
    run_.end = ++next_;
    RETURN_IF_ERROR(Poll());
  }
  return Status::OK();
}

Status DeltaBuilder::EndRun(const PieceDifference& piece) {
  const Run run = run_;
  run_ = {next_, next_};
  const bool at_once =
      run.end - run.first > 1 && piece.most_point_deletions != 0 &&
      (piece.basis == DeltaBasis::kOutermost ||
       run.end - run.first > piece.most_point_deletions);
  if (at_once) {
    const size_t last =
        run.end - (run.end - run.first > 2 &&
                           IsPlanted(CompareFault::kRangeTooShort)
                       ? 2
                       : 1);
    return DeleteRange(piece.entries[run.first].key, piece.entries[last].key);
  }
  for (size_t i = run.first; i < run.end; ++i) {
    if (IsPlanted(CompareFault::kDeletionLeftOut)) {
      continue;
    }
    RETURN_IF_ERROR(Delete(piece.entries[i].key));
  }
  return Status::OK();
}

Status DeltaBuilder::Poll() {
  return ++steps_ % kDeltaLookInterval == 0 && options_.cancelled &&
                 options_.cancelled()
             ? MakeStatus(EndState::kCancelled, "build: stopped on request")
             : Status::OK();
}

Status DeltaBuilder::Open(const Slice& first) {
  if (writer_ != nullptr) {
    return Status::OK();
  }
  ChunkBegin begin;
  begin.part_id = chunk_.part_id;
  begin.ordinal = chunk_.ordinal;
  begin.kind = PartKind::kDelta;
  RETURN_IF_ERROR(sink_->Begin(begin));
  writer_ = std::make_unique<ChunkWriter>(chunk_options_, sink_);
  chunk_.smallest = first.ToString();
  return writer_->Open();
}

Status DeltaBuilder::Put(EntryReader* reader) {
  const Slice key = reader->key();
  const Slice value = reader->value();
  RETURN_IF_ERROR(
      CheckEntry(*reader, options_.target_takes_entities, *family_));
  RETURN_IF_ERROR(Open(key));
  const Status status = writer_->Add(reader, key, value);
  if (!status.ok()) {
    return WithContext(status, EndState::kInternal,
                       EntryForMessage(*family_, key));
  }
  chunk_.entries++;
  chunk_.key_bytes += key.size();
  chunk_.value_bytes += value.size();
  chunk_.largest.assign(key.data(), key.size());
  if (options_.on_progress) {
    options_.on_progress(1);
  }
  return Status::OK();
}

Status DeltaBuilder::Delete(const Slice& key) {
  RETURN_IF_ERROR(Open(key));
  const Status status = writer_->Delete(key);
  if (!status.ok()) {
    return WithContext(status, EndState::kInternal,
                       "delete: " + EntryForMessage(*family_, key));
  }
  chunk_.largest.assign(key.data(), key.size());
  return Status::OK();
}

Status DeltaBuilder::DeleteRange(const Slice& first, const Slice& last) {
  RETURN_IF_ERROR(Delete(first));
  RETURN_IF_ERROR(
      WithContext(writer_->DeleteRange(first, last), EndState::kInternal,
                  "delete from: " + EntryForMessage(*family_, first)));
  return Delete(last);
}

Status DeltaBuilder::Finish() {
  if (writer_ == nullptr) {
    return Status::OK();
  }
  Status status =
      WithContext(writer_->Finish(), EndState::kInternal, "finish chunk");
  chunk_.file_bytes = writer_->file_bytes();
  writer_.reset();
  return status.ok() ? sink_->End(chunk_) : status;
}

}  // namespace sstferry
