#include "format/rocksdb/blob_check.h"

#include <algorithm>
#include <string>

#include "format/coding.h"
#include "format/crc32c.h"
#include "format/end_state.h"
#include "format/read_ahead.h"
#include "format/rocksdb/sst_coding.h"
#include "format/rocksdb/sst_reader.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr uint32_t kMagic = 2395959;  // 0x00248f37
constexpr size_t kHeaderBytes = kBlobHeaderBytes;
constexpr size_t kRecordBytes = kBlobRecordHeadBytes;
constexpr size_t kFooterBytes = kBlobFooterBytes;
// The only kind of reference that RocksDB writes: to a blob that does not
// expire.
constexpr char kPlainBlob = 1;
constexpr size_t kBlobPieceBytes = 256u << 10;
// Versions of wide-column entities: without and with references.
constexpr uint32_t kPlainEntity = 1;
constexpr uint32_t kReferringEntity = 2;

Status Bad(const std::string& what, uint64_t offset) {
  return MakeStatus(EndState::kCorrupt,
                    "blob file: " + what + ", offset " +
                        std::to_string(offset));
}

Status ExpectCrc(const char* what, uint32_t computed, uint32_t stored,
                 uint64_t offset) {
  return MaskCrc32c(computed) == stored
             ? Status::OK()
             : Bad(std::string(what) + ": expected checksum " +
                       std::to_string(stored) + ", found " +
                       std::to_string(MaskCrc32c(computed)),
                   offset);
}

Status ExpectMagic(const char* what, const Slice& bytes, uint64_t offset) {
  return DecodeFixed32(bytes.data()) == kMagic
             ? Status::OK()
             : Bad(std::string(what) + ": expected a blob file's magic, found "
                       "another number",
                   offset);
}

// Checks the record at *at, and moves *at past the record.
Status CheckRecord(const ByteSource& source, uint64_t end, uint64_t* at) {
  std::string scratch;
  Slice head;
  if (end - *at < kRecordBytes) {
    return Bad("expected a record, found a truncated one", *at);
  }
  RETURN_IF_ERROR(source.Read(*at, kRecordBytes, &scratch, &head));
  const uint64_t key_bytes = DecodeFixed64(head.data());
  const uint64_t value_bytes = DecodeFixed64(head.data() + 8);
  const uint32_t blob_crc = DecodeFixed32(head.data() + 28);
  RETURN_IF_ERROR(ExpectCrc("record", Crc32c(head.data(), 24),
                            DecodeFixed32(head.data() + 24), *at));
  const uint64_t begin = *at + kRecordBytes;
  if (key_bytes > end - begin || value_bytes > end - begin - key_bytes) {
    return Bad("record: expected its end before the footer, found a longer one",
               *at);
  }
  uint32_t crc = 0;
  for (uint64_t left = key_bytes + value_bytes, offset = begin; left > 0;) {
    const size_t bytes =
        static_cast<size_t>(std::min<uint64_t>(kBlobPieceBytes, left));
    Slice piece;
    RETURN_IF_ERROR(source.Read(offset, bytes, &scratch, &piece));
    crc = Crc32cExtend(crc, piece.data(), piece.size());
    offset += bytes;
    left -= bytes;
  }
  const Status status = ExpectCrc("key and value", crc, blob_crc, *at);
  *at = begin + key_bytes + value_bytes;
  return status;
}

// Decodes a reference. If the value is damaged or is another kind of reference,
// the result has the file 0.
BlobReference ReadReference(Slice value) {
  BlobReference reference;
  if (value.empty() || value[0] != kPlainBlob) {
    return BlobReference();
  }
  value.remove_prefix(1);
  return sst::GetVarint64(&value, &reference.file) &&
                 sst::GetVarint64(&value, &reference.offset) &&
                 sst::GetVarint64(&value, &reference.bytes)
             ? reference
             : BlobReference();
}

// Moves the first `bytes` bytes of *in to *taken. Returns false if *in has
// fewer bytes.
bool TakePrefix(uint32_t bytes, Slice* in, Slice* taken) {
  if (bytes > in->size()) {
    return false;
  }
  *taken = Slice(in->data(), bytes);
  in->remove_prefix(bytes);
  return true;
}

