#include "pipeline/snapshot/chunk_estimate.h"

#include <map>

#include "format/clone_file.h"
#include "format/rocksdb/sst_reader.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::Slice;

// Number of tables whose properties are read. The number is large enough for an
// estimate and small enough to be fast.
constexpr size_t kSampledTables = 64;

constexpr char kForwards[] = "leveldb.BytewiseComparator";
constexpr char kBackwards[] = "rocksdb.ReverseBytewiseComparator";

// Sums of the properties of some tables.
struct Sample {
  double bytes = 0;
  double entries = 0;
  double deletions = 0;  // deletions of single keys
};

struct TableAt {
  uint64_t number = 0;
  uint64_t bytes = 0;
};

void AddTable(const std::string& directory, const TableAt& table,
              Sample* sample) {
  const std::string name =
      CloneFileName({CloneFileKind::kTable, table.number, table.bytes, 0});
  Descriptor descriptor;
  if (!OpenForeign(directory + "/" + name, &descriptor).ok() ||
      !descriptor.is_open()) {
    return;  // a compaction has removed the table meanwhile
  }
  const DescriptorSource source(descriptor.get(), name, table.bytes);
  SstReader reader;
  if (!reader.Open(&source).ok()) {
    return;  // not a block-based table, or damage, which a pull reports
  }
  const SstProperties& properties = reader.properties();
  sample->bytes += static_cast<double>(table.bytes);
  sample->entries += static_cast<double>(properties.num_entries);
  sample->deletions +=
      static_cast<double>(properties.num_deletions -
                          std::min(properties.num_deletions,
                                   properties.num_range_deletions));
}

// Reads the properties of some tables, evenly distributed over all tables.
Sample SampleTables(const std::string& directory, const ManifestState& state,
                    uint64_t* all_bytes) {
  std::vector<TableAt> tables;
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      tables.push_back({number, file.bytes});
      *all_bytes += file.bytes;
    }
  }
  Sample sample;
  const size_t step = std::max<size_t>(1, tables.size() / kSampledTables);
  for (size_t i = 0; i < tables.size(); i += step) {
    AddTable(directory, tables[i], &sample);
  }
  return sample;
}

// Returns the share of all writes that compactions have removed, because a
// later write replaced or deleted them. The estimate assumes that an entry in
// an upper level hides an older entry in a lower level with the same
// probability. For example, if 4 million entries of 10 million writes are left,
// then 60 % of the entries above the last level hide an entry below.
double ShareReplaced(const Sample& sample, uint64_t all_bytes,
                     uint64_t last_sequence) {
  if (sample.bytes <= 0 || last_sequence == 0) {
    return 0;
  }
  const double entries =
      sample.entries * static_cast<double>(all_bytes) / sample.bytes;
  return std::clamp(1 - entries / static_cast<double>(last_sequence), 0.0, 1.0);
}

}  // namespace

uint64_t OverlappedBytes(const ManifestFamily& family) {
  const bool backwards = family.comparator == kBackwards;
  if (!backwards && family.comparator != kForwards) {
    return 0;
  }
  std::vector<const ManifestFile*> files;
  for (const auto& [number, file] : family.files) {
    files.push_back(&file);
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const ManifestFile* a, const ManifestFile* b) {
                     return a->level != b->level ? a->level > b->level
                                                 : a->bytes > b->bytes;
                   });
  // Key ranges of the chosen tables: last key -> first key, in bytewise order.
  std::map<std::string, std::string> taken;
  uint64_t overlapped = 0;
  for (const ManifestFile* const file : files) {
    std::string first = UserKeyOf(file->smallest).ToString();
    std::string last = UserKeyOf(file->largest).ToString();
    if (backwards) {
      std::swap(first, last);
    }
    const auto next = taken.lower_bound(first);
    if (next != taken.end() && next->second <= last) {
      overlapped += file->bytes;
    } else {
      taken.emplace(std::move(last), std::move(first));
    }
  }
  return overlapped;
}

uint64_t EstimateChunkBytes(const std::string& directory,
                            const ManifestState& state,
                            const OptionsText& options,
                            const std::vector<std::string>& families) {
  uint64_t all_bytes = 0;
  const Sample sample = SampleTables(directory, state, &all_bytes);
  const double replaced = ShareReplaced(sample, all_bytes, state.last_sequence);
  // Assumes that each deletion hides one entry of average size.
  const double deleted =
      sample.entries > 0 ? sample.deletions / sample.entries : 0;
  double live = 0;
  for (const auto& [id, family] : state.families) {
    if (!IsAmong(families, family.name)) {
      continue;
    }
    double bytes = 0;
    for (const auto& [number, file] : family.files) {
      bytes += static_cast<double>(file.bytes);
    }
    double blobs = 0;
    for (const auto& [number, blob] : family.blobs) {
      blobs += static_cast<double>(
          blob.total_bytes - std::min(blob.total_bytes, blob.garbage_bytes));
    }
    // FIFO compaction drops complete tables; it does not merge.
    const bool merges = options.FamilyText(family.name, "compaction_style") !=
                        "kCompactionStyleFIFO";
    const double overlapped =
        merges ? static_cast<double>(OverlappedBytes(family)) : 0;
    const double share =
        bytes > 0
            ? std::max(0.0, 1 - replaced * overlapped / bytes - deleted)
            : 1;
    live += share * (bytes + blobs);
  }
  return static_cast<uint64_t>(live);
}

}  // namespace sstferry
