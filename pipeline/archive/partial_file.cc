#include "pipeline/archive/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "format/end_state.h"
#include "format/rocksdb/file_identity.h"
#include "format/rocksdb/sst_coding.h"
#include "pipeline/base/file_source.h"
#include "pipeline/base/key_interval.h"
#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/snapshot/posix_files.h"
#include "rocksdb/file_system.h"
#include "sstferry/descriptor.h"

namespace sstferry {

using rocksdb::Comparator;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Maximum size of blocks or records that one request fetches. A block or record
// that is larger is fetched alone.
constexpr uint64_t kRunBytes = 8u << 20;
// Maximum gap between two blob records that one request fetches together.
// Reading a gap of this size costs less than a second request.
constexpr uint64_t kBlobGapBytes = 16u << 10;
// Size of the footer, the metaindex and the properties of a typical table.
constexpr uint64_t kFirstTailBytes = 8u << 10;
// Size to which a read in a tail is extended. The following small reads then
// need no request.
constexpr uint64_t kTailAheadBytes = 64u << 10;

bool IsFilter(const std::string& name) {
  return name.starts_with("filter.") || name.starts_with("fullfilter.") ||
         name.starts_with(kPartitionedFilterPrefix);
}

// Returns the bytes of the last fetch from memory, and reads all other bytes
// from `below`.
class LaidOver : public ByteSource {
 public:
  explicit LaidOver(const ByteSource& below) : below_(below) {}

  // Makes `bytes` the content of the range that begins at `offset`. Does not
  // copy `bytes`, which must stay valid until the next call.
  void Lay(uint64_t offset, const Slice& bytes) {
    offset_ = offset;
    bytes_ = bytes;
  }
  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    const bool is_above = offset >= offset_ &&
                          offset - offset_ <= bytes_.size() &&
                          n <= bytes_.size() - (offset - offset_);
    if (!is_above) {
      return below_.Read(offset, n, scratch, out);
    }
    *out = Slice(bytes_.data() + (offset - offset_), n);
    return Status::OK();
  }
  uint64_t size() const override { return below_.size(); }

 private:
  const ByteSource& below_;
  uint64_t offset_ = 0;
  Slice bytes_;
};

}  // namespace

// --- any file ----------------------------------------------------------------

std::string PartialFile::path() const {
  return files_->directory + "/" + CloneFileName(file_->file);
}

