#include "format/rocksdb/sst_check.h"

#include <algorithm>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/read_ahead.h"
#include "format/rocksdb/sst_coding.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint32_t kExternalFileVersion = 2;
constexpr char kRangeDeletions[] = "rocksdb.range_del";

Status BadChunk(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "chunk: " + what);
}

std::string At(uint64_t offset) {
  return ", offset " + std::to_string(offset);
}

Status ExpectNumber(const char* what, uint64_t expected, uint64_t found) {
  if (expected == found) {
    return Status::OK();
  }
  return BadChunk(std::string(what) + ": expected " + std::to_string(expected) +
             ", found " + std::to_string(found));
}

Status ExpectKey(const char* what, const Slice& expected, const Slice& found,
                 uint64_t offset) {
  if (expected == found) {
    return Status::OK();
  }
  return BadChunk(std::string(what) + ": expected " + sst::HexKey(expected) +
             ", found " + sst::HexKey(found) + At(offset));
}

class ChunkChecker {
 public:
  ChunkChecker(const ByteSource& source, const ChunkExpectation& expected)
      : source_(source), body_(source), expected_(expected) {}

  [[nodiscard]] Status Check() {
    RETURN_IF_ERROR(reader_.Open(&source_));
    RETURN_IF_ERROR(CheckProperties());
    RETURN_IF_ERROR(CheckMetaBlocks());
    RETURN_IF_ERROR(CheckRangeDeletions());
    RETURN_IF_ERROR(reader_.ForEachIndexEntry(
        [this](const SstIndexEntry& entry) { return OnIndexEntry(entry); }));
    RETURN_IF_ERROR(CheckLastBlock());
    return CheckTotals();
  }

  void FillFacts(ChunkFacts* facts) const {
    const SstProperties& properties = reader_.properties();
    facts->file_bytes = source_.size();
    facts->data_bytes = properties.data_bytes;
    facts->data_blocks = blocks_;
    facts->num_entries = properties.num_entries;
    // RocksDB also counts range deletions as deletions.
    facts->deletions = deletions() - range_deletions();
    facts->format_version = reader_.footer().format_version;
    facts->checksum = reader_.footer().checksum;
    facts->index_type = properties.index_type;
    facts->db_id = properties.db_id;
    facts->db_session_id = properties.db_session_id;
    facts->original_file_number = properties.original_file_number;
  }

 private:
  [[nodiscard]] Status CheckProperties() const;
  [[nodiscard]] Status CheckMetaBlocks() const;
  [[nodiscard]] Status CheckPartitions(const SstMetaBlock& meta) const;
  [[nodiscard]] Status OnIndexEntry(const SstIndexEntry& entry);
  [[nodiscard]] Status CheckLastBlock();
  [[nodiscard]] Status CheckTotals() const;
  [[nodiscard]] Status CheckPadding(uint64_t begin, uint64_t end) const;
  [[nodiscard]] Status CheckInternalKey(const Slice& key,
                                        uint64_t offset) const;
  [[nodiscard]] Status CheckRangeDeletions() const;
  // Returns true if the range deletion [begin, end) is allowed in the chunk.
  // `before` is the end of the previous range deletion; null: no range deletion.
  bool MayDelete(const Slice& begin, const Slice& end,
                 const std::string* before) const;
  // Returns the number of deletions, including range deletions, as RocksDB
  // counts.
  uint64_t deletions() const {
    return expected_.is_delta ? reader_.properties().num_deletions : 0;
  }
  uint64_t range_deletions() const {
    return expected_.is_delta ? reader_.properties().num_range_deletions : 0;
  }
  [[nodiscard]] Status CheckBlock(const SstBlockHandle& handle,
                                  const Slice& separator);

  const ByteSource& source_;
  const ReadAhead body_;  // read in file order, while the index is walked
  const ChunkExpectation& expected_;
  SstReader reader_;
  uint64_t blocks_ = 0;
  uint64_t data_end_ = 0;
  uint64_t entries_seen_ = 0;
  SstBlockHandle last_;
  // Separator of the block before `last_`, and separator of `last_`.
  std::string before_separator_;
  std::string separator_;
  std::string block_first_key_;  // user keys of the last checked block
  std::string block_last_key_;
};