// Visits the references in a wide-column entity. Returns false if the entity
// cannot be decoded.
bool VisitColumns(Slice in,
                  const std::function<void(const BlobReference&)>& visit) {
  uint32_t version = 0;
  if (!sst::GetVarint32(&in, &version)) {
    return false;
  }
  if (version == kPlainEntity) {
    return true;
  }
  uint32_t count = 0;
  uint32_t name_sizes_bytes = 0;
  uint32_t sizes_bytes = 0;
  uint32_t names_bytes = 0;
  Slice types;
  Slice skipped;
  Slice sizes;
  if (version != kReferringEntity || !sst::GetVarint32(&in, &count) ||
      !sst::GetVarint32(&in, &name_sizes_bytes) ||
      !sst::GetVarint32(&in, &sizes_bytes) ||
      !sst::GetVarint32(&in, &names_bytes) ||
      !TakePrefix(count, &in, &types) ||
      !TakePrefix(name_sizes_bytes, &in, &skipped) ||
      !TakePrefix(sizes_bytes, &in, &sizes) ||
      !TakePrefix(names_bytes, &in, &skipped)) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const auto type = static_cast<uint8_t>(types[i]);
    uint32_t bytes = 0;
    Slice value;
    if (!sst::GetVarint32(&sizes, &bytes) || !TakePrefix(bytes, &in, &value)) {
      return false;
    }
    if (type == kSstTypeBlobIndex) {
      visit(ReadReference(value));
    } else if (type != kSstTypeValue) {
      return false;
    }
  }
  return sizes.empty() && in.empty();
}

}  // namespace

// Checks a header as RocksDB does, which opens only blob files of version 1
// whose blobs do not expire. RocksDB compares the header's family and
// compression with each reference, so they are not checked here.
Status CheckBlobHeader(const Slice& header) {
  if (header.size() != kHeaderBytes) {
    return Bad("expected a header, found a truncated one", 0);
  }
  RETURN_IF_ERROR(ExpectMagic("header", header, 0));
  const bool expires = header[12] != 0 ||
                       DecodeFixed64(header.data() + 14) != 0 ||
                       DecodeFixed64(header.data() + 22) != 0;
  return DecodeFixed32(header.data() + 4) == 1 && !expires
             ? Status::OK()
             : Bad("header: expected version 1 and no expiration, found "
                   "another version or an expiration",
                   0);
}

Status CheckBlobFooter(const Slice& footer, uint64_t offset, uint64_t* count) {
  if (footer.size() != kFooterBytes) {
    return Bad("expected a footer, found a truncated one", offset);
  }
  *count = DecodeFixed64(footer.data() + 4);
  const Status status = ExpectMagic("footer", footer, offset);
  return status.ok() ? ExpectCrc("footer", Crc32c(footer.data(), 28),
                                 DecodeFixed32(footer.data() + 28), offset)
                     : status;
}

Status CheckBlobRecord(const Slice& record, const Slice& key,
                       uint64_t offset) {
  uint64_t at = 0;
  RETURN_IF_ERROR(CheckRecord(SliceSource(record), record.size(), &at));
  const bool is_its_own =
      at == record.size() && DecodeFixed64(record.data()) == key.size() &&
      key == Slice(record.data() + kRecordBytes, key.size());
  return is_its_own ? Status::OK()
                    : Bad("record: expected the record of the referenced key, "
                          "found another one", offset);
}

void ForEachBlobReference(
    uint8_t type, const Slice& value,
    const std::function<void(const BlobReference&)>& visit) {
  if (type == kSstTypeBlobIndex) {
    visit(ReadReference(value));
  } else if (type == kSstTypeWideColumnEntity && !VisitColumns(value, visit)) {
    visit(BlobReference());
  }
}

Status CheckBlobFile(const ByteSource& source, uint64_t* count) {
  *count = 0;
  const uint64_t size = source.size();
  if (size < kHeaderBytes + kFooterBytes) {
    return Bad("expected a header and a footer, found " +
                   std::to_string(size) + " bytes",
               0);
  }
  const uint64_t end = size - kFooterBytes;
  const ReadAhead body(source);
  std::string scratch;
  Slice bytes;
  Status status = source.Read(end, kFooterBytes, &scratch, &bytes);
  uint64_t expected = 0;
  if (status.ok()) status = CheckBlobFooter(bytes, end, &expected);
  if (status.ok()) status = body.Read(0, kHeaderBytes, &scratch, &bytes);
  if (status.ok()) status = CheckBlobHeader(bytes);
  for (uint64_t at = kHeaderBytes; status.ok() && at < end; ++*count) {
    status = CheckRecord(body, end, &at);
  }
  return status.ok() && *count != expected
             ? Bad("expected " + std::to_string(expected) +
                       " records, found " + std::to_string(*count),
                   end)
             : status;
}

}  // namespace sstferry
