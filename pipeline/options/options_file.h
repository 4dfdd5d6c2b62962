// Reads the options of a database into bounded lists of names and values: from
// the text of an OPTIONS file, which a much newer RocksDB may have written, or
// from option structs; writes such lists as text; and loads text into option
// structs, whichever release or fork wrote it. Values keep the escapes of
// OPTIONS files.
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

// Room for tens of thousands of families, which take about 6 KB each.
inline constexpr size_t kMaxOptionsTextBytes = 256u << 20;

struct DatabaseDescription {
  RocksDbRelease release;           // that wrote the file; may be unknown
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

// Makes the same lists from the options of an open database.
//   Corruption  a value exceeds a bound of format/limits.h.
[[nodiscard]] rocksdb::Status DescribeFamily(
    const std::string& name, const rocksdb::ColumnFamilyOptions& options,
    FamilyDescription* out);

// Writes the text of an OPTIONS file, the inverse of ParseOptionsText(): names
// and values word for word. Families go in the given order, `default` first,
// and without options if the description does not have it.
//   Corruption  a name or a value is not one line of text: a peer sent it
[[nodiscard]] rocksdb::Status WriteOptionsText(
    const DatabaseDescription& description, std::string* text);

// Loads the text into option structs by RocksDB's own parser. Unlike RocksDB's
// loader it takes files of any release and of forks: unknown names are ignored
// whatever version the file is of, and a format_version above the library's is
// lowered to that. Values that RocksDB cannot load keep the defaults, and
// objects that its registry does not have are left out. *cache may be null;
// else it is shared by all block caches.
//   InvalidArgument, Corruption, ...  not an OPTIONS file
[[nodiscard]] rocksdb::Status LoadOptionsText(
    const std::string& text, rocksdb::DBOptions* database,
    std::vector<rocksdb::ColumnFamilyDescriptor>* families,
    std::shared_ptr<rocksdb::Cache>* cache);

// Returns the column family that a line begins a section of, such as
// [CFOptions "users"]; empty for sections of no family. nullopt: it begins none.
std::optional<std::string> FamilyOfSection(const std::string& line);

// Returns true for the spellings of "no object" in OPTIONS files.
bool IsNullObject(const rocksdb::Slice& value);

// Returns at most 64 bytes of `text` in quotes, unprintable bytes as \xNN.
std::string Quoted(const rocksdb::Slice& text);

// Appends a note. Beyond kMaxNotes, appends one note that more were left out.
void AddNote(std::vector<std::string>* notes, const std::string& note);

}  // namespace sstferry