Status ChunkChecker::CheckProperties() const {
  const SstProperties& properties = reader_.properties();
  if (expected_.format_version != 0) {
    RETURN_IF_ERROR(ExpectNumber("format version", expected_.format_version,
                                 reader_.footer().format_version));
  }
  if (properties.external_version != kExternalFileVersion) {
    return BadChunk("external file version: expected 2, found " +
               (properties.external_version.has_value()
                    ? std::to_string(*properties.external_version)
                    : std::string("none")));
  }
  if (properties.external_global_seqno != uint64_t{0}) {
    return BadChunk("global sequence number: expected 0, found " +
               (properties.external_global_seqno.has_value()
                    ? std::to_string(*properties.external_global_seqno)
                    : std::string("none")));
  }
  if (!expected_.allow_marked_blocks &&
      (properties.has_separated_values != 0 ||
       properties.num_uniform_blocks != 0)) {
    return BadChunk("blocks: expected plain blocks, found " +
               std::string(properties.has_separated_values != 0
                               ? "values apart from keys"
                               : "uniform keys") +
               ", which RocksDB reads since 11.1");
  }
  if (!expected_.comparator.empty() &&
      properties.comparator != expected_.comparator) {
    return BadChunk("comparator: expected " + expected_.comparator +
                    ", found " + sst::TextOrHex(properties.comparator));
  }
  // RocksDB also counts a deletion as an entry.
  if (properties.num_entries < deletions()) {
    return BadChunk("entries: expected at least " +
               std::to_string(deletions()) + ", found " +
               std::to_string(properties.num_entries));
  }
  // A delta has a point deletion for both bounds of each range deletion, in
  // addition to the range deletion itself.
  const bool has_bounds = deletions() / 3 >= range_deletions();
  const struct {
    const char* what;
    uint64_t expected;
    uint64_t found;
  } kRows[] = {
      {"entries", expected_.num_entries,
       properties.num_entries - deletions()},
      {"deletions", deletions(), properties.num_deletions},
      {"merge operands", 0, properties.num_merge_operands},
      {"range deletions", has_bounds ? range_deletions() : 0,
       properties.num_range_deletions},
      {"raw key bytes (8 more than each user key)",
       expected_.key_bytes.has_value() && !expected_.is_delta
           ? *expected_.key_bytes + properties.key_trailer_bytes()
           : properties.raw_key_bytes,
       properties.raw_key_bytes},
  };
  for (const auto& row : kRows) {
    RETURN_IF_ERROR(ExpectNumber(row.what, row.expected, row.found));
  }
  return Status::OK();
}

Status ChunkChecker::CheckMetaBlocks() const {
  const bool found = reader_.FindMetaBlock(kRangeDeletions) != nullptr;
  if (found != (range_deletions() != 0)) {
    return BadChunk(std::string("meta blocks: expected ") +
               (found ? "no range deletions, found their block"
                      : "range deletions, found none"));
  }
  for (const SstMetaBlock& meta : reader_.meta_blocks()) {
    Status s = VerifySstBlock(source_, reader_.footer(), meta.handle);
    if (s.ok() && meta.name.starts_with(kPartitionedFilterPrefix)) {
      s = CheckPartitions(meta);
    }
    if (!s.ok()) {
      return WithContext(s, EndState::kCorrupt,
                         "chunk: meta block " +
                             sst::TextOrHex(meta.name));
    }
  }
  return Status::OK();
}

Status ChunkChecker::CheckPartitions(const SstMetaBlock& meta) const {
  uint64_t end = 0;
  return reader_.ForEachPartition(
      meta.handle, [&](const SstBlockHandle& handle) {
        if (handle.offset < end) {
          return BadChunk("filter partitions: expected one after the other, "
                          "found an earlier offset" +
                     At(handle.offset));
        }
        end = handle.end();
        return VerifySstBlock(body_, reader_.footer(), handle);
      });
}

bool ChunkChecker::MayDelete(const Slice& begin, const Slice& end,
                             const std::string* before) const {
  return expected_.order(begin, end) < 0 &&
         expected_.order(expected_.smallest, begin) <= 0 &&
         expected_.order(end, expected_.largest) <= 0 &&
         (before == nullptr || expected_.order(*before, begin) < 0);
}

