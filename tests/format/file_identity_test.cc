#include "format/rocksdb/file_identity.h"

#include <functional>
#include <vector>

#include "tests/support/catch.h"

namespace sstferry::file_identity_test {
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

const TableOrigin kOrigin{"database", "session", 7, {8, 9}};

Digest128 IdentityOf(const ManifestFile& file, const TableOrigin& origin,
                     bool expects_weak = false) {
  bool is_weak = !expects_weak;
  const Digest128 identity = TableIdentity(file, origin, &is_weak);
  REQUIRE(is_weak == expects_weak);
  return identity;
}

TEST_CASE("A table with any other part of an identity is another table",
          "[format][clone]") {
  const Digest128 identity = IdentityOf(Table(), kOrigin);
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
    REQUIRE_FALSE(IdentityOf(other, kOrigin) == identity);
  }
  ManifestFile moved = Table();
  moved.number = 99;
  moved.level = 6;
  REQUIRE(IdentityOf(moved, TableOrigin()) == identity);
}

TEST_CASE("A table without a unique id is identified by its maker",
          "[format][clone]") {
  ManifestFile file = Table();
  file.has_unique_id = false;
  const Digest128 identity = IdentityOf(file, kOrigin);
  REQUIRE_FALSE(identity == Digest128());
  REQUIRE_FALSE(IdentityOf(file, {"database", "session", 8}) == identity);
  REQUIRE_FALSE(IdentityOf(file, {"database", "another", 7}) == identity);
  REQUIRE_FALSE(IdentityOf(file, {"another", "session", 7}) == identity);
}

TEST_CASE(
    "A table of unknown origin has a weak identity from its properties",
    "[format][clone]") {
  ManifestFile table = Table();
  table.has_unique_id = false;
  table.smallest = "a";
  table.largest = "z";
  const TableOrigin like{"", "", 0, {8, 9}};
  ManifestFile opened = table;
  opened.checksum_function = "Unknown";  // which a newer RocksDB writes
  REQUIRE(IdentityOf(opened, like, true) == IdentityOf(table, like, true));
  table.checksum_function = "crc";
  table.checksum = "1234";
  const Digest128 identity = IdentityOf(table, like, /*expects_weak=*/true);
  REQUIRE_FALSE(identity == Digest128());
  // A session without a file number, or a number without a session, is ignored.
  REQUIRE(IdentityOf(table, {"", "session", 0, {8, 9}}, true) == identity);
  REQUIRE(IdentityOf(table, {"", "", 7, {8, 9}}, true) == identity);
  REQUIRE_FALSE(IdentityOf(table, {"", "", 0, {8, 8}}, true) == identity);
  using Change = std::function<void(ManifestFile*)>;
  const std::vector<Change> changes = {
      [](ManifestFile* f) { f->bytes++; },
      [](ManifestFile* f) { f->smallest_sequence++; },
      [](ManifestFile* f) { f->largest_sequence++; },
      [](ManifestFile* f) { f->creation_time++; },
      [](ManifestFile* f) { f->smallest = "b"; },
      [](ManifestFile* f) { f->largest = "y"; },
      [](ManifestFile* f) { f->checksum = "sum"; },
      [](ManifestFile* f) { f->checksum_function = "sum"; }};
  for (const Change& change : changes) {
    ManifestFile other = table;
    change(&other);
    REQUIRE_FALSE(IdentityOf(other, like, true) == identity);
  }
}

TEST_CASE("A blob file is identified by its number, amounts and time",
          "[format][clone]") {
  const auto identity_of = [](const ManifestBlobFile& file,
                              uint64_t modified_ns) {
    bool is_weak = true;
    const Digest128 identity = BlobIdentity(file, modified_ns, &is_weak);
    REQUIRE_FALSE(is_weak);
    return identity;
  };
  const ManifestBlobFile file{5, 10, 2000, 0, 0};
  const Digest128 identity = identity_of(file, 77);
  REQUIRE_FALSE(identity_of({6, 10, 2000, 0, 0}, 77) == identity);
  REQUIRE_FALSE(identity_of({5, 11, 2000, 0, 0}, 77) == identity);
  REQUIRE_FALSE(identity_of({5, 10, 2001, 0, 0}, 77) == identity);
  REQUIRE_FALSE(identity_of(file, 78) == identity);
  REQUIRE(identity_of({5, 10, 2000, 3, 400}, 77) == identity);
  REQUIRE(identity_of(file, 0) == Digest128());
}

TEST_CASE("The identity of a blob file is weak if its time has no fraction",
          "[format][clone]") {
  const ManifestBlobFile file{5, 10, 2000, 0, 0};
  constexpr uint64_t kSecond = 1'000'000'000;
  bool is_weak = false;
  const Digest128 identity = BlobIdentity(file, kSecond, &is_weak);
  REQUIRE(is_weak);
  REQUIRE_FALSE(identity == Digest128());
  BlobIdentity(file, 1'700'000'000 * kSecond, &is_weak);
  REQUIRE(is_weak);
  BlobIdentity(file, 1'700'000'000 * kSecond + 1, &is_weak);
  REQUIRE_FALSE(is_weak);
}

Digest128 ContentOf(const ManifestState& state, bool* known) {
  std::map<uint64_t, Digest128> identities;
  for (const auto& [id, family] : state.families) {
    for (const auto& [number, file] : family.files) {
      bool is_weak = false;
      identities[number] = TableIdentity(file, TableOrigin(), &is_weak);
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
  state.families[0].blobs[14] = {14, 10, 2000, 0, 0};  // at an unknown time
  ContentOf(state, &known);
  REQUIRE_FALSE(known);
}

}  // namespace
}  // namespace sstferry::file_identity_test
