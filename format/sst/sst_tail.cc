#include "format/sst/sst_tail.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/sst/sst_block.h"
#include "format/sst/sst_coding.h"
#include "format/sst/sst_tail_names.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

using PropertyMap = std::map<std::string, std::string>;

constexpr char kRangeDeletionsName[] = "rocksdb.range_del";
constexpr uint32_t kMinTailFormatVersion = 2;
constexpr uint32_t kExternalVersion = 2;
// RocksDB's id of an unknown column family.
constexpr uint64_t kUnknownFamilyId = 2147483647;
constexpr size_t kTailVersionOffset = 41;
constexpr size_t kTailChecksumOffset = 5;
constexpr uint64_t kTailMagic = 0x88e241b785f4cff7ull;
constexpr char kExtendedTailMagic[] = "\x3e\x00\x7a\x00";

constexpr char kFamilyIdName[] = "rocksdb.column.family.id";
constexpr char kFamilyNameName[] = "rocksdb.column.family.name";
constexpr char kVersionName[] = "rocksdb.external_sst_file.version";
constexpr char kSessionName[] = "rocksdb.creating.session.identity";
constexpr char kRangeDeletionCountName[] = "rocksdb.num.range-deletions";
constexpr uint64_t kTypeRangeDeletion = 0x0f;
constexpr char kSeqnoProperty[] = "rocksdb.external_sst_file.global_seqno";

// Properties that do not depend on the file's place in a database: all those
// that RocksDB 5.0 to 11.9 and its own collectors write into block-based
// tables.
constexpr std::string_view kCopied[] = {
    "rocksdb.block.based.table.decoupled.partitioned.filters",
    "rocksdb.block.based.table.index.type",
    "rocksdb.block.based.table.prefix.filtering",
    "rocksdb.block.based.table.whole.key.filtering",
    kFamilyIdName,
    kFamilyNameName,
    "rocksdb.comparator",
    "rocksdb.compression",
    "rocksdb.compression_options",
    "rocksdb.creating.db.identity",
    "rocksdb.creating.host.identity",
    "rocksdb.creating.session.identity",
    "rocksdb.creation.time",
    "rocksdb.data.block.restart.interval",
    "rocksdb.data.size",
    "rocksdb.data.unix.write.time.average",
    "rocksdb.data.unix.write.time.max",
    "rocksdb.data.unix.write.time.min",
    "rocksdb.deleted.keys",
    "rocksdb.eligible.last.level.entries",
    kSeqnoProperty,
    kVersionName,
    "rocksdb.file.creation.time",
    "rocksdb.filter.policy",
    "rocksdb.filter.size",
    "rocksdb.fixed.key.length",
    "rocksdb.format.version",
    "rocksdb.index.block.restart.interval",
    "rocksdb.index.key.is.user.key",
    "rocksdb.index.partitions",
    "rocksdb.index.size",
    "rocksdb.index.value.is.delta.encoded",
    "rocksdb.merge.operands",
    "rocksdb.merge.operator",
    "rocksdb.newest.key.time",
    "rocksdb.num.data.blocks",
    "rocksdb.num.data.blocks.compression.bypassed",
    "rocksdb.num.data.blocks.compression.rejected",
    "rocksdb.num.entries",
    "rocksdb.num.filter_entries",
    "rocksdb.num.infinitely.old.entries",
    "rocksdb.num.range-deletions",
    "rocksdb.num.uniform.blocks",
    "rocksdb.oldest.key.time",
    "rocksdb.original.file.number",
    "rocksdb.prefix.extractor.name",
    "rocksdb.property.collectors",
    "rocksdb.raw.key.size",
    "rocksdb.raw.value.size",
    "rocksdb.sample_for_compression.fast.data.size",
    "rocksdb.sample_for_compression.slow.data.size",
    "rocksdb.separate.key.value.in.data.block",
    "rocksdb.sqfc",
    "rocksdb.tail.start.offset",
    "rocksdb.timestamp_max",
    "rocksdb.timestamp_min",
    "rocksdb.top-level.index.size",
    "rocksdb.user.defined.timestamps.persisted",
};

// Properties that are copied if they are zero; otherwise the file is not
// carried.
struct ZeroRow {
  std::string_view name;
  const char* reason;
};
constexpr ZeroRow kZero[] = {
    {"rocksdb.key.largest.seqno", "holds sequence numbers above 0"},
    {"rocksdb.key.smallest.seqno", "holds sequence numbers above 0"},
    {"rocksdb.udi.is.primary.index", "has a user-defined primary index"},
};