Status ChunkChecker::CheckRangeDeletions() const {
  if (range_deletions() == 0) {
    return Status::OK();
  }
  const SstBlockHandle& handle =
      reader_.FindMetaBlock(kRangeDeletions)->handle;
  SstBlock block;
  SstBlockCursor cursor;
  RETURN_IF_ERROR(ReadSstBlock(source_, reader_.footer(), handle,
                               kMaxSstMetaBlockBytes, Slice(), &block));
  RETURN_IF_ERROR(
      cursor.Init(block.contents(), SstBlockLayout(), handle.offset));
  RETURN_IF_ERROR(cursor.Next());
  uint64_t found = 0;
  std::string before;
  for (; cursor.valid(); ++found) {
    const Slice key = cursor.key();
    const bool right =
        key.size() >= kSstKeyTrailerBytes &&
        sst::DecodeLittle64(key.data() + key.size() - kSstKeyTrailerBytes) ==
            kSstTypeRangeDeletion &&
        MayDelete(UserKeyOf(key), cursor.value(),
                  found == 0 ? nullptr : &before);
    if (!right) {
      return BadChunk("range deletion " + std::to_string(found) +
                 ": expected one at sequence 0 inside " +
                 sst::HexKey(expected_.smallest) + " to " +
                 sst::HexKey(expected_.largest) +
                 " and after the previous one, found another one" +
                 At(handle.offset));
    }
    before = cursor.value().ToString();
    RETURN_IF_ERROR(cursor.Next());
  }
  return ExpectNumber("range deletions in their block", range_deletions(),
                      found);
}

Status ChunkChecker::CheckPadding(uint64_t begin, uint64_t end) const {
  if (begin == end) {
    return Status::OK();
  }
  if (end - begin > kMaxSstPaddingBytes) {
    return BadChunk("data blocks: expected at most " +
               std::to_string(kMaxSstPaddingBytes) +
               " bytes between two blocks, found " +
               std::to_string(end - begin) + At(begin));
  }
  std::string scratch;
  Slice bytes;
  RETURN_IF_ERROR(body_.Read(begin, end - begin, &scratch, &bytes));
  if (bytes.size() != end - begin) {
    return BadChunk("padding: expected " + std::to_string(end - begin) +
               " bytes, found " + std::to_string(bytes.size()) + At(begin));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) {
      return BadChunk(
          "padding between data blocks: expected zeros, found other bytes" +
          At(begin + i));
    }
  }
  return Status::OK();
}

Status ChunkChecker::CheckInternalKey(const Slice& key, uint64_t offset) const {
  if (key.size() < kSstKeyTrailerBytes) {
    return BadChunk("internal key: expected at least 8 bytes, found " +
               std::to_string(key.size()) + At(offset));
  }
  const uint64_t trailer =
      sst::DecodeLittle64(key.data() + key.size() - kSstKeyTrailerBytes);
  const bool allowed =
      trailer == kSstTypeValue ||
      (trailer == kSstTypeDeletion &&
       expected_.is_delta) ||
      (expected_.allow_entities && trailer == kSstTypeWideColumnEntity);
  if (!allowed) {
    return BadChunk(
        "internal key: expected sequence 0 and a value's type, found "
        "sequence " +
        std::to_string(trailer >> 8) + " type " +
        std::to_string(trailer & 0xff) + At(offset));
  }
  return Status::OK();
}

// Checks the next index entry in file order. At the call, separator_ is still
// the separator of the previous block.
Status ChunkChecker::OnIndexEntry(const SstIndexEntry& entry) {
  if (blocks_ != 0 && expected_.order(separator_, entry.separator) >= 0) {
    return BadChunk("index order: expected a key above " +
               sst::HexKey(separator_) + ", found " +
               sst::HexKey(entry.separator) + At(entry.handle.offset));
  }
  RETURN_IF_ERROR(CheckPadding(data_end_, entry.handle.offset));
  if (reader_.properties().index_type ==
      SstIndexType::kBinarySearchWithFirstKey) {
    RETURN_IF_ERROR(CheckInternalKey(entry.first_key, entry.handle.offset));
  }
  before_separator_.swap(separator_);
  separator_.assign(entry.separator.data(), entry.separator.size());
  last_ = entry.handle;
  data_end_ = entry.handle.end();
  const bool first = blocks_++ == 0;
  if (!first && !expected_.all_blocks) {
    return VerifySstBlock(body_, reader_.footer(), entry.handle);
  }
  RETURN_IF_ERROR(CheckBlock(entry.handle, entry.separator));
  if (first) {
    RETURN_IF_ERROR(ExpectKey("first key", expected_.smallest,
                              block_first_key_, entry.handle.offset));
  }
  return entry.first_key.empty()
             ? Status::OK()
             : ExpectKey("first key of a block", UserKeyOf(entry.first_key),
                         block_first_key_, entry.handle.offset);
}

