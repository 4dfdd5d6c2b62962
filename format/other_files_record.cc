#include "format/other_files_record.h"

#include <vector>

#include "format/message_fields.h"
#include "format/other_file.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

struct NamedCopiedFile {
  std::string name;
  CopiedFile file;
};

struct CopiedFileList {
  static constexpr char kName[] = "record of other files";

  std::vector<NamedCopiedFile> files;
};

}  // namespace

template <typename A, FieldsOf<NamedCopiedFile> M>
void Fields(A& a, M& m) {
  a.Bytes("name", m.name, kMaxOtherNameBytes);
  a.Digest("content", m.file.content);
  a.Bool("is_private", m.file.is_private);
}

template <typename A, FieldsOf<CopiedFileList> M>
void Fields(A& a, M& m) {
  a.List("files", m.files, kMaxCopiedFiles, 21,
         [](auto& archive, auto& item) { Fields(archive, item); });
}

void EncodeCopiedFiles(const CopiedFiles& files, std::string* out) {
  CopiedFileList list;
  for (const auto& [name, file] : files) {
    if (list.files.size() < kMaxCopiedFiles) {
      list.files.push_back({name, file});
    }
  }
  SealRecord(kOtherFilesMagic, list, out);
}

Status DecodeCopiedFiles(const Slice& file, CopiedFiles* files) {
  files->clear();
  CopiedFileList list;
  Status status =
      UnsealRecord(kOtherFilesMagic, kMaxCopiedFilesBytes, file, &list);
  for (const NamedCopiedFile& copied : list.files) {
    if (status.ok() && !MayBeCopied(copied.name)) {
      status = Status::Corruption(
          "record of other files: found the name of a file that may not be "
          "copied");
    }
    files->emplace(copied.name, copied.file);
  }
  if (!status.ok()) {
    files->clear();
  }
  return status;
}

}  // namespace sstferry