Status PartialFile::Make() const {
  const Descriptor file =
      OpenPath(path(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  return file.is_open() && ftruncate(file.get(), static_cast<off_t>(
                                                     file_->file.bytes)) == 0
             ? Status::OK()
             : ErrnoStatus(EndState::kSourceError, "cannot make", path(),
                           errno);
}

Status PartialFile::Write(uint64_t offset, const Slice& bytes) {
  const Descriptor file = OpenPath(path(), O_WRONLY);
  if (!file.is_open()) {
    return ErrnoStatus(EndState::kSourceError, "cannot open", path(), errno);
  }
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        pwrite(file.get(), bytes.data() + done, bytes.size() - done,
               static_cast<off_t>(offset + done));
    if (count < 0 && errno != EINTR) {
      return ErrnoStatus(EndState::kSourceError, "cannot write", path(),
                         errno);
    }
    done += count < 0 ? 0 : static_cast<size_t>(count);
  }
  uint64_t begin = offset;
  uint64_t end = offset + bytes.size();
  const std::lock_guard<std::mutex> lock(mu_);
  auto next = spans_.upper_bound(begin);
  if (next != spans_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != spans_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = spans_.erase(next);
  }
  spans_.emplace(begin, end);
  return Status::OK();
}

bool PartialFile::Has(const ByteSpan& span) const {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto next = spans_.upper_bound(span.begin);
  return next != spans_.begin() && std::prev(next)->second >= span.end;
}

// --- blob files --------------------------------------------------------------

Status PartialBlobFile::FetchEnds(const SetReader::Cancelled& cancelled) {
  const uint64_t size = file().file.bytes;
  if (size < kBlobHeaderBytes + kBlobFooterBytes) {
    return reader()->Lost(file(),
                          "expected at least " +
                              std::to_string(kBlobHeaderBytes +
                                             kBlobFooterBytes) +
                              " bytes for a header and a footer, found " +
                              std::to_string(size));
  }
  const uint64_t footer_at = size - kBlobFooterBytes;
  std::string header;
  std::string footer;
  if (Has({footer_at, size})) {
    return Status::OK();
  }
  RETURN_IF_ERROR(reader()->ReadChecked(
      file(), 0, kBlobHeaderBytes, cancelled,
      [](const std::string& bytes) { return CheckBlobHeader(bytes); },
      &header));
  RETURN_IF_ERROR(reader()->ReadChecked(
      file(), footer_at, kBlobFooterBytes, cancelled,
      [footer_at](const std::string& bytes) {
        uint64_t unused = 0;
        return CheckBlobFooter(bytes, footer_at, &unused);
      },
      &footer));
  RETURN_IF_ERROR(Write(0, header));
  return Write(footer_at, footer);
}

Status PartialBlobFile::FetchRun(const PartialBlob* first,
                                 const PartialBlob* last,
                                 const SetReader::Cancelled& cancelled) {
  const uint64_t begin = first->begin();
  std::string bytes;
  const auto record = [&](const PartialBlob& blob, const std::string& run) {
    return Slice(run.data() + (blob.begin() - begin),
                 static_cast<size_t>(blob.end() - blob.begin()));
  };
  const Status status = reader()->ReadChecked(
      file(), begin, last->end() - begin, cancelled,
      [&](const std::string& run) {
        for (const PartialBlob* blob = first; blob <= last; ++blob) {
          RETURN_IF_ERROR(
              CheckBlobRecord(record(*blob, run), blob->key, blob->begin()));
        }
        return Status::OK();
      },
      &bytes);
  RETURN_IF_ERROR(status);
  for (const PartialBlob* blob = first; blob <= last;) {
    // Writes adjacent records with one call.
    const PartialBlob* end = blob;
    while (end != last && (end + 1)->begin() == end->end()) {
      ++end;
    }
    RETURN_IF_ERROR(
        Write(blob->begin(),
              Slice(bytes.data() + (blob->begin() - begin),
                    static_cast<size_t>(end->end() - blob->begin()))));
    blob = end + 1;
  }
  return Status::OK();
}

Status PartialBlobFile::Fetch(std::vector<PartialBlob> blobs,
                              const SetReader::Cancelled& cancelled) {
  const uint64_t size = file().file.bytes;
  for (const PartialBlob& blob : blobs) {
    const BlobReference& at = blob.reference;
    if (at.offset < kBlobHeaderBytes + kBlobRecordHeadBytes + blob.key.size() ||
        at.offset > size || at.bytes > size - at.offset) {
      return MakeStatus(EndState::kCorrupt,
                        CloneFileName(file().file) + ": a table refers to " +
                            std::to_string(at.bytes) + " bytes at " +
                            std::to_string(at.offset) +
                            ", but the file ends before that");
    }
  }
  std::erase_if(blobs, [this](const PartialBlob& blob) {
    return Has({blob.begin(), blob.end()});
  });
  std::sort(blobs.begin(), blobs.end(),
            [](const PartialBlob& a, const PartialBlob& b) {
              return a.begin() < b.begin();
            });
  // Removes duplicates, because two tables may refer to the same record.
  const auto same = std::unique(blobs.begin(), blobs.end(),
                                [](const PartialBlob& a, const PartialBlob& b) {
                                  return a.begin() == b.begin() &&
                                         a.end() == b.end();
                                });
  blobs.erase(same, blobs.end());
  if (!blobs.empty()) {
    RETURN_IF_ERROR(FetchEnds(cancelled));
  }
  for (size_t first = 0; first < blobs.size();) {
    size_t last = first;
    while (last + 1 < blobs.size() &&
           blobs[last + 1].begin() >= blobs[last].end() &&
           blobs[last + 1].begin() - blobs[last].end() <= kBlobGapBytes &&
           blobs[last + 1].end() - blobs[first].begin() <= kRunBytes) {
      ++last;
    }
    RETURN_IF_ERROR(FetchRun(&blobs[first], &blobs[last], cancelled));
    first = last + 1;
  }
  return Status::OK();
}

// --- the end of a table ------------------------------------------------------

// Caches the bytes that one attempt to read the end of a table fetches.
class PartialTable::Tail : public ByteSource {
 public:
  Tail(const PartialTable& table, const SetReader::Cancelled& cancelled)
      : table_(table), cancelled_(cancelled) {}

  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    const auto next = pieces_.upper_bound(offset);
    if (next != pieces_.begin()) {
      const auto& [begin, bytes] = *std::prev(next);
      if (offset - begin <= bytes.size() &&
          n <= bytes.size() - (offset - begin)) {
        scratch->assign(bytes.data() + (offset - begin), n);
        *out = *scratch;
        return Status::OK();
      }
    }
    const bool is_first = pieces_.empty() && offset + n == size();
    const uint64_t begin =
        is_first ? size() - std::min(size(), std::max<uint64_t>(
                                                 n, kFirstTailBytes))
                 : offset;
    const uint64_t ahead =
        std::min(next == pieces_.end() ? size() : next->first,
                 begin + kTailAheadBytes);
    const uint64_t end =
        is_first ? size() : std::max<uint64_t>(offset + n, ahead);
    std::string bytes;
    failed_ = table_.reader()->ReadChecked(
        table_.file(), begin, end - begin, cancelled_,
        [](const std::string&) { return Status::OK(); }, &bytes);
    RETURN_IF_ERROR(failed_);
    std::string& kept = pieces_[begin];
    kept = std::move(bytes);
    scratch->assign(kept.data() + (offset - begin), n);
    *out = *scratch;
    return Status::OK();
  }
  uint64_t size() const override { return table_.file().file.bytes; }

  // Returns the error of a failed fetch. A failed fetch does not prove that the
  // table is damaged.
  const Status& failed() const { return failed_; }

 private:
  const PartialTable& table_;
  const SetReader::Cancelled& cancelled_;
  mutable std::map<uint64_t, std::string> pieces_;  // by offset
  mutable Status failed_;
};

