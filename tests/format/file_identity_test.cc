#include "format/rocksdb/file_identity.h"

#include <functional>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry {
namespace {

ManifestFile Table() {
  ManifestFile file;
  file.number = 12;
  file.bytes = 1000;
  file.smallest_sequence = 3;
  file.largest_sequence = 9;
  file.creation_time = 1'700'000'000;
  file.has_unique_id = true;
  file.unique_id = {4, 5};
  return file;
}

const TableOrigin kOrigin{"database", "session", 7};

TEST_CASE("A table is another one if any part of its identity is another",
          "[format][clone]") {
  const Digest128 identity = TableIdentity(Table(), kOrigin);
  using Change = std::function<void(ManifestFile*)>;
  const std::vector<Change> changes = {
      [](ManifestFile* f) { f->bytes++; },
      [](ManifestFile* f) { f->smallest_sequence++; },
      [](ManifestFile* f) { f->largest_sequence++; },
      [](ManifestFile* f) { f->creation_time++; },
      [](ManifestFile* f) { f->unique_id.high++; },
      [](ManifestFile* f) { f->unique_id.low++; },
      [](ManifestFile* f) { f->has_unique_id = false; }};
  for (const Change& change : changes) {
    ManifestFile other = Table();
    change(&other);
    REQUIRE_FALSE(TableIdentity(other, kOrigin) == identity);
  }
  ManifestFile moved = Table();
  moved.number = 99;
  moved.level = 6;
  REQUIRE(TableIdentity(moved, TableOrigin()) == identity);
}

TEST_CASE("A table without a unique id is told by who made it",
          "[format][clone]") {
  ManifestFile file = Table();
  file.has_unique_id = false;
  const Digest128 identity = TableIdentity(file, kOrigin);
  REQUIRE_FALSE(identity == Digest128());
  REQUIRE_FALSE(TableIdentity(file, {"database", "session", 8}) == identity);
  REQUIRE_FALSE(TableIdentity(file, {"database", "another", 7}) == identity);
  REQUIRE_FALSE(TableIdentity(file, {"another", "session", 7}) == identity);
  REQUIRE(TableIdentity(file, TableOrigin()) == Digest128());
}

TEST_CASE("A blob file is told by its number, amounts and time",
          "[format][clone]") {
  const ManifestBlobFile file{5, 10, 2000, 0, 0};
  const Digest128 identity = BlobIdentity(file, 77);
  REQUIRE_FALSE(BlobIdentity({6, 10, 2000, 0, 0}, 77) == identity);
  REQUIRE_FALSE(BlobIdentity({5, 11, 2000, 0, 0}, 77) == identity);
  REQUIRE_FALSE(BlobIdentity({5, 10, 2001, 0, 0}, 77) == identity);
  REQUIRE_FALSE(BlobIdentity(file, 78) == identity);
  REQUIRE(BlobIdentity({5, 10, 2000, 3, 400}, 77) == identity);
  REQUIRE(BlobIdentity(file, 0) == Digest128());
}

Digest128 ContentOf(const ManifestState& state, bool* known) {
  std::map<uint64_t, Digest128> identities;
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      identities[number] = TableIdentity(file, TableOrigin());
    }
  }
  Digest128Stream content;
  *known = AddContent(state, identities, &content);
  return content.Finish();
}

TEST_CASE("The content changes with each file, its place and each family",
          "[format][clone]") {
  ManifestState state;
  state.families[0].name = "default";
  state.families[0].files[12] = Table();
  bool known = false;
  const Digest128 content = ContentOf(state, &known);
  REQUIRE(known);
  using Change = std::function<void(ManifestState*)>;
  const std::vector<Change> changes = {
      [](ManifestState* s) { s->families[0].files[12].level = 1; },
      [](ManifestState* s) { s->families[0].files[12].largest_sequence++; },
      [](ManifestState* s) { s->families[0].files[13] = Table(); },
      [](ManifestState* s) { s->families[0].files.clear(); },
      [](ManifestState* s) { s->families[0].name = "d"; },
      [](ManifestState* s) { s->families[0].comparator = "c"; },
      [](ManifestState* s) { s->families[1].name = "other"; }};
  for (const Change& change : changes) {
    ManifestState other = state;
    change(&other);
    REQUIRE_FALSE(ContentOf(other, &known) == content);
    REQUIRE(known);
  }
  state.families[0].log_number = 99;
  state.next_file = 100;
  REQUIRE(ContentOf(state, &known) == content);
  state.families[0].files[12].has_unique_id = false;
  ContentOf(state, &known);
  REQUIRE_FALSE(known);
}

}  // namespace
}  // namespace sstferry
