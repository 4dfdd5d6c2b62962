// Reads a database's options into bounded lists of names and values, from
// option structs or from the text of an OPTIONS file. The file may come from a
// much newer RocksDB. Writes such lists as text, and loads text of any release
// or fork into option structs. Values keep the escapes of OPTIONS files.
//
// The side that uses the options checks the values (option_rules.h).
// All functions may be called from any thread.
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

// Maximum size: enough for tens of thousands of families, at about 6 KB each.
inline constexpr size_t kMaxOptionsTextBytes = 256u << 20;

struct DatabaseDescription {
  RocksDbRelease release;           // release that wrote the file, or unknown
  std::vector<NamedValue> options;  // DBOptions
  std::vector<FamilyDescription> families;
};

// Parses the text of an OPTIONS file. Skips unknown kinds of sections and adds
// their names to *notes. On error *out is unspecified.
//   Corruption  not an OPTIONS file, or a bound of format/limits.h exceeded;
//               the message contains the line.
[[nodiscard]] rocksdb::Status ParseOptionsText(const rocksdb::Slice& text,
                                               DatabaseDescription* out,
                                               std::vector<std::string>* notes);

// Describes the options of an open database's family in the same form.
//   Corruption  a value exceeds a bound of format/limits.h.
[[nodiscard]] rocksdb::Status DescribeFamily(
    const std::string& name, const rocksdb::ColumnFamilyOptions& options,
    FamilyDescription* out);

// Writes the text of an OPTIONS file, the inverse of ParseOptionsText(). Names
// and values are unchanged. Families keep their order, except that `default` is
// first, without options if the description does not have it.
//   Corruption  a name or a value from a peer is not one line of text
[[nodiscard]] rocksdb::Status WriteOptionsText(
    const DatabaseDescription& description, std::string* text);

// Loads the text into option structs with RocksDB's own parser. Unlike
// RocksDB's loader, accepts files of any release and of forks. Ignores unknown
// names, whichever release wrote the file. Lowers a format_version that is too
// high to the library's maximum. Values that RocksDB cannot load keep their
// defaults. Objects that are not in its registry are omitted. *cache may be
// null; otherwise all block caches share it.
//   InvalidArgument, Corruption, ...  not an OPTIONS file
[[nodiscard]] rocksdb::Status LoadOptionsText(
    const std::string& text, rocksdb::DBOptions* database,
    std::vector<rocksdb::ColumnFamilyDescriptor>* families,
    std::shared_ptr<rocksdb::Cache>* cache);

// Returns the column family of a section title such as [CFOptions "users"];
// empty for sections without a family; nullopt if the line is not a section
// title.
std::optional<std::string> FamilyOfSection(const std::string& line);

// Returns true for the spellings of "no object" in OPTIONS files.
bool IsNullObject(const rocksdb::Slice& value);

// Returns at most 64 bytes of `text` in quotes, with unprintable bytes as \xNN.
std::string Quoted(const rocksdb::Slice& text);

// Appends a note. When kMaxNotes is reached, appends instead one note that says
// that more notes were omitted.
void AddNote(std::vector<std::string>* notes, const std::string& note);

}  // namespace sstferry
