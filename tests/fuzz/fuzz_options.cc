// Input: the text of an OPTIONS file, as a source reads it and a peer receives
// it. RocksDB's own parsers must accept or refuse whatever our rules accept,
// without a crash.
#include <cstdlib>

#include "format/limits.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/options_file.h"
#include "pipeline/options/unknown_options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice text(reinterpret_cast<const char*>(data), size);
  if (UnknownOptionsNote(FindUnknownOptions(text.ToString())).size() >
      kMaxNoteBytes) {
    std::abort();
  }
  DatabaseDescription description;
  std::vector<std::string> notes;
  if (!ParseOptionsText(text, &description, &notes).ok()) {
    return 0;
  }
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> loaded;
  LoadOptionsText(text.ToString(), &database, &loaded, nullptr)
      .PermitUncheckedError();
  std::string written;
  WriteOptionsText(description, &written).PermitUncheckedError();
  for (size_t i = 0; i < description.families.size() && i < 4; ++i) {
    BuiltFamily family;
    rocksdb::Options chunks;
    if (BuildFamily(description.families[i], {}, {}, &family).ok()) {
      const bool marked_blocks = size % 2 == 0;
      ChunkOptions(family.final_options, family.format_version,
                   RocksDbRelease(), marked_blocks, &chunks)
          .PermitUncheckedError();
    }
  }
  return 0;
}
