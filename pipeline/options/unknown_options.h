// Finds options in an OPTIONS file that are not in the table of known names
// (format/rocksdb/known.h). They come from a later RocksDB or a fork, and their
// effects are unknown. They are reported to the operator, but no command fails
// because of them. If code can either trust a record or read all data again,
// unknown options make it read all data.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry {

struct UnknownOption {
  std::string where;  // "the database", "column family 'users'"
  std::string name;   // for a member of a struct: "compression_opts.level"
  std::string value;
};

struct UnknownOptions {
  // Number of distinct names in all sections; at most kMaxUnknownOptions.
  uint64_t count = 0;
  // The first unknown options, in file order.
  std::vector<UnknownOption> first;
};

inline constexpr uint64_t kMaxUnknownOptions = 4096;
inline constexpr size_t kToldUnknownOptions = 5;

// Finds the unknown options in the text of an OPTIONS file. The file may be
// damaged: lines that are not settings are skipped. A name that several
// families have counts once.
UnknownOptions FindUnknownOptions(const std::string& options_text);

// Returns a sentence with their names and values, for an operator; empty if
// there are no unknown options. The sentence is printable and has at most
// kMaxNoteBytes.
std::string UnknownOptionsNote(const UnknownOptions& unknown);

// Adds the sentence of UnknownOptionsNote() to *notes if the text has unknown
// options.
void NoteUnknownOptions(const std::string& options_text,
                        std::vector<std::string>* notes);

}  // namespace sstferry