PartialTable::PartialTable(const PartialFiles* files, const ArchivedFile* file,
                           const ManifestFile* known, const Comparator* order)
    : PartialFile(files, file),
      known_(*known),
      order_(order),
      smallest_(UserKeyOf(known->smallest).ToString()),
      largest_(UserKeyOf(known->largest).ToString()) {}

Status PartialTable::CheckIdentity(const SstReader& table) const {
  const SstProperties& properties = table.properties();
  const TableOrigin origin{properties.db_id, properties.db_session_id,
                           properties.original_file_number, properties.digest};
  bool is_weak = false;
  const Digest128 found = TableIdentity(known_, origin, &is_weak);
  return MayBeFile(known_, origin) && (found == file().file.identity ||
                                       file().file.identity == Digest128())
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "its properties belong to another table");
}

Status PartialTable::ReadTail(const KeyInterval& interval,
                              const SstReader& table,
                              std::vector<ByteSpan>* spans, uint64_t* bytes) {
  const SstFooter& footer = table.footer();
  if (footer.checksum == SstChecksum::kNone) {
    return MakeStatus(EndState::kRefused,
                      CloneFileName(file().file) +
                          ": its blocks have no checksums, so that no part of "
                          "it can be checked; restore the set without --begin "
                          "and --end");
  }
  RETURN_IF_ERROR(CheckIdentity(table));
  const auto keep = [spans](const SstBlockHandle& handle) {
    spans->push_back({handle.offset, handle.end()});
    return Status::OK();
  };
  RETURN_IF_ERROR(keep(footer.metaindex));
  for (const SstMetaBlock& meta : table.meta_blocks()) {
    if (IsFilter(meta.name)) {
      continue;
    }
    // Does not verify the checksum of the properties, because RocksDB may have
    // changed a sequence number in them later. SstReader has already decoded
    // them.
    if (meta.name != kSstPropertiesName) {
      RETURN_IF_ERROR(VerifySstBlock(table.source(), footer, meta.handle));
    }
    RETURN_IF_ERROR(keep(meta.handle));
  }
  RETURN_IF_ERROR(keep(table.index_handle()));
  bool ends = false;
  *bytes = 0;
  last_separator_.reset();
  RETURN_IF_ERROR(table.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    if (!last_separator_.has_value()) {
      first_block_ = {entry.handle.offset, entry.handle.end()};
    }
    last_separator_ = entry.separator.ToString();
    if (!ends && BeginsAtOrBefore(interval, order_, entry.separator)) {
      *bytes += entry.handle.size + kSstBlockTrailerBytes;
      ends = !EndsAfter(interval, order_, entry.separator);
    }
    return Status::OK();
  }));
  if (table.properties().index_type == SstIndexType::kTwoLevel) {
    RETURN_IF_ERROR(table.ForEachPartition(table.index_handle(), keep));
  }
  deletions_.clear();
  RETURN_IF_ERROR(table.ForEachRangeDeletion(
      [this](const Slice& begin, const Slice& end) {
        deletions_.emplace_back(UserKeyOf(begin).ToString(), end.ToString());
        return Status::OK();
      }));
  spans->push_back({footer.footer_offset, file().file.bytes});
  return Status::OK();
}

