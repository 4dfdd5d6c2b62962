// Every name of RocksDB 6.8 to 11.8 that a database's files may hold, and what
// it changes for sstferry: options as OPTIONS files and option structs name
// them, records of WALs, types of entries, tags of a MANIFEST, kinds of files.
// This is the one list. The source leaves out of a replica's OPTIONS what its
// application is too old for; what is in no row is told to the operator.
//
// To add what a release brings, add its names to known_table.h; README.md says
// how, and which tests name what is missing.
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
  // Members of the structs that are values of options: compression_opts,
  // compaction_options_..., metadata_cache_options, cache_usage_options.
  kOptionMember,
  // Values of options that are older themselves; only those newer than 6.8.
  kOptionValue,
  // These have the names of RocksDB's enumerators, and numbers.
  kWalRecord,
  kValueType,
  kManifestTag,
  kTableField,  // of a table in a MANIFEST
  kWalField,    // of a WAL in a MANIFEST
  kFileKind,
};

enum class Handling : uint8_t {
  kNone,     // it changes nothing there
  kHandled,  // in a file
  kRefused,  // for a reason
  kOpen      // it changes something, and nothing here handles that
};

struct Effect {
  Handling handling = Handling::kNone;
  const char* word = "";  // the file, the reason, or what is changed
};

// `follow` and `log`: the records between two cuts; a cut is a clone.
struct Effects {
  Effect clone = {};
  Effect chunks = {};
  Effect follow = {};
  Effect log = {};
};

struct KnownName {
  KnownKind kind = KnownKind::kDatabaseOption;
  std::string_view name;
  std::optional<uint32_t> number;  // of an enumerator, if it has had but one
  // The first release that has it; of an option, the first whose OPTIONS files
  // do, though its struct may have had it before.
  RocksDbRelease since;
  // The first whose headers do not; not known: all have it. RocksDB still
  // takes such names in OPTIONS files.
  RocksDbRelease until;
  const Effects* effects = nullptr;
};

// The oldest release that the table is about.
inline constexpr RocksDbRelease kOldestKnown{6, 8, 0};

// Returns all of them, by kind.
const std::vector<KnownName>& KnownNames();

// Returns null for a name that the table lacks.
const KnownName* FindKnown(KnownKind kind, std::string_view name);

// Returns whose options a section of an OPTIONS file holds, by its title:
// "DBOptions", "CFOptions", "TableOptions/BlockBasedTable". nullopt: no section
// of options that the table is about.
std::optional<KnownKind> OptionsOfSection(std::string_view title);

// Returns true for an option whose value is a struct of kOptionMember.
bool HasKnownMembers(std::string_view option);

// Returns the first release that knows an option by its name in OPTIONS files;
// not known: no release since 6.8 is known to lack it.
RocksDbRelease FirstWithOption(const std::string& name);

// Returns the same for a member of a struct: "max_dict_buffer_bytes".
RocksDbRelease FirstWithOptionMember(const std::string& name);

// Returns the same for a name that is the value of an option: "kRoundRobin".
RocksDbRelease FirstWithOptionValue(const std::string& value);

}  // namespace sstferry