// Blocks that RocksDB 5.0 to 11.9 names in the metaindex and that refer to no
// other blocks.
constexpr std::string_view kSingleBlocks[] = {
    "rocksdb.compression_dict", "rocksdb.hashindex.metadata",
    "rocksdb.hashindex.prefixes", kIndexName, kRangeDeletionsName};
constexpr std::string_view kFilterPrefixes[] = {"filter.", "fullfilter.",
                                                kPartitionedFilterPrefix};

Status Internal(const std::string& what) {
  return MakeStatus(EndState::kInternal, "rewritten tail: " + what);
}

template <size_t N>
bool Contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) !=
         std::end(names);
}

bool IsKnownBlock(std::string_view name) {
  if (Contains(kSingleBlocks, name)) {
    return true;
  }
  return std::any_of(std::begin(kFilterPrefixes), std::end(kFilterPrefixes),
                     [&](std::string_view prefix) {
                       return name.substr(0, prefix.size()) == prefix;
                     });
}

// Reads the body's bytes from one source, then the tail's.
class RejoinedSource : public ByteSource {
 public:
  RejoinedSource(const ByteSource* body, uint64_t body_bytes,
                 const Slice& tail)
      : body_(body), body_bytes_(body_bytes), tail_(tail) {}

  Status Read(uint64_t offset, size_t n, std::string* scratch,
              Slice* out) const override {
    if (offset > size() || n > size() - offset) {
      return Internal("read beyond the end");
    }
    if (offset >= body_bytes_) {
      *out = Slice(tail_.data() + (offset - body_bytes_), n);
      return Status::OK();
    }
    if (n <= body_bytes_ - offset) {
      return body_->Read(offset, n, scratch, out);
    }
    std::string stored;
    Slice head;
    const size_t head_bytes = body_bytes_ - offset;
    const Status s = body_->Read(offset, head_bytes, &stored, &head);
    if (s.ok()) {
      scratch->assign(head.data(), head.size());
      scratch->append(tail_.data(), n - head_bytes);
      *out = *scratch;
    }
    return s;
  }
  uint64_t size() const override { return body_bytes_ + tail_.size(); }

 private:
  const ByteSource* const body_;
  const uint64_t body_bytes_;
  const Slice tail_;
};

Status CheckExternal(const SstProperties& properties) {
  const uint32_t version = properties.external_version.value_or(0);
  const uint64_t seqno = properties.external_global_seqno.value_or(0);
  if (version > kExternalVersion) {
    return RefuseToCarry("was ingested as version " + std::to_string(version));
  }
  if (seqno != 0) {
    return RefuseToCarry("was ingested with sequence number " +
                   std::to_string(seqno));
  }
  return Status::OK();
}

Status CheckProperties(const SstProperties& properties) {
  constexpr std::string_view kOwnPrefix = "rocksdb.";
  for (const auto& [name, value] : properties.all) {
    const auto* zero =
        std::find_if(std::begin(kZero), std::end(kZero),
                     [&found = name](const ZeroRow& row) {
                       return row.name == found;
                     });
    if (zero != std::end(kZero)) {
      if (value != std::string(1, '\0')) {
        return RefuseToCarry(zero->reason);
      }
    } else if (name.starts_with(kOwnPrefix) && !Contains(kCopied, name)) {
      return RefuseToCarry("holds an unknown property " +
                     DescribeSstProperty("", name));
    }
  }
  return CheckExternal(properties);
}

// Refuses a file with range deletions of its own, which would be a second set,
// and one without a complete identity, which could not be distinguished from
// its stamped copy.
Status CheckStampable(const SstReader& reader) {
  const SstProperties& properties = reader.properties();
  if (reader.FindMetaBlock(kRangeDeletionsName) != nullptr ||
      properties.num_range_deletions != 0) {
    return RefuseToCarry("holds range deletions");
  }
  if (properties.db_id.empty() || properties.db_session_id.empty() ||
      properties.original_file_number == 0) {
    return RefuseToCarry("has no identity");
  }
  return Status::OK();
}

// Finds the properties block; only metaindex and footer may follow it.
Status CheckLayout(const SstReader& reader, SstBlockHandle* properties) {
  const SstFooter& footer = reader.footer();
  if (footer.format_version < kMinTailFormatVersion) {
    return RefuseToCarry("has format version " +
                   std::to_string(footer.format_version));
  }
  const SstMetaBlock* meta = reader.FindMetaBlock(kPropertiesName);
  if (meta == nullptr) {
    return RefuseToCarry("keeps its properties under an old name");
  }
  *properties = meta->handle;
  if (properties->end() != footer.metaindex.offset ||
      footer.metaindex.end() != footer.footer_offset) {
    return RefuseToCarry("has other blocks behind its properties");
  }
  for (const SstMetaBlock& block : reader.meta_blocks()) {
    if (block.name == kPropertiesName) {
      continue;
    }
    if (!IsKnownBlock(block.name)) {
      return RefuseToCarry("holds an unknown block " +
                     DescribeSstProperty("", block.name));
    }
    if (!HandleFits(block.handle, properties->offset)) {
      return RefuseToCarry("has other blocks behind its properties");
    }
  }
  if (!HandleFits(reader.index_handle(), properties->offset)) {
    return RefuseToCarry("has other blocks behind its properties");
  }
  return Status::OK();
}

