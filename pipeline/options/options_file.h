// Reads the options of a database into bounded lists of names and values, from
// the text of an OPTIONS file, which a much newer RocksDB may have written, or
// from option structs. Writes such lists as text, and loads text of any release
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

// Maximum size: room for tens of thousands of families, which take about 6 KB
// each.
inline constexpr size_t kMaxOptionsTextBytes = 256u << 20;

struct DatabaseDescription {
  RocksDbRelease release;           // the file's writer; may be unknown
  std::vector<NamedValue> options;  // DBOptions
  std::vector<FamilyDescription> families;
};

// Parses the text of an OPTIONS file. Skips sections of an unknown kind and
// names them in *notes. On error *out is unspecified.
//   Corruption  not an OPTIONS file, or a bound of format/limits.h exceeded;
//               the message names the line.
[[nodiscard]] rocksdb::Status ParseOptionsText(const rocksdb::Slice& text,
                                               DatabaseDescription* out,
                                               std::vector<std::string>* notes);

// Describes the options of a family of an open database in the same form.
//   Corruption  a value exceeds a bound of format/limits.h.
[[nodiscard]] rocksdb::Status DescribeFamily(
    const std::string& name, const rocksdb::ColumnFamilyOptions& options,
    FamilyDescription* out);

// Writes the text of an OPTIONS file, the inverse of ParseOptionsText(): names
// and values are unchanged. Families are in the given order, except that
// `default` is first, without options if the description does not have it.
//   Corruption  a name or a value from a peer is not one line of text
[[nodiscard]] rocksdb::Status WriteOptionsText(
    const DatabaseDescription& description, std::string* text);

// Loads the text into option structs with RocksDB's own parser. Unlike
// RocksDB's loader it accepts files of any release and of forks: it ignores
// unknown names whatever the file's version, and lowers a format_version that
// is too high to that of the library. Values that RocksDB cannot load keep the
// defaults, and objects that its registry does not have are omitted. *cache may
// be null; else all block caches share it.
//   InvalidArgument, Corruption, ...  not an OPTIONS file
[[nodiscard]] rocksdb::Status LoadOptionsText(
    const std::string& text, rocksdb::DBOptions* database,
    std::vector<rocksdb::ColumnFamilyDescriptor>* families,
    std::shared_ptr<rocksdb::Cache>* cache);

// Returns the column family of the section that a line begins, such as
// [CFOptions "users"]; empty for sections without a family. nullopt: the line
// begins no section.
std::optional<std::string> FamilyOfSection(const std::string& line);

// Returns true for the spellings of "no object" in OPTIONS files.
bool IsNullObject(const rocksdb::Slice& value);

// Returns at most 64 bytes of `text` in quotes, unprintable bytes as \xNN.
std::string Quoted(const rocksdb::Slice& text);

// Appends a note. When kMaxNotes is reached, appends one note that more were
// omitted.
void AddNote(std::vector<std::string>* notes, const std::string& note);

}  // namespace sstferry
