// All names in RocksDB 6.8 to 11.8 that a database's files may contain, and the
// effect of each name on sstferry. The names are options in OPTIONS files and
// option structs, record types of WALs, types of entries, tags of a MANIFEST,
// and kinds of files. From a replica's OPTIONS, the source omits names that the
// application's RocksDB release does not know. sstferry reports names that are
// missing in this table to the operator.
//
// To add the names of a new release, edit known_table.h. README.md describes
// how, and which tests report missing names.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/release.h"

namespace sstferry {

enum class KnownKind : uint8_t {
  kDatabaseOption,
  kFamilyOption,
  kBlockTableOption,
  kPlainTableOption,
  kCuckooTableOption,
  // Members of structs that are option values: compression_opts,
  // compaction_options_..., metadata_cache_options, cache_usage_options.
  kOptionMember,
  // Values that an option got after release 6.8, although the option is older.
  kOptionValue,
  // The names and numbers of the following kinds are those of RocksDB's
  // enumerators.
  kWalRecord,
  kValueType,
  kManifestTag,
  kTableField,  // a field of a table in a MANIFEST
  kWalField,    // a field of a WAL in a MANIFEST
  kFileKind,
};

enum class Handling : uint8_t {
  kNone,     // no effect
  kHandled,  // handled in a file of sstferry
  kRefused   // refused, with a reason
};

struct Effect {
  Handling handling = Handling::kNone;
  const char* word = "";  // handled: the file; refused: the reason
};

// Effects of a name on a clone, on chunks, and on the commands `follow` and
// `log`, which read the records between two cuts. A cut itself is a clone.
struct Effects {
  Effect clone = {};
  Effect chunks = {};
  Effect follow = {};
  Effect log = {};
};

struct KnownName {
  KnownKind kind = KnownKind::kDatabaseOption;
  std::string_view name;
  // Number of an enumerator; absent if it differs between releases.
  std::optional<uint32_t> number;
  // The first release with this name. For an option, this is the first release
  // that writes it to OPTIONS files, although an earlier struct may have it.
  RocksDbRelease since;
  // The first release whose headers no longer have the name. An unknown release
  // means that all later releases have it. RocksDB still accepts removed names
  // in OPTIONS files.
  RocksDbRelease until;
  const Effects* effects = nullptr;
};

// The oldest release covered by the table.
inline constexpr RocksDbRelease kOldestKnown{6, 8, 0};

// Returns all names, by kind.
const std::vector<KnownName>& KnownNames();

// Returns the row of a name; null: not found.
const KnownName* FindKnown(KnownKind kind, std::string_view name);

// Returns the kind of the options in a section of an OPTIONS file. `title` is
// the section's title: "DBOptions", "CFOptions",
// "TableOptions/BlockBasedTable". Returns nullopt for other sections.
std::optional<KnownKind> OptionsOfSection(std::string_view title);

// Returns true for an option whose value is a struct with known members
// (kOptionMember).
bool HasKnownMembers(std::string_view option);

// Returns the first release that knows an option by its name in OPTIONS files;
// unknown: all releases since 6.8 know it.
RocksDbRelease FirstWithOption(const std::string& name);

// Like FirstWithOption(), for a member of a struct: "max_dict_buffer_bytes".
RocksDbRelease FirstWithOptionMember(const std::string& name);

// Like FirstWithOption(), for the name of an option's value: "kRoundRobin".
RocksDbRelease FirstWithOptionValue(const std::string& value);

}  // namespace sstferry
