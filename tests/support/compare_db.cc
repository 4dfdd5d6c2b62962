// Implements the comparisons of test_db.h.
#include <filesystem>
#include <fstream>

#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/comparator.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/wide_columns.h"
#include "tests/support/catch.h"
#include "tests/support/test_db.h"

namespace sstferry::test {
namespace {

namespace fs = std::filesystem;
using rocksdb::Status;

// Sets what LoadLatestOptions() cannot restore: comparators, merge operators
// and prefix extractors that only an application has.
void GiveOperators(const Families& known, Families* families) {
  for (rocksdb::ColumnFamilyDescriptor& family : *families) {
    for (const rocksdb::ColumnFamilyDescriptor& other : known) {
      if (other.name == family.name) {
        family.options.comparator = other.options.comparator;
        family.options.merge_operator = other.options.merge_operator;
        family.options.prefix_extractor = other.options.prefix_extractor;
      }
    }
  }
}

// A database that is open read-only, with the handles in the order of
// `families`.
class ReadOnlyDb {
 public:
  ReadOnlyDb(const std::string& path, const rocksdb::DBOptions& options,
             const Families& families) {
    rocksdb::DBOptions opened = options;
    opened.create_if_missing = false;
    Families all = families;
    bool has_default = false;
    for (const auto& family : all) {
      has_default |= family.name == rocksdb::kDefaultColumnFamilyName;
    }
    if (!has_default) {
      all.emplace_back();
    }
    REQUIRE_OK(rocksdb::DB::OpenForReadOnly(opened, path, all, &handles_,
                                            IntoDb(&db_)));
  }
  ~ReadOnlyDb() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
  }
  rocksdb::DB* operator->() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* handle(size_t i) const { return handles_[i]; }
  std::unique_ptr<rocksdb::Iterator> Scan(size_t family) const {
    rocksdb::ReadOptions options;
    options.total_order_seek = true;
    return std::unique_ptr<rocksdb::Iterator>(
        db_->NewIterator(options, handles_[family]));
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// Opens the target with its own OPTIONS, as an application would.
std::unique_ptr<ReadOnlyDb> OpenTarget(const std::string& directory,
                                       const Families& known) {
  rocksdb::DBOptions options;
  Families stored;
  rocksdb::ConfigOptions config;
  config.ignore_unsupported_options = true;
  REQUIRE_OK(
      rocksdb::LoadLatestOptions(config, directory, &options, &stored));
  GiveOperators(known, &stored);
  Families ordered;
  for (const auto& family : known) {
    for (const auto& found : stored) {
      if (found.name == family.name) {
        ordered.push_back(found);
      }
    }
  }
  REQUIRE(ordered.size() == known.size());
  for (const auto& found : stored) {
    bool listed = false;
    for (const auto& family : known) {
      listed |= family.name == found.name;
    }
    if (!listed) {  // only "default" may be unlisted
      REQUIRE(found.name == rocksdb::kDefaultColumnFamilyName);
    }
  }
  return std::make_unique<ReadOnlyDb>(directory, options, ordered);
}

std::string Shown(const rocksdb::Slice& bytes) {
  const size_t shown = std::min<size_t>(bytes.size(), 40);
  return rocksdb::Slice(bytes.data(), shown).ToString(true) + " (" +
         std::to_string(bytes.size()) + " bytes)";
}

bool Inside(const rocksdb::Comparator* order, const KeyInterval& interval,
            const rocksdb::Slice& key) {
  return (!interval.begin || order->Compare(key, *interval.begin) >= 0) &&
         (!interval.end || order->Compare(key, *interval.end) < 0);
}

// Returns the first difference, or "" if both have the same entries.
std::string Difference(const ReadOnlyDb& source, const ReadOnlyDb& target,
                       size_t family, const rocksdb::Comparator* order,
                       const KeyInterval& interval) {
  const auto left = source.Scan(family);
  const auto right = target.Scan(family);
  right->SeekToFirst();
  for (left->SeekToFirst(); left->Valid(); left->Next()) {
    if (!Inside(order, interval, left->key())) {
      continue;
    }
    if (!right->Valid()) {
      return "missing " + Shown(left->key()) + " " + right->status().ToString();
    }
    if (left->key() != right->key()) {
      return "expected " + Shown(left->key()) + ", found " +
             Shown(right->key());
    }
    if (left->value() != right->value()) {
      return "value of " + Shown(left->key()) + ": expected " +
             Shown(left->value()) + ", found " + Shown(right->value());
    }
    if (left->columns() != right->columns()) {
      return "columns of " + Shown(left->key());
    }
    right->Next();
  }
  if (!left->status().ok() || !right->status().ok()) {
    return left->status().ToString() + ", " + right->status().ToString();
  }
  return right->Valid() ? "unexpected: " + Shown(right->key()) : "";
}

void RequireSeeded(const std::string& directory, const ReadOnlyDb& target,
                   const Expectation& expected) {
  for (size_t i = 0; !expected.is_refreshed && i < expected.families.size();
       ++i) {
    rocksdb::ColumnFamilyMetaData metadata;
    target->GetColumnFamilyMetaData(target.handle(i), &metadata);
    REQUIRE(metadata.blob_files.empty());
    for (const rocksdb::LevelMetaData& level : metadata.levels) {
      const int wanted = expected.keeps_level0
                             ? 0
                             : static_cast<int>(metadata.levels.size()) - 1;
      INFO("column family " << metadata.name << " level " << level.level);
      REQUIRE((level.files.empty() || level.level == wanted));
      for (const rocksdb::SstFileMetaData& file : level.files) {
        // Files in level 0 are ordered by sequence, so RocksDB 9.3 and later
        // give FIFO files a sequence above 0.
        REQUIRE((expected.keeps_level0 || file.largest_seqno == 0));
        REQUIRE(file.num_deletions == 0);
      }
    }
    rocksdb::TablePropertiesCollection tables;
    REQUIRE_OK(target->GetPropertiesOfAllTables(target.handle(i), &tables));
    for (const auto& [path, table] : tables) {
      REQUIRE(table->num_deletions == 0);
      REQUIRE(table->num_merge_operands == 0);
      REQUIRE(table->num_range_deletions == 0);
    }
  }
  for (const std::string& wal : PathsWith(directory, ".log")) {
    REQUIRE(fs::file_size(wal) == 0);
  }
}

using OptionTexts = std::map<std::string, std::string>;

// Returns the options of the newest OPTIONS file: "section option" -> value.
OptionTexts ReadOptions(const std::string& directory) {
  std::string name;
  REQUIRE_OK(rocksdb::GetLatestOptionsFileName(
      directory, rocksdb::Env::Default(), &name));
  std::ifstream file(directory + "/" + name);
  OptionTexts texts;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find_first_not_of(' ');
    const size_t equals = line.find('=');
    if (first == std::string::npos || line[first] == '#') {
      continue;
    }
    if (line[first] == '[') {
      section = line.substr(first + 1, line.rfind(']') - first - 1);
    } else if (equals != std::string::npos) {
      texts[section + " " + line.substr(first, equals - first)] =
          line.substr(equals + 1);
    }
  }
  return texts;
}

void RequireSameOptions(const std::string& source_dir,
                        const std::string& target_dir,
                        const Expectation& expected) {
  const OptionTexts source = ReadOptions(source_dir);
  const OptionTexts target = ReadOptions(target_dir);
  std::set<std::string> changed = expected.changed_options;
  // These options say how or where a database is opened. They are no property
  // of its data, so they may differ.
  changed.insert({"create_if_missing", "create_missing_column_families",
                  "error_if_exists", "wal_dir", "db_log_dir"});
  for (const auto& [name, value] : source) {
    const std::string section = name.substr(0, name.rfind(' '));
    bool wanted = section == "DBOptions";
    for (const auto& family : expected.families) {
      wanted |= section.ends_with("\"" + family.name + "\"");
    }
    if (!wanted || changed.contains(name) ||
        changed.contains(name.substr(name.rfind(' ') + 1))) {
      continue;
    }
    INFO("option " << name);
    REQUIRE(target.contains(name));
    REQUIRE(target.at(name) == value);
  }
}

void CompareEntries(const ReadOnlyDb& source, const ReadOnlyDb& target,
                    const Expectation& expected) {
  for (size_t i = 0; i < expected.families.size(); ++i) {
    INFO("column family " << expected.families[i].name);
    REQUIRE(Difference(source, target, i,
                       expected.families[i].options.comparator,
                       expected.interval) == "");
  }
}

}  // namespace

void ExpectEqual(const std::string& source_dir, const std::string& target_dir,
                 const Expectation& expected) {
  const ReadOnlyDb source(source_dir, {}, expected.families);
  const auto target = OpenTarget(target_dir, expected.families);
  CompareEntries(source, *target, expected);
  RequireSeeded(target_dir, *target, expected);
  RequireSameOptions(source_dir, target_dir, expected);
}

void ExpectSameEntries(const std::string& source_dir,
                       const std::string& target_dir,
                       const Expectation& expected) {
  const ReadOnlyDb source(source_dir, {}, expected.families);
  const auto target = OpenTarget(target_dir, expected.families);
  CompareEntries(source, *target, expected);
}

void RequireMoves(const ScratchDir& dir, const Expectation& expected,
                  const PullOptions& options) {
  for (const Via via : {Via::kDirectory, Via::kTcp}) {
    const std::string target = dir / (via == Via::kTcp ? "tcp" : "local");
    const Ferried moved = Ferry(dir / "source", target, options, via);
    REQUIRE_OK(moved.status);
    ExpectEqual(dir / "source", target, expected);
  }
}

std::vector<std::pair<std::string, std::string>> EntriesOf(
    const std::string& directory, const Families& families,
    const std::string& family) {
  const ReadOnlyDb db(directory, {}, families);
  std::vector<std::pair<std::string, std::string>> entries;
  for (size_t i = 0; i < families.size(); ++i) {
    if (families[i].name != family) {
      continue;
    }
    const auto it = db.Scan(i);
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      entries.emplace_back(it->key().ToString(), it->value().ToString());
    }
    REQUIRE_OK(it->status());
  }
  return entries;
}

}  // namespace sstferry::test
