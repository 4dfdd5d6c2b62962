// Input: a byte that chooses, then the bytes of a chunk. The seeds have no
// checksums, so that changes reach every parser. RocksDB must open whatever the
// check of a received chunk accepts, and read every block that passes the check
// of blocks. It aborts the process if our checks are not strict enough.
#include <cstdlib>

#include "format/byte_source.h"
#include "format/rocksdb/sst_check.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_reader.h"
#include "tests/support/sst_describe.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Reads everything. Errors are allowed, crashes are not.
void ReadAll(const SstReader& reader) {
  std::vector<SstBlockHandle> blocks;
  Status status = reader.ForEachIndexEntry([&](const SstIndexEntry& entry) {
    blocks.push_back(entry.handle);
    return Status::OK();
  });
  for (const SstBlockHandle& block : blocks) {
    reader.ForEachEntry(block, [](const Slice&, const Slice&) {
      return Status::OK();
    }).PermitUncheckedError();
  }
  for (const size_t count : {1u, 3u, 100u}) {
    std::vector<SstAnchor> anchors;
    status = reader.Anchors(count, &anchors);
    if (status.ok() && anchors.size() > count) {
      abort();
    }
  }
  status.PermitUncheckedError();
}

// Expects a delta: its properties say how many entries are deletions.
void ExpectDelta(const SstReader& reader, ChunkExpectation* expected) {
  expected->is_delta = true;
  expected->num_entries -= std::min(expected->num_entries,
                                    reader.properties().num_deletions);
}

ChunkExpectation ExpectationOf(const SstReader& reader, bool reverse) {
  ChunkExpectation expected;
  std::string first;
  std::string last;
  if (ReadBoundKeys(reader, &first, &last).ok() && !first.empty()) {
    expected.smallest = first.substr(0, first.size() - kSstKeyTrailerBytes);
    expected.largest = last.substr(0, last.size() - kSstKeyTrailerBytes);
  }
  expected.num_entries = reader.properties().num_entries;
  const rocksdb::Comparator* order = reverse
                                         ? rocksdb::ReverseBytewiseComparator()
                                         : rocksdb::BytewiseComparator();
  expected.order = [order](const Slice& a, const Slice& b) {
    return order->Compare(a, b);
  };
  expected.comparator = order->Name();
  return expected;
}

void OpenWithRocksDb(const Slice& file, bool reverse, bool read_all) {
  static const std::unique_ptr<rocksdb::Env> env(
      rocksdb::NewMemEnv(rocksdb::Env::Default()));
  if (!rocksdb::WriteStringToFile(env.get(), file, "/f.sst").ok()) {
    abort();
  }
  rocksdb::Options options;
  options.env = env.get();
  if (reverse) {
    options.comparator = rocksdb::ReverseBytewiseComparator();
  }
  rocksdb::SstFileReader reader(options);
  if (!reader.Open("/f.sst").ok()) {
    return;
  }
  rocksdb::ReadOptions how;
  how.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator(how));
  it->SeekToLast();
  for (it->SeekToFirst(); read_all && it->Valid(); it->Next()) {
  }
  it->status().PermitUncheckedError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const Slice file(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool reverse = (data[0] & 1) != 0;
  const SliceSource source(file);
  SstReader reader;
  if (!reader.Open(&source).ok()) {
    return 0;
  }
  ReadAll(reader);
  ChunkExpectation expected = ExpectationOf(reader, reverse);
  expected.allow_entities = (data[0] & 2) != 0;
  if ((data[0] & 4) != 0) {
    ExpectDelta(reader, &expected);
  }
  expected.allow_marked_blocks = kLinkedReadsMarkedBlocks;
  ChunkFacts facts;
  const bool accepted = CheckChunk(source, expected, &facts).ok();
  expected.all_blocks = true;
  const bool proved = CheckChunk(source, expected, &facts).ok();
  if (proved && !accepted) {
    abort();
  }
  if (accepted) {
    OpenWithRocksDb(file, reverse, proved);
  }
  return 0;
}

}  // namespace sstferry
