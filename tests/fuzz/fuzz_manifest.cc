// Input: a complete MANIFEST, which is also used as one record that is added
// twice.
#include "format/rocksdb/manifest_reader.h"

namespace {

// Requires a state that RocksDB's rules allow.
void RequireSound(const sstferry::ManifestReader& reader) {
  const sstferry::ManifestState& state = reader.state();
  if (state.families.count(0) == 0) {
    abort();
  }
  for (const auto& [id, family] : state.families) {
    if (family.id != id) {
      abort();
    }
    for (const auto& [number, file] : family.files) {
      if (file.number != number || file.path_id > 3) {
        abort();
      }
    }
  }
  sstferry::OldestNeededWal(state, state.families.size() % 2 == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice input(reinterpret_cast<const char*>(data), size);
  ManifestReader reader;
  reader.Follow(SliceSource(input)).PermitUncheckedError();
  RequireSound(reader);
  ManifestReader record;
  record.Add(input).PermitUncheckedError();
  record.Add(input).PermitUncheckedError();
  RequireSound(record);
  return 0;
}
