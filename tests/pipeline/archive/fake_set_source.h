// A database for pushes that is only a list of tables. Tables of one number
// have the same bytes everywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/archive/set_source.h"

namespace sstferry {

class FakeSetSource : public SetSource {
 public:
  // `manifest`: the text of its MANIFEST, by which two points in time differ.
  FakeSetSource(const std::vector<int>& tables, const std::string& manifest) {
    for (const int table : tables) {
      CloneFile file;
      file.kind = CloneFileKind::kTable;
      file.number = 10 + static_cast<uint64_t>(table);
      file.identity = {1, static_cast<uint64_t>(table) + 1};
      Add(file, "table " + std::to_string(table));
    }
    CloneFile file;
    file.kind = CloneFileKind::kManifest;
    file.number = 5;
    Add(file, manifest);
    set_.families = {"default"};
  }

  const ArchiveSet& set() const override { return set_; }
  void SetDatabase(const std::string& id) { set_.database_id = id; }
  CloneFile* file(size_t index) { return &set_.files[index].file; }
  [[nodiscard]] rocksdb::Status Digest(size_t file,
                                       FileDigests* digests) override {
    FileDigester digester(set_.files[file].file, set_.unit_bytes);
    digester.Add(texts_[file]);
    *digests = digester.Finish();
    return rocksdb::Status::OK();
  }
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<ByteSource>* bytes) override {
    *bytes = std::make_unique<SliceSource>(texts_[file]);
    return rocksdb::Status::OK();
  }

 private:
  void Add(CloneFile file, const std::string& text) {
    file.bytes = text.size();
    set_.files.emplace_back().file = file;
    texts_.push_back(text);
  }

  ArchiveSet set_;
  std::vector<std::string> texts_;
};

}  // namespace sstferry
