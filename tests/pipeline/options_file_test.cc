#include "pipeline/options/options_file.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <rapidcheck.h>

#include "format/end_state.h"
#include "format/limits.h"
#include "format/options_line.h"
#include "pipeline/options/family_options.h"
#include "pipeline/options/replica_options.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/version.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_dir.h"

namespace sstferry::options_file_test {
namespace {

using rocksdb::BlockBasedTableOptions;
using rocksdb::Status;

const char kMinimal[] =
    "[Version]\n"
    "  rocksdb_version=7.8.3\n"
    "[DBOptions]\n"
    "  max_open_files=12\n"
    "[CFOptions \"default\"]\n"
    "  num_levels=3\n"
    "  comparator=leveldb.BytewiseComparator\n"
    "  table_factory=BlockBasedTable\n"
    "[TableOptions/BlockBasedTable \"default\"]\n"
    "  block_size=4096\n";

std::string Golden(const std::string& version) {
  std::ifstream file(std::string(SSTFERRY_SOURCE_DIR) +
                     "/tests/golden/OPTIONS-" + version);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Status Parse(const std::string& text, DatabaseDescription* out,
             std::vector<std::string>* notes) {
  return ParseOptionsText(text, out, notes);
}

// Requires that parsing `text` ends with CORRUPT and `part` in the message.
void RequireCorrupt(const std::string& text, const std::string& part) {
  DatabaseDescription description;
  std::vector<std::string> notes;
  const Status s = Parse(text, &description, &notes);
  INFO(part << " -> " << s.ToString());
  REQUIRE(EndStateOf(s) == EndState::kCorrupt);
  REQUIRE(MessageOf(s).find(part) != std::string::npos);
  REQUIRE(MessageOf(s).find("OPTIONS") != std::string::npos);
}

bool HasNote(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

const BlockBasedTableOptions& TableOf(
    const rocksdb::ColumnFamilyOptions& options) {
  const auto* table =
      options.table_factory->GetOptions<BlockBasedTableOptions>();
  REQUIRE(table != nullptr);
  return *table;
}

// Builds all families of a description, in its order.
std::vector<BuiltFamily> BuildAll(const DatabaseDescription& description) {
  std::vector<BuiltFamily> families(description.families.size());
  for (size_t i = 0; i < families.size(); ++i) {
    REQUIRE_OK(BuildFamily(description.families[i], {}, {}, &families[i]));
  }
  return families;
}

// Checks the families that all golden OPTIONS files have in common.
void RequireGoldenFamilies(const DatabaseDescription& description,
                           const std::vector<BuiltFamily>& families) {
  REQUIRE(families.size() == 4);
  REQUIRE(description.families[0].name == "default");
  REQUIRE(description.families[1].name == "reverse \"#1\"");
  REQUIRE(description.families[2].table_factory == "PlainTable");
  const auto& base = families[0].final_options;
  REQUIRE(base.compression == rocksdb::kZSTD);
  REQUIRE(base.compression_opts.max_dict_bytes == 16384);
  REQUIRE(TableOf(base).block_size == 16384);
  const auto& reverse = families[1].final_options;
  REQUIRE(reverse.comparator == rocksdb::ReverseBytewiseComparator());
  REQUIRE(reverse.compaction_style == rocksdb::kCompactionStyleUniversal);
  REQUIRE(reverse.merge_operator != nullptr);
  REQUIRE(reverse.prefix_extractor->AsString() == "rocksdb.FixedPrefix.8");
  REQUIRE(TableOf(reverse).filter_policy != nullptr);
  REQUIRE(TableOf(reverse).partition_filters);
  REQUIRE(std::string(reverse.memtable_factory->Name()) ==
          "HashSkipListRepFactory");
  const auto& plain = families[2].final_options;
  REQUIRE(plain.compression_per_level ==
          std::vector<rocksdb::CompressionType>{rocksdb::kNoCompression,
                                                rocksdb::kLZ4Compression});
  REQUIRE(TableOf(plain).block_size == BlockBasedTableOptions().block_size);
  REQUIRE(HasNote(families[2].advice, "plain tables"));
  const auto& blobs = families[3].final_options;
  REQUIRE(blobs.enable_blob_files);
  REQUIRE(blobs.min_blob_size == 512);
  REQUIRE(std::string(blobs.merge_operator->Name()) == "UInt64AddOperator");
}

// Returns the names of the options in the text.
std::set<std::string> NamesIn(const std::string& text) {
  std::set<std::string> names;
  ForEachLine(text, [&names](const std::string& line) {
    std::string name;
    std::string value;
    if (SplitOptionLine(line, &name, &value)) {
      names.insert(name);
    }
  });
  return names;
}

TEST_CASE("A replica of an older application gets exactly the names of OPTIONS "
          "that it knows",
          "[pipeline][options][golden]") {
  const std::vector<std::string> versions = {"7.8.3", "9.10.0", "11.8.1"};
  for (size_t newer = 1; newer < versions.size(); ++newer) {
    for (size_t older = 0; older < newer; ++older) {
      INFO(versions[newer] << " for " << versions[older]);
      RocksDbRelease release;
      REQUIRE(ParseRelease(versions[older], &release));
      const std::set<std::string> known = NamesIn(Golden(versions[older]));
      const std::set<std::string> all = NamesIn(Golden(versions[newer]));
      const std::set<std::string> left =
          NamesIn(ReplicaOptionsText(Golden(versions[newer]), release));
      for (const std::string& name : all) {
        INFO(name);
        REQUIRE(left.contains(name) ==
                (known.contains(name) && name != "db_paths" &&
                 name != "cf_paths"));
      }
    }
  }
}

TEST_CASE("RocksDB knows all names in OPTIONS that were made for it",
          "[pipeline][options][golden]") {
  const RocksDbRelease linked{ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH};
  const ScratchDir dir;
  rocksdb::ConfigOptions strict;
  strict.ignore_unknown_options = false;
  for (const char* version : {"7.8.3", "9.10.0", "11.8.1"}) {
    INFO(version);
    std::ofstream(dir / "OPTIONS") << ReplicaOptionsText(Golden(version), linked);
    rocksdb::DBOptions database;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    REQUIRE_OK(rocksdb::LoadOptionsFromFile(strict, dir / "OPTIONS", &database,
                                            &families));
    REQUIRE(families.size() == 4);
    REQUIRE(families[0].options.compression_opts.max_dict_bytes == 16384);
  }
}

TEST_CASE(
    "OPTIONS files of every golden version become the options they describe",
    "[pipeline][options][golden]") {
  for (const char* version : {"7.8.3", "9.10.0", "11.8.1", "99.1.0"}) {
    INFO(version);
    DatabaseDescription description;
    std::vector<std::string> notes;
    REQUIRE_OK(Parse(Golden(version), &description, &notes));
    RequireGoldenFamilies(description, BuildAll(description));
    rocksdb::DBOptions database;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    REQUIRE_OK(
        LoadOptionsText(ReplicaOptionsText(Golden(version), RocksDbRelease()),
                        &database, &families, nullptr));
    REQUIRE(families.size() == 4);
    REQUIRE(database.max_open_files == 500);
    REQUIRE(database.max_background_jobs == 6);
    REQUIRE(database.wal_dir.empty());
    REQUIRE(database.db_log_dir.empty());
    REQUIRE(description.release.is_known());
  }
}

TEST_CASE("Known parts of OPTIONS of a newer RocksDB are used",
          "[pipeline][options][golden]") {
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(Parse(Golden("99.1.0"), &description, &notes));
  const auto families = BuildAll(description);
  CHECK(HasNote(notes, "SwarmOptions"));
  for (const char* part :
       {"compression_manager", "compression_opts", "compaction_pri",
        "filter_policy", "format_version 9"}) {
    INFO(part);
    CHECK(HasNote(families[0].notes, part));
  }
  CHECK(HasNote(families[0].notes, "verify_output_flags") ==
        !RocksDbIsAtLeast(10, 8));
  REQUIRE(TableOf(families[0].final_options).format_version ==
          kMaxTableFormatVersion);
  REQUIRE(TableOf(families[0].final_options).filter_policy == nullptr);
}

TEST_CASE(
    "ParseOptionsText handles escapes, comments and spaces as RocksDB does",
    "[pipeline][options]") {
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(Parse(std::string("# head\r\n\n") + kMinimal +
                       "[CFOptions \"a\\#b\\\\\\n\\:\"]  # tail\r\n"
                       "\t num_levels \t= 4 # four\r\n"
                       "  merge_operator=nullptr\n",
                   &description, &notes));
  REQUIRE(notes.empty());
  REQUIRE(description.options ==
          std::vector<NamedValue>{{"max_open_files", "12"}});
  REQUIRE(description.families.size() == 2);
  REQUIRE(description.families[1].name == "a#b\\\n:");
  REQUIRE(description.families[1].merge_operator.empty());
  REQUIRE(description.families[1].options ==
          std::vector<NamedValue>{{"num_levels", "4"}});
}

TEST_CASE("ParseOptionsText leaves unknown sections out and names them",
          "[pipeline][options]") {
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(Parse(std::string(kMinimal) + "[Mystery \"x\"]\n  a=b\n  a=b\n",
                   &description, &notes));
  REQUIRE(HasNote(notes, "Mystery"));
  REQUIRE(description.families.size() == 1);
  REQUIRE(description.families[0].table_options.size() == 1);
}

TEST_CASE("ParseOptionsText refuses text that is not an OPTIONS file",
          "[pipeline][options][corruption]") {
  const std::string good = kMinimal;
  RequireCorrupt("", "DBOptions");
  RequireCorrupt("[CFOptions \"default\"]\n", "DBOptions");
  RequireCorrupt("[DBOptions]\n", "default");
  RequireCorrupt("[DBOptions]\n[CFOptions \"other\"]\n", "default");
  RequireCorrupt("a=b\n" + good, "line 1");
  RequireCorrupt(good + "no equals sign\n", "line 11");
  RequireCorrupt(good + "=value\n", "line 11");
  RequireCorrupt(good + "block_size=1\n", "block_size");
  RequireCorrupt(good + "[DBOptions]\n", "found a second one");
  RequireCorrupt(good + "[CFOptions \"default\"]\n", "found a second one");
  RequireCorrupt(good + "[TableOptions/PlainTable \"default\"]\n", "found a second one");
  RequireCorrupt(good + "[TableOptions/BlockBasedTable \"x\"]\n", "'x'");
  RequireCorrupt(good + std::string("a=b\0c\n", 6), "NUL");
}

TEST_CASE("ParseOptionsText checks sizes against their limits",
          "[pipeline][options][corruption]") {
  const std::string good = kMinimal;
  RequireCorrupt(good + std::string(1 << 20, 'x') + "\n", "bytes");
  RequireCorrupt(good + "x=" + std::string(kMaxOptionValueBytes + 1, '1') +
                     "\n",
                 "value");
  RequireCorrupt(good + std::string(kMaxIdentifierBytes + 1, 'n') + "=1\n",
                 "name");
  RequireCorrupt(good + "[CFOptions \"" +
                     std::string(kMaxFamilyNameBytes + 1, 'f') + "\"]\n",
                 "family name");
  RequireCorrupt(good + "[CFOptions \"f\"]\n  comparator=" +
                     std::string(kMaxIdentifierBytes + 1, 'c') + "\n",
                 "name");
  RequireCorrupt(good + "[CFOptions \"f\"]\n[TableOptions/" +
                     std::string(kMaxIdentifierBytes + 1, 't') + " \"f\"]\n",
                 "table factory");
  std::string many = good + "[CFOptions \"f\"]\n";
  for (uint32_t i = 0; i <= kMaxOptionCount; ++i) {
    many += "o" + std::to_string(i) + "=1\n";
  }
  RequireCorrupt(many, "options in a section");
  std::string families = good;
  for (uint32_t i = 0; i < kMaxFamilies; ++i) {
    families += "[CFOptions \"" + std::to_string(i) + "\"]\n";
  }
  RequireCorrupt(families, "families");
  std::string text(kMaxOptionsTextBytes + 1, '\n');
  RequireCorrupt(text, "bytes");
}

TEST_CASE("A million unknown sections make no more notes than allowed",
          "[pipeline][options][corruption]") {
  std::string text = kMinimal;
  for (int i = 0; i < 1'000'000; ++i) {
    text += "[S]\n";
  }
  DatabaseDescription description;
  std::vector<std::string> notes;
  REQUIRE_OK(Parse(text, &description, &notes));
  REQUIRE(notes.size() == kMaxNotes);
  REQUIRE(notes.back() == "further notes were left out");
}

TEST_CASE("Quoted shows any bytes as short printable text",
          "[pipeline][options]") {
  REQUIRE(Quoted("name") == "'name'");
  REQUIRE(Quoted(rocksdb::Slice("a\0\xff", 3)) == "'a\\x00\\xff'");
  REQUIRE(Quoted(std::string(1000, 'x')).size() == 64 + 5);
}

// Parses any text and builds its families. Nothing may crash, and a built
// family can be described again.
void ParseAndBuild(const std::string& text) {
  DatabaseDescription description;
  std::vector<std::string> notes;
  if (!Parse(text, &description, &notes).ok()) {
    return;
  }
  // Parsed options can be written, and the written text has the same options.
  std::string written;
  DatabaseDescription read;
  std::vector<std::string> unused;
  if (WriteOptionsText(description, &written).ok()) {
    RC_ASSERT(Parse(written, &read, &unused).ok());
    RC_ASSERT(read.options == description.options);
    RC_ASSERT(read.families.size() == description.families.size());
  }
  for (const FamilyDescription& family : description.families) {
    BuiltFamily built;
    if (BuildFamily(family, {}, {}, &built).ok()) {
      FamilyDescription again;
      rocksdb::Options chunk;
      RC_ASSERT(DescribeFamily("f", built.final_options, &again).ok());
      RC_ASSERT(ChunkOptions(built.final_options, built.format_version,
                             RocksDbRelease(), false, &chunk)
                    .ok());
    }
    RC_ASSERT(built.notes.size() <= kMaxNotes);
  }
  RC_ASSERT(notes.size() <= kMaxNotes);
}

TEST_CASE("Any mutation of an OPTIONS text gives a status",
          "[pipeline][options][corruption]") {
  const std::string good = Golden("7.8.3");
  REQUIRE(rc::check("mutated OPTIONS", [&good] {
    static const std::vector<std::string> kPieces = {
        "{",  "}",    "{{{{{{{{", "=",   ";",   ":",     "\n", "[", "\"", "#",
        "\\", "-1",   "nan",      "1e99", "id=", "/etc/x", "]",
        "18446744073709551616",  "9999999999", "nullptr",
        "{id=StringAppendOperator;", "kZSTD"};
    std::string text = good;
    const auto count = *rc::gen::inRange(1, 8);
    for (int i = 0; i < count; ++i) {
      const auto at = *rc::gen::inRange<size_t>(0, text.size());
      const auto erased = *rc::gen::inRange<size_t>(0, 12);
      text.replace(at, std::min(erased, text.size() - at),
                   *rc::gen::elementOf(kPieces));
    }
    ParseAndBuild(text);
  }));
}

TEST_CASE("Any value of any option gives a status",
          "[pipeline][options][corruption]") {
  DatabaseDescription good;
  std::vector<std::string> notes;
  REQUIRE_OK(Parse(Golden("7.8.3"), &good, &notes));
  REQUIRE(rc::check("hostile values", [&good] {
    FamilyDescription family = good.families[*rc::gen::inRange(0, 4)];
    const bool table =
        *rc::gen::arbitrary<bool>() && !family.table_options.empty();
    auto& options = table ? family.table_options : family.options;
    auto& option = options[*rc::gen::inRange<size_t>(0, options.size())];
    option.value = *rc::gen::oneOf(
        rc::gen::arbitrary<std::string>(),
        rc::gen::map(rc::gen::arbitrary<int64_t>(),
                     [](int64_t n) { return std::to_string(n); }),
        rc::gen::element<std::string>("0", "-1", "1", "", "nan", "{}",
                                      "{id=a;b={c={d={e={f=1;};};};};}",
                                      "4294967296", "9223372036854775807",
                                      std::string(100000, '{')));
    BuiltFamily built;
    if (BuildFamily(family, {}, {}, &built).ok()) {
      FamilyDescription again;
      RC_ASSERT(DescribeFamily("f", built.final_options, &again).ok());
    }
  }));
}

}  // namespace
}  // namespace sstferry::options_file_test
