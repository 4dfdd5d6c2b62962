// Reads a whole database and prints its digest and counts. The harness compares
// the digest of every target with that of its source, for every contender.
//
//   bench_check_database --dir DIR
#include <memory>
#include <string>

#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/report.h"
#include "rocksdb/db.h"
#include <xxhash.h>

namespace sstferry::bench {
namespace {

using rocksdb::Status;

struct Content {
  uint64_t entries = 0;
  uint64_t key_value_bytes = 0;
  std::string digest;
};

void AddWithLength(const rocksdb::Slice& text, XXH3_state_t* state) {
  const uint64_t bytes = text.size();
  XXH3_64bits_update(state, &bytes, sizeof(bytes));
  XXH3_64bits_update(state, text.data(), text.size());
}

Status ReadAll(rocksdb::DB* db, Content* content) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(
      XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const auto it = NewRangeIterator(db, KeyRange(), nullptr);
  for (; it->Valid(); it->Next()) {
    AddWithLength(it->key(), state.get());
    AddWithLength(it->value(), state.get());
    ++content->entries;
    content->key_value_bytes += it->key().size() + it->value().size();
  }
  content->digest = std::to_string(XXH3_64bits_digest(state.get()));
  return it->status();
}

Status Check(const std::string& dir, Report* report) {
  std::unique_ptr<rocksdb::DB> db;
  Status s = OpenReadOnly(dir, &db);
  if (!s.ok()) return s;
  Content content;
  s = ReadAll(db.get(), &content);
  const Shape shape = ShapeOf(db.get());
  report->Add("entries", content.entries);
  report->Add("key_value_bytes", content.key_value_bytes);
  report->Add("digest", content.digest);
  report->Add("files", shape.files);
  report->Add("sst_bytes", shape.bytes);
  report->Add("files_with_sequence", shape.files_with_sequence);
  report->AddRaw("levels", LevelsJson(shape));
  return s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  sstferry::bench::Flags flags(argc, argv);
  const std::string dir = flags.Required("dir");
  flags.Done();
  sstferry::bench::Report report;
  const rocksdb::Status s = sstferry::bench::Check(dir, &report);
  return report.Finish(s);
}