bool PartialTable::MayLack(const std::string& key) const {
  const bool reads_block = last_separator_.has_value() &&
                           order_->Compare(key, *last_separator_) <= 0;
  const bool reads_first = order_->Compare(key, smallest_) < 0;
  return reads_block && !(reads_first && Has(first_block_));
}

Status PartialTable::FetchTail(const KeyInterval& interval,
                               const SetReader::Cancelled& cancelled,
                               uint64_t* bytes) {
  std::string what;
  for (int tries = 0; tries < kTriesOfBytes; ++tries) {
    const Tail tail(*this, cancelled);
    SstReader table;
    std::vector<ByteSpan> spans;
    Status status = table.Open(&tail);
    if (status.IsNotSupported()) {
      status = MakeStatus(EndState::kRefused,
                          CloneFileName(file().file) +
                              ": it cannot be read by blocks here (" +
                              MessageOf(status) +
                              "); restore the set without --begin and --end, "
                              "and without --method ingest");
    }
    if (status.ok()) status = ReadTail(interval, table, &spans, bytes);
    for (const ByteSpan& span : spans) {
      std::string unused;
      Slice piece;
      if (status.ok()) {
        status = tail.Read(span.begin,
                           static_cast<size_t>(span.end - span.begin), &unused,
                           &piece);
      }
      if (status.ok()) {
        RETURN_IF_ERROR(Write(span.begin, piece));
      }
    }
    RETURN_IF_ERROR(tail.failed());
    if (status.ok() || EndStateOf(status) == EndState::kRefused) {
      return status;
    }
    what = MessageOf(status);
  }
  return reader()->Lost(file(), what);
}

// --- the blocks of a table ---------------------------------------------------

namespace {

// Fetches the blocks for one call of FetchBlocks(), in the order of their
// offsets.
class BlockFetch {
 public:
  BlockFetch(PartialTable* table, const Comparator* order,
             const KeyInterval& interval,
             const SetReader::Cancelled& cancelled,
             std::vector<PartialBlob>* blobs)
      : table_(*table),
        order_(order),
        interval_(interval),
        cancelled_(cancelled),
        blobs_(blobs) {}

  [[nodiscard]] Status Fetch(const std::vector<std::string>& sought) {
    std::unique_ptr<FileSource> local;
    RETURN_IF_ERROR(FileSource::Open(rocksdb::FileSystem::Default().get(),
                                     table_.path(), &local,
                                     EndState::kSourceError));
    source_ = std::make_unique<LaidOver>(*local);
    RETURN_IF_ERROR(reader_.Open(source_.get()));
    RETURN_IF_ERROR(reader_.ForEachIndexEntry([&](const SstIndexEntry& entry) {
      const Status status =
          IsWanted(entry.separator, sought) ? Add(entry) : Status::OK();
      has_before_ = true;
      before_.assign(entry.separator.data(), entry.separator.size());
      return status;
    }));
    return FetchRun();
  }

 private:
  struct Block {
    SstBlockHandle handle;
    std::optional<std::string> above;  // no key is smaller
    std::string last;                  // no key is greater
  };

  // Returns true if a reader needs the block with this separator. A reader
  // reads the blocks of the interval, and the blocks in which it seeks the keys
  // in `sought`. If the previous block ends with a key in `sought`, a seek of
  // an older version of this key reads this block, too.
  bool IsWanted(const Slice& separator,
                const std::vector<std::string>& sought) {
    const bool begins = BeginsAtOrBefore(interval_, order_, separator);
    const bool ended = has_before_ && !EndsAfter(interval_, order_, before_);
    after_ += ended ? 1 : 0;
    // With kIteratorsLoseErrors, readers use DB::Get()
    // (parts/range_deletions.h), which also reads the next block for a key at
    // the end of a block.
    return (begins && after_ <= (kIteratorsLoseErrors ? 1 : 0)) ||
           std::any_of(sought.begin(), sought.end(),
                       [&](const std::string& key) {
                         return order_->Compare(separator, key) >= 0 &&
                                (!has_before_ ||
                                 order_->Compare(before_, key) <= 0);
                       });
  }

