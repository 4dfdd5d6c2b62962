// Sources of pushes without a database.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/archive/set_source.h"

namespace sstferry {

// Owns its bytes.
class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string text)
      : text_(std::move(text)), bytes_(text_) {}
  uint64_t size() const override { return text_.size(); }
  [[nodiscard]] rocksdb::Status Read(uint64_t offset, size_t n,
                                     std::string* scratch,
                                     rocksdb::Slice* out) const override {
    return bytes_.Read(offset, n, scratch, out);
  }

 private:
  const std::string text_;
  const SliceSource bytes_;
};

// A database that is only a list of tables. Tables with the same number have
// the same bytes in every source.
class FakeSetSource : public SetSource {
 public:
  // `manifest` is the text of the MANIFEST. It differs between points in time.
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
  [[nodiscard]] rocksdb::Status Open(
      size_t file, std::unique_ptr<SetFile>* opened) override {
    *opened = std::make_unique<DigestedFile>(
        std::make_unique<TextSource>(texts_[file]), set_.files[file].file,
        set_.unit_bytes);
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
