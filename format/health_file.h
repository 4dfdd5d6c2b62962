// The file `sstferry.health` in a replica's directory. It describes a fault of
// the replica, and exists from the discovery of the fault until its repair.
// Normative text: format/FORMAT.md, "Health". The file is one of
// format/sealed_file.h with magic 53 46 48 45 41 4c 54 31 ("SFHEALT1").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages.h"
#include "format/types.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr char kHealthFileName[] = "sstferry.health";
inline constexpr char kHealthMagic[9] = "SFHEALT1";
// Maximum size of the payload in bytes. Most of it is for names of families.
inline constexpr uint64_t kMaxHealthPayloadBytes = 64u << 20;

// Faults in order of severity. In the file, a less severe fault never replaces
// a more severe one.
enum class ReplicaFault : uint8_t {
  kNone = 0,       // never stored in a file
  kDifferent = 1,  // entries differ from the source's
  kDamaged = 2,    // a file of the replica is missing, or its bytes are wrong
};
inline constexpr uint8_t kMaxReplicaFault = 2;

// Returns "none", "different" or "damaged".
const char* ReplicaFaultName(ReplicaFault fault);

struct HealthFile {
  static constexpr char kName[] = "health record";

  ReplicaFault fault = ReplicaFault::kNone;
  TransferId id{};             // random id of this finding
  uint64_t found_seconds = 0;  // since 1970
  std::string what;            // message of the check that found the fault
  // The families (empty: all) and the interval of keys that were checked. Only
  // a refresh that compares at least these proves that the entries are equal
  // again.
  std::vector<std::string> families;
  KeyInterval interval;
  friend bool operator==(const HealthFile&, const HealthFile&) = default;
};

// Appends a complete file. Truncates `what` to the maximum length.
void EncodeHealthFile(const HealthFile& health, std::string* out);

// Decodes a file. Returns Corruption unless `file` is exactly one complete
// file.
[[nodiscard]] rocksdb::Status DecodeHealthFile(const rocksdb::Slice& file,
                                               HealthFile* health);

}  // namespace sstferry