  [[nodiscard]] Status Add(const SstIndexEntry& entry) {
    Block block;
    block.handle = entry.handle;
    if (has_before_) block.above = before_;
    block.last = entry.separator.ToString();
    if (table_.Has({entry.handle.offset, entry.handle.end()})) {
      // The block was fetched before, but perhaps not the blobs of its entries.
      return Visit(block, blobs_);
    }
    if (!run_.empty() &&
        (entry.handle.end() - run_.front().handle.offset > kRunBytes ||
         entry.handle.offset - run_.back().handle.end() >
             kMaxSstPaddingBytes)) {
      RETURN_IF_ERROR(FetchRun());
    }
    run_.push_back(std::move(block));
    return Status::OK();
  }

  [[nodiscard]] Status FetchRun() {
    if (run_.empty()) {
      return Status::OK();
    }
    const uint64_t begin = run_.front().handle.offset;
    std::string bytes;
    std::vector<PartialBlob> blobs;
    const Status status = table_.reader()->ReadChecked(
        table_.file(), begin, run_.back().handle.end() - begin, cancelled_,
        [&](const std::string& got) {
          blobs.clear();
          source_->Lay(begin, got);
          for (const Block& block : run_) {
            RETURN_IF_ERROR(Visit(block, &blobs));
          }
          return Status::OK();
        },
        &bytes);
    source_->Lay(0, Slice());
    RETURN_IF_ERROR(status);
    for (size_t first = 0; first < run_.size();) {
      // Writes adjacent blocks, without padding between them, with one call.
      size_t last = first;
      while (last + 1 < run_.size() &&
             run_[last + 1].handle.offset == run_[last].handle.end()) {
        ++last;
      }
      const uint64_t at = run_[first].handle.offset;
      RETURN_IF_ERROR(table_.Write(
          at, Slice(bytes.data() + (at - begin),
                    static_cast<size_t>(run_[last].handle.end() - at))));
      first = last + 1;
    }
    run_.clear();
    std::move(blobs.begin(), blobs.end(), std::back_inserter(*blobs_));
    return Status::OK();
  }

  // Checks that a block is intact, and that its keys are within the bounds that
  // the index gives. Adds to *blobs the values to which its entries refer.
  [[nodiscard]] Status Visit(const Block& block,
                             std::vector<PartialBlob>* blobs) const {
    return reader_.ForEachEntry(
        block.handle, [&](const Slice& internal, const Slice& value) {
          const Slice key = UserKeyOf(internal);
          if ((block.above.has_value() &&
               order_->Compare(key, *block.above) < 0) ||
              order_->Compare(key, block.last) > 0) {
            return MakeStatus(EndState::kCorrupt,
                              "block at " +
                                  std::to_string(block.handle.offset) +
                                  ": expected keys up to " +
                                  sst::HexKey(block.last) +
                                  ", as the index says, found " +
                                  sst::HexKey(key));
          }
          const auto add = [&](const BlobReference& reference) {
            if (Holds(interval_, order_, key)) {
              blobs->push_back({key.ToString(), reference});
            }
          };
          // std::ref() avoids an allocation for each entry.
          ForEachBlobReference(static_cast<uint8_t>(internal[key.size()]),
                               value, std::ref(add));
          return Status::OK();
        });
  }

  PartialTable& table_;
  const Comparator* const order_;
  const KeyInterval& interval_;
  const SetReader::Cancelled& cancelled_;
  std::vector<PartialBlob>* const blobs_;
  std::unique_ptr<LaidOver> source_;
  SstReader reader_;
  bool has_before_ = false;
  std::string before_;  // separator of the previous block
  int after_ = 0;       // number of blocks after the interval so far
  std::vector<Block> run_;
};

}  // namespace

Status PartialTable::FetchBlocks(const KeyInterval& interval,
                                 const std::vector<std::string>& sought,
                                 const SetReader::Cancelled& cancelled,
                                 std::vector<PartialBlob>* blobs) {
  return WithContext(
      BlockFetch(this, order_, interval, cancelled, blobs).Fetch(sought),
      EndState::kInternal, CloneFileName(file().file));
}

}  // namespace sstferry