// Checks that all keys are ordered, above before_separator_, and not above
// `separator`.
Status ChunkChecker::CheckBlock(const SstBlockHandle& handle,
                                const Slice& separator) {
  uint64_t entries = 0;
  const Status s =
      reader_.ForEachEntry(handle, [&](const Slice& key, const Slice&) {
        RETURN_IF_ERROR(CheckInternalKey(key, handle.offset));
        const Slice user_key = UserKeyOf(key);
        if (entries == 0) {
          block_first_key_.assign(user_key.data(), user_key.size());
        } else if (expected_.order(block_last_key_, user_key) >= 0) {
          return BadChunk("key order: expected a key above " +
                     sst::HexKey(block_last_key_) + ", found " +
                     sst::HexKey(user_key) + At(handle.offset));
        }
        block_last_key_.assign(user_key.data(), user_key.size());
        ++entries;
        return Status::OK();
      });
  RETURN_IF_ERROR(s);
  if (entries == 0) {
    return BadChunk("data block: expected entries, found none" +
                    At(handle.offset));
  }
  if (blocks_ > 1 &&
      expected_.order(before_separator_, block_first_key_) >= 0) {
    return BadChunk("block's first key: expected one above the index key " +
               sst::HexKey(before_separator_) + ", found " +
               sst::HexKey(block_first_key_) + At(handle.offset));
  }
  if (expected_.order(block_last_key_, separator) > 0) {
    return BadChunk("block's last key: expected at most the index key " +
               sst::HexKey(separator) + ", found " +
               sst::HexKey(block_last_key_) + At(handle.offset));
  }
  entries_seen_ += entries;
  return Status::OK();
}

Status ChunkChecker::CheckLastBlock() {
  if (blocks_ == 0) {
    return BadChunk("index: expected data blocks, found none" +
               At(reader_.index_handle().offset));
  }
  Status s;
  if (blocks_ > 1 && !expected_.all_blocks) {
    s = CheckBlock(last_, separator_);
  }
  return s.ok() ? ExpectKey("last key", expected_.largest, block_last_key_,
                            last_.offset)
                : s;
}

// Returns false if num_data_blocks may be too small. While RocksDB 10.9 or
// later builds a dictionary, it buffers blocks and does not count them.
bool CountsAllBlocks(const SstProperties& properties) {
  const std::string& options = properties.compression_options;
  const size_t at = options.find("max_dict_bytes=");
  return at == std::string::npos ||
         Slice(options.data() + at, options.size() - at)
             .starts_with("max_dict_bytes=0;");
}

Status ChunkChecker::CheckTotals() const {
  const SstProperties& properties = reader_.properties();
  if (CountsAllBlocks(properties) || properties.num_data_blocks > blocks_) {
    RETURN_IF_ERROR(ExpectNumber("data blocks in the index",
                                 properties.num_data_blocks, blocks_));
  }
  if (blocks_ <= 2 || expected_.all_blocks) {
    RETURN_IF_ERROR(ExpectNumber("entries in the data blocks",
                                 properties.num_entries - range_deletions(),
                                 entries_seen_));
  }
  if (properties.data_bytes < data_end_ ||
      properties.data_bytes > reader_.footer().footer_offset) {
    return BadChunk("data bytes: expected " + std::to_string(data_end_) +
               ", found " + std::to_string(properties.data_bytes));
  }
  return CheckPadding(data_end_, properties.data_bytes);
}

}  // namespace

Status CheckChunk(const ByteSource& source, const ChunkExpectation& expected,
                  ChunkFacts* facts) {
  ChunkChecker checker(source, expected);
  Status s = checker.Check();
  if (s.ok() && facts != nullptr) {
    checker.FillFacts(facts);
  }
  return s;
}

}  // namespace sstferry