PropertyMap RewriteProperties(const PropertyMap& source) {
  PropertyMap rewritten = source;
  std::string family_id;
  sst::PutVarint64(&family_id, kUnknownFamilyId);
  std::string version;
  PutFixed32(&version, kExternalVersion);
  rewritten[kFamilyIdName] = family_id;
  rewritten[kVersionName] = version;
  rewritten[kSeqnoProperty] = std::string(sizeof(uint64_t), '\0');
  // An empty name is not stored.
  rewritten.erase(kFamilyNameName);
  return rewritten;
}

// Adds the range deletion to the counts, as the file's writer would have.
void CountStamp(const SstProperties& source, const SstStamp& stamp,
                PropertyMap* properties) {
  const auto set = [properties](const char* name, uint64_t value) {
    std::string& text = (*properties)[name];
    text.clear();
    sst::PutVarint64(&text, value);
  };
  set("rocksdb.num.entries", source.num_entries + 1);
  set("rocksdb.deleted.keys", source.num_deletions + 1);
  set(kRangeDeletionCountName, 1);
  set("rocksdb.raw.key.size",
      source.raw_key_bytes + stamp.begin.size() + kSstKeyTrailerBytes);
  set("rocksdb.raw.value.size", source.raw_value_bytes + stamp.end.size());
  (*properties)[kSessionName] = stamp.session_id;
}

// Builds a block with a restart at every entry. Keys must be added in order.
class PlainBlockBuilder {
 public:
  void Add(const Slice& key, const Slice& value) {
    PutFixed32(&restarts_, static_cast<uint32_t>(contents_.size()));
    sst::PutVarint64(&contents_, 0);
    sst::PutVarint64(&contents_, key.size());
    sst::PutVarint64(&contents_, value.size());
    contents_.append(key.data(), key.size());
    contents_.append(value.data(), value.size());
  }
  std::string Finish() const {
    std::string block = contents_ + restarts_;
    PutFixed32(&block,
               static_cast<uint32_t>(restarts_.size() / sizeof(uint32_t)));
    return block;
  }

 private:
  std::string contents_;
  std::string restarts_;
};

// Builds the end of a file, in uncompressed blocks; the file's first bytes are
// elsewhere.
class TailBuilder {
 public:
  TailBuilder(const SstFooter& source, uint64_t body_bytes)
      : source_(source), body_bytes_(body_bytes) {}

  SstBlockHandle AddBlock(const std::string& contents) {
    const SstBlockHandle handle = {body_bytes_ + bytes_.size(),
                                   contents.size()};
    const std::string sealed = contents + '\0';
    bytes_ += sealed;
    PutFixed32(&bytes_, ComputeSstChecksum(source_.checksum, sealed) +
                            source_.ContextModifier(handle.offset));
    return handle;
  }

  void AddFooter(const SstBlockHandle& metaindex, const SstBlockHandle& index) {
    std::string footer(1, static_cast<char>(source_.checksum));
    if (source_.has_index_handle) {
      for (const SstBlockHandle& handle : {metaindex, index}) {
        sst::PutVarint64(&footer, handle.offset);
        sst::PutVarint64(&footer, handle.size);
      }
    } else {
      footer.append(kExtendedTailMagic, sizeof(uint32_t));
      PutFixed32(&footer, 0);
      PutFixed32(&footer, source_.base_context_checksum);
      PutFixed32(&footer, static_cast<uint32_t>(metaindex.size));
    }
    footer.resize(kTailVersionOffset, '\0');
    PutFixed32(&footer, source_.format_version);
    PutFixed64(&footer, kTailMagic);
    if (!source_.has_index_handle) {
      const uint32_t checksum =
          ComputeSstChecksum(source_.checksum, footer) +
          source_.ContextModifier(body_bytes_ + bytes_.size());
      EncodeFixed32(&footer[kTailChecksumOffset], checksum);
    }
    bytes_ += footer;
  }

  std::string TakeBytes() { return std::move(bytes_); }

 private:
  const SstFooter& source_;
  const uint64_t body_bytes_;
  std::string bytes_;
};

