#include "format/rocksdb/known.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "format/rocksdb/edit_judge.h"
#include "format/rocksdb/sst_coding.h"
#include "format/rocksdb/version_edit.h"
#include "tests/format/golden_files.h"
#include "tests/support/catch.h"
#include "tests/support/log_bytes.h"
#include "tests/support/rocksdb_headers.h"

namespace sstferry::known_test {

using rocksdb::Status;

namespace {

// Returns the RocksDB source tree whose include/ this build uses, or the one
// that SSTFERRY_ROCKSDB_TREE names. So the headers of another release can be
// checked without building it.
std::filesystem::path Tree() {
  const char* const other = std::getenv("SSTFERRY_ROCKSDB_TREE");
  return other != nullptr ? std::filesystem::path(other)
                          : std::filesystem::path(SSTFERRY_ROCKSDB_INCLUDE) /
                                "..";
}

std::filesystem::path Include() {
  return std::getenv("SSTFERRY_ROCKSDB_TREE") != nullptr
             ? Tree() / "include"
             : std::filesystem::path(SSTFERRY_ROCKSDB_INCLUDE);
}

// Returns the code of the public headers that define options, in any release.
std::vector<std::string> OptionHeaders() {
  std::vector<std::string> all;
  for (const char* name :
       {"options.h", "advanced_options.h", "table.h", "universal_compaction.h",
        "compression_type.h", "cache.h"}) {
    const std::filesystem::path path = Include() / "rocksdb" / name;
    if (std::filesystem::exists(path)) {
      all.push_back(test::HeaderCode(ReadText(path)));
    }
  }
  return all;
}

const KnownName* WithNumber(KnownKind kind, uint64_t number) {
  for (const KnownName& known : KnownNames()) {
    if (known.kind == kind && known.number == number) return &known;
  }
  return nullptr;
}

std::string Tag(uint32_t tag, const std::vector<uint64_t>& numbers = {}) {
  std::string bytes;
  sst::PutVarint64(&bytes, tag);
  for (const uint64_t number : numbers) {
    sst::PutVarint64(&bytes, number);
  }
  return bytes;
}

std::string Prefixed(const std::string& bytes) {
  return Tag(static_cast<uint32_t>(bytes.size())) + bytes;
}

}  // namespace

TEST_CASE("Members and enumerators are read from a header, whatever its style",
          "[format][rocksdb]") {
  const std::string code = test::HeaderCode(
      "#define STRUCT(x) \\\n  struct Wrong { int a; };\n"
      "struct Named;  // struct Named { int wrong; };\n"
      "struct NamedOther { int wrong; };\n"
      "struct Named : public Base {\n"
      "  Named() : a(1) { a = 2; }\n"
      "  /* int wrong = 1; */ int a = 1;\n"
      "  enum Kind : char { kOne = 0x1, kTwo, kMask = 1 << 13, kNext, };\n"
      "  Kind kind = kOne;\n"
      "  std::vector<std::pair<int, int>> pairs;\n"
      "  std::shared_ptr<Object> object = Make(1, \"}\");\n"
      "  Status (*callback)(char* value, int size) = nullptr;\n"
      "  static constexpr int kWrong = 3;\n"
      "  const static int kAlsoWrong = 4;\n"
      "  Options options{};\n"
      "  int array[3] = {1, 2, 3};\n"
      "  bool operator==(const Named& o) const = default;\n"
      "  int Wrong() const { return a; }\n"
      "  uint64_t last =\n      std::numeric_limits<uint64_t>::max();\n"
      "};\n");
  REQUIRE(test::StructMembers(code, "Named") ==
          std::vector<std::string>{"a", "kind", "pairs", "object", "callback",
                                   "options", "array", "last"});
  REQUIRE(!test::StructMembers(code, "Other").has_value());
  REQUIRE(test::Enumerators(code, "Kind") ==
          std::map<std::string, uint64_t>{
              {"kOne", 1}, {"kTwo", 2}, {"kMask", 8192}, {"kNext", 8193}});
}

TEST_CASE("The table has every option of the RocksDB that this is built with",
          "[format][rocksdb]") {
  const std::map<std::string, KnownKind> kinds = {
      {"DBOptions", KnownKind::kDatabaseOption},
      {"ColumnFamilyOptions", KnownKind::kFamilyOption},
      {"AdvancedColumnFamilyOptions", KnownKind::kFamilyOption},
      {"BlockBasedTableOptions", KnownKind::kBlockTableOption},
      {"PlainTableOptions", KnownKind::kPlainTableOption},
      {"CuckooTableOptions", KnownKind::kCuckooTableOption},
      {"CompressionOptions", KnownKind::kOptionMember},
      {"CompactionOptionsFIFO", KnownKind::kOptionMember},
      {"CompactionOptionsUniversal", KnownKind::kOptionMember}};
  // These structs exist only in later releases.
  const std::map<std::string, KnownKind> later = {
      {"FileTemperatureAge", KnownKind::kOptionMember},
      {"MetadataCacheOptions", KnownKind::kOptionMember},
      {"CacheUsageOptions", KnownKind::kOptionMember},
      {"CacheEntryRoleOptions", KnownKind::kOptionMember}};
  const std::vector<std::string> headers = OptionHeaders();
  std::vector<std::string> missing;
  size_t members = 0;
  const auto look = [&](const std::string& name, KnownKind kind) {
    bool is_defined = false;
    for (const std::string& code : headers) {
      const auto found = test::StructMembers(code, name);
      is_defined |= found.has_value();
      for (const std::string& member : found.value_or(
               std::vector<std::string>())) {
        ++members;
        if (FindKnown(kind, member) == nullptr) {
          missing.push_back(name + "::" + member);
        }
      }
    }
    return is_defined;
  };
  for (const auto& [name, kind] : kinds) {
    INFO("struct " << name << ", in the headers in " << Include());
    REQUIRE(look(name, kind));
  }
  for (const auto& [name, kind] : later) {
    look(name, kind);
  }
  INFO("add these to format/rocksdb/known_table.h");
  REQUIRE(missing == std::vector<std::string>());
  REQUIRE(members > 200);  // 6.8 has more than that
}

TEST_CASE("The table has every enumerator that affects RocksDB's files",
          "[format][rocksdb]") {
  struct Enumeration {
    const char* name;
    std::filesystem::path header;
    KnownKind kind;
  };
  const Enumeration all[] = {
      {"FileType", Include() / "rocksdb/types.h", KnownKind::kFileKind},
      {"RecordType", Tree() / "db/log_format.h", KnownKind::kWalRecord},
      {"ValueType", Tree() / "db/dbformat.h", KnownKind::kValueType},
      {"Tag", Tree() / "db/version_edit.h", KnownKind::kManifestTag},
      {"NewFileCustomTag", Tree() / "db/version_edit.h",
       KnownKind::kTableField},
      {"WalAdditionTag", Tree() / "db/wal_edit.h", KnownKind::kWalField}};
  std::vector<std::string> missing;
  for (const Enumeration& enumeration : all) {
    if (!std::filesystem::exists(enumeration.header)) {
      WARN("not looked at: " << enumeration.name << " of "
                             << enumeration.header
                             << ", which is not here: packages of RocksDB "
                                "have only its public headers");
      continue;
    }
    const auto found = test::Enumerators(
        test::HeaderCode(ReadText(enumeration.header)), enumeration.name);
    INFO(enumeration.name << " in " << enumeration.header);
    REQUIRE(found.has_value());
    REQUIRE(found->size() >= 2);
    for (const auto& [name, number] : *found) {
      const KnownName* const known = FindKnown(enumeration.kind, name);
      if (known == nullptr ||
          (known->number.has_value() &&
           WithNumber(enumeration.kind, number) == nullptr)) {
        missing.push_back(std::string(enumeration.name) + "::" + name + " = " +
                          std::to_string(number));
      }
    }
  }
  INFO("add these to format/rocksdb/known_table.h");
  REQUIRE(missing == std::vector<std::string>());
}

TEST_CASE("A row names each thing once, and only files that exist",
          "[format][rocksdb]") {
  std::set<std::pair<KnownKind, std::string_view>> names;
  for (const KnownName& known : KnownNames()) {
    INFO(known.name);
    REQUIRE(names.emplace(known.kind, known.name).second);
    REQUIRE(!known.name.empty());
    REQUIRE(known.since >= kOldestKnown);
    REQUIRE((!known.until.is_known() || known.until >= known.since));
    for (const Effect& effect : {known.effects->clone, known.effects->chunks,
                                 known.effects->follow, known.effects->log}) {
      INFO(effect.word);
      REQUIRE((effect.handling == Handling::kNone) ==
              (effect.word == std::string()));
      REQUIRE((effect.handling != Handling::kHandled ||
               std::filesystem::exists(TestsFolder() / ".." / effect.word)));
    }
  }
  REQUIRE(FindKnown(KnownKind::kFamilyOption, "comparator") != nullptr);
  REQUIRE(FindKnown(KnownKind::kDatabaseOption, "comparator") == nullptr);
  REQUIRE(FindKnown(KnownKind::kFamilyOption, "comparato") == nullptr);
}

TEST_CASE(
    "Records of WALs are read if the table has them or they may be ignored",
    "[format][rocksdb]") {
  const std::map<int, std::string> payloads = {
      {9, std::string("\7\0\0\0", 4)},
      {10, std::string(12, 't')},
      {11, std::string(12, 't')}};
  for (int type = 0; type < 256; ++type) {
    INFO("type " << type);
    const auto payload = payloads.find(type);
    const test::Followed followed = test::Follow(test::PhysicalRecord(
        static_cast<uint8_t>(type),
        payload == payloads.end() ? "x" : payload->second));
    const bool is_known =
        WithNumber(KnownKind::kWalRecord, static_cast<uint64_t>(type)) !=
        nullptr;
    REQUIRE(followed.status.IsNotSupported() == (!is_known && type < 128));
  }
}

// A tag with the bit of RocksDB's kTagSafeIgnoreMask may be ignored by a
// reader. A follower continues after such a tag, but takes a new cut, because
// the tag may describe a change.
TEST_CASE("Tags of MANIFESTs are read if the table has them, and ignored or "
          "refused as RocksDB does",
          "[format][rocksdb]") {
  constexpr uint32_t kIgnorable = 1u << 13;
  for (uint32_t tag = 0; tag < 2 * kIgnorable + 100; ++tag) {
    INFO("tag " << tag);
    VersionEdit edit;
    const KnownName* const known = WithNumber(KnownKind::kManifestTag, tag);
    // A known tag without its bytes is truncated, unless it has none.
    const Status status = DecodeVersionEdit(
        Tag(tag) + (known != nullptr ? "" : Prefixed("")), &edit);
    const bool may_be_ignored = (tag & kIgnorable) != 0;
    REQUIRE(status.IsNotSupported() == (known == nullptr && !may_be_ignored));
    if (known == nullptr && may_be_ignored) {
      REQUIRE_OK(status);
      REQUIRE(edit.has_unknown);
      REQUIRE(JudgeEdit(edit, ManifestState(), nullptr) == EditKind::kBarrier);
    }
  }
}

TEST_CASE("Fields of a MANIFEST are read if the table has them, and ignored or "
          "refused as RocksDB does",
          "[format][rocksdb]") {
  constexpr uint32_t kNotIgnorable = 1u << 6;
  for (uint32_t field = 2; field < 4 * kNotIgnorable; ++field) {
    INFO("field " << field);
    VersionEdit edit;
    const Status status = DecodeVersionEdit(
        Tag(103, {1, 5, 1000}) + Prefixed("a12345678") + Prefixed("b12345678") +
            Tag(3, {9}) + Tag(field) + Prefixed("x") + Tag(1),
        &edit);
    const bool is_known =
        WithNumber(KnownKind::kTableField, field) != nullptr &&
        field != kNotIgnorable;
    const bool may_be_ignored = (field & kNotIgnorable) == 0;
    REQUIRE(status.IsNotSupported() == (!is_known && !may_be_ignored));
    REQUIRE(edit.has_unknown == !is_known);
    VersionEdit wal;
    const KnownName* const of_wal = WithNumber(KnownKind::kWalField, field);
    REQUIRE(DecodeVersionEdit(Tag(8199) + Prefixed(Tag(7, {field, 1, 1})), &wal)
                .IsNotSupported() ==
            (of_wal == nullptr ||
             of_wal->effects->clone.handling == Handling::kRefused));
  }
}

TEST_CASE("Names and values of OPTIONS are known from their release on",
          "[format]") {
  REQUIRE(!FirstWithOption("write_buffer_size").is_known());
  REQUIRE(!FirstWithOption("shape_of_a_fork").is_known());
  REQUIRE(FirstWithOption("uniform_cv_threshold") == RocksDbRelease{11, 1, 0});
  REQUIRE(FirstWithOption("best_efforts_recovery") == RocksDbRelease{6, 9, 0});
  // OPTIONS files name it as a family's option from 7.5. Before, it was an
  // option of the database.
  REQUIRE(FirstWithOption("experimental_mempurge_threshold") ==
          RocksDbRelease{7, 5, 0});
  REQUIRE(!FirstWithOption("checksum").is_known());
  REQUIRE(FirstWithOptionMember("checksum") == RocksDbRelease{8, 6, 0});
  REQUIRE(FirstWithOptionValue("kRoundRobin") == RocksDbRelease{7, 5, 0});
  REQUIRE(!FirstWithOptionValue("kMinOverlappingRatio").is_known());
}

}  // namespace sstferry::known_test
