// Converts a database's options between three forms: RocksDB's option structs,
// the text of an OPTIONS file, and lists of names and values with a limited
// size. Text may come from any release or fork of RocksDB, also from a newer
// one. Values in the lists have the same escapes as in OPTIONS files.
//
// The code that uses the options must check their values (option_rules.h). All
// functions may be called from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "format/release.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

// Maximum size of an OPTIONS file. One family takes about 6 KB, so this is
// enough for tens of thousands of families.
inline constexpr size_t kMaxOptionsTextBytes = 256u << 20;

struct DatabaseDescription {
  // Release that wrote the OPTIONS file. May be unknown.
  RocksDbRelease release;
  std::vector<NamedValue> options;  // names and values of DBOptions
  std::vector<FamilyDescription> families;
};

// Parses the text of an OPTIONS file. Skips sections of unknown kinds and adds
// their names to *notes. After an error, *out is unspecified.
//   Corruption  not an OPTIONS file, or a bound of format/limits.h exceeded;
//               the message contains the line.
[[nodiscard]] rocksdb::Status ParseOptionsText(const rocksdb::Slice& text,
                                               DatabaseDescription* out,
                                               std::vector<std::string>* notes);

// Describes the options of a column family of an open database, in the form
// that ParseOptionsText() returns.
//   Corruption  a value exceeds a bound of format/limits.h.
[[nodiscard]] rocksdb::Status DescribeFamily(
    const std::string& name, const rocksdb::ColumnFamilyOptions& options,
    FamilyDescription* out);

// Writes the text of an OPTIONS file, so that ParseOptionsText() returns the
// same description. Names and values are not changed. The family `default` is
// first; the others keep their order. If the description has no `default`, the
// text has this family without options.
//   Corruption  a name or a value from a peer is not one line of text
[[nodiscard]] rocksdb::Status WriteOptionsText(
    const DatabaseDescription& description, std::string* text);

// Loads the text of an OPTIONS file into option structs with RocksDB's own
// parser. RocksDB's own loader fails for some files of other releases and of
// forks; this function accepts them:
// - Unknown names are ignored.
// - A format_version above the maximum of the linked RocksDB is lowered.
// - Values that RocksDB cannot load keep their defaults.
// - Objects that are not in RocksDB's registry are omitted.
//
// If `cache` is not null, all block caches are this cache.
//   InvalidArgument, Corruption, ...  not an OPTIONS file
[[nodiscard]] rocksdb::Status LoadOptionsText(
    const std::string& text, rocksdb::DBOptions* database,
    std::vector<rocksdb::ColumnFamilyDescriptor>* families,
    std::shared_ptr<rocksdb::Cache>* cache);

// Returns the name of the column family in a section title such as [CFOptions
// "users"]. Returns an empty string for a section without a family, and nullopt
// for a line that is not a section title.
std::optional<std::string> FamilyOfSection(const std::string& line);

// Returns true if a value in an OPTIONS file means "no object".
bool IsNullObject(const rocksdb::Slice& value);

// Returns at most 64 bytes of `text`, in quotes. Unprintable bytes become \xNN.
std::string Quoted(const rocksdb::Slice& text);

// Appends a note. At most kMaxNotes notes are kept; the last of them then says
// that more notes were omitted.
void AddNote(std::vector<std::string>* notes, const std::string& note);

}  // namespace sstferry