SstBlockHandle AddRangeDeletion(const SstStamp& stamp, TailBuilder* tail) {
  std::string key = stamp.begin;
  PutFixed64(&key, kTypeRangeDeletion);  // at sequence 0
  PlainBlockBuilder block;
  block.Add(key, stamp.end);
  return tail->AddBlock(block.Finish());
}

std::string BuildTail(const SstReader& reader, const PropertyMap& properties,
                      const SstStamp* stamp, uint64_t body_bytes) {
  TailBuilder tail(reader.footer(), body_bytes);
  std::map<std::string, SstBlockHandle> blocks;
  for (const SstMetaBlock& meta : reader.meta_blocks()) {
    blocks[meta.name] = meta.handle;
  }
  if (stamp != nullptr) {
    blocks[kRangeDeletionsName] = AddRangeDeletion(*stamp, &tail);
  }
  PlainBlockBuilder block;
  for (const auto& [name, value] : properties) {
    block.Add(name, value);
  }
  blocks[kPropertiesName] = tail.AddBlock(block.Finish());
  PlainBlockBuilder metaindex;
  for (const auto& [name, handle] : blocks) {
    std::string encoded;
    sst::PutVarint64(&encoded, handle.offset);
    sst::PutVarint64(&encoded, handle.size);
    metaindex.Add(name, encoded);
  }
  tail.AddFooter(tail.AddBlock(metaindex.Finish()), reader.index_handle());
  return tail.TakeBytes();
}

// Reads the rewritten file's structure back and compares it.
Status CheckRewritten(const SstReader& reader, const PropertyMap& properties,
                      const SstStamp* stamp, const SstTail& tail) {
  const RejoinedSource file(&reader.source(), tail.body_bytes, tail.bytes);
  SstReader rewritten;
  const Status s = rewritten.Open(&file);
  if (!s.ok()) {
    return WithContext(s, EndState::kInternal, "rewritten tail");
  }
  const SstFooter& before = reader.footer();
  const SstFooter& after = rewritten.footer();
  if (after.format_version != before.format_version ||
      after.checksum != before.checksum ||
      after.base_context_checksum != before.base_context_checksum ||
      !(rewritten.index_handle() == reader.index_handle())) {
    return Internal("the footer differs from the source file's");
  }
  if (rewritten.properties().all != properties) {
    return Internal("properties differ from what was written");
  }
  std::vector<SstMetaBlock> blocks = rewritten.meta_blocks();
  if (stamp != nullptr) {
    std::erase_if(blocks, [](const SstMetaBlock& block) {
      return block.name == kRangeDeletionsName;
    });
  }
  const auto same = [](const SstMetaBlock& a, const SstMetaBlock& b) {
    return a.name == b.name &&
           (a.handle == b.handle || a.name == kPropertiesName);
  };
  if (!std::equal(blocks.begin(), blocks.end(), reader.meta_blocks().begin(),
                  reader.meta_blocks().end(), same)) {
    return Internal("the metaindex differs from the source file's");
  }
  return s;
}

}  // namespace

Status RewriteSstTail(const SstReader& reader, SstTail* tail) {
  return RewriteSstTail(reader, nullptr, tail);
}

Status RewriteSstTail(const SstReader& reader, const SstStamp* stamp,
                      SstTail* tail) {
  SstBlockHandle properties_handle;
  Status s = CheckLayout(reader, &properties_handle);
  if (s.ok()) {
    s = CheckProperties(reader.properties());
  }
  // Below version 6 only the block itself shows whether the footer's index
  // handle is right.
  if (s.ok()) {
    s = VerifySstBlock(reader.source(), reader.footer(),
                       reader.index_handle());
  }
  if (!s.ok()) {
    return s;
  }
  if (stamp != nullptr) {
    s = CheckStampable(reader);
    if (!s.ok()) {
      return s;
    }
  }
  PropertyMap properties = RewriteProperties(reader.properties().all);
  if (stamp != nullptr) {
    CountStamp(reader.properties(), *stamp, &properties);
  }
  SstTail rewritten;
  rewritten.body_bytes = properties_handle.offset;
  rewritten.bytes =
      BuildTail(reader, properties, stamp, rewritten.body_bytes);
  rewritten.properties = reader.properties();
  rewritten.checksum = reader.footer().checksum;
  rewritten.format_version = reader.footer().format_version;
  // Without shared prefixes a block may exceed the readers' maximum.
  if (rewritten.bytes.size() > kMaxSstMetaBlockBytes) {
    return RefuseToCarry("has a tail of " +
                         std::to_string(rewritten.bytes.size()) + " bytes");
  }
  s = CheckRewritten(reader, properties, stamp, rewritten);
  if (s.ok()) {
    *tail = std::move(rewritten);
  }
  return s;
}

}  // namespace sstferry
