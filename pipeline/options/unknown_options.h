// Finds options of an OPTIONS file that are not in the table of known names
// (format/rocksdb/known.h). A later RocksDB or a fork has them, and their
// effects are not known here. They are reported to the operator; nothing is
// refused because of them. Code that can choose between trusting a record and
// reading all data again reads all data.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry {

struct UnknownOption {
  std::string where;  // "the database", "column family 'users'"
  std::string name;   // for a member: "compression_opts.level"
  std::string value;
};

struct UnknownOptions {
  // Number of different names in all sections; at most kMaxUnknownOptions.
  uint64_t count = 0;
  // The first ones, in the order of the file.
  std::vector<UnknownOption> first;
};

inline constexpr uint64_t kMaxUnknownOptions = 4096;
inline constexpr size_t kToldUnknownOptions = 5;

// Finds the unknown options in the text of an OPTIONS file, which may be
// damaged: lines that are no settings are skipped. A name counts once, however
// many families have it.
UnknownOptions FindUnknownOptions(const std::string& options_text);

// Returns a sentence with their names and values, for an operator, or "" if
// there are no unknown options. At most kMaxNoteBytes, all printable.
std::string UnknownOptionsNote(const UnknownOptions& unknown);

// Adds that sentence for the text to *notes, if it has unknown options.
void NoteUnknownOptions(const std::string& options_text,
                        std::vector<std::string>* notes);

}  // namespace sstferry
