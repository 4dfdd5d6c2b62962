#include "tests/support/replica_contents.h"

#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/base/rocksdb_compat.h"
#include "pipeline/base/silent_logger.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "tests/support/catch.h"

namespace sstferry::test {
namespace {

bool IsInside(const KeyInterval& interval, const rocksdb::Comparator* order,
              const std::string& key) {
  return (!interval.begin || order->Compare(key, *interval.begin) >= 0) &&
         (!interval.end || order->Compare(key, *interval.end) < 0);
}

std::string Shown(const std::string& bytes) {
  return rocksdb::Slice(bytes.data(), std::min<size_t>(bytes.size(), 24))
             .ToString(true) +
         " (" + std::to_string(bytes.size()) + " bytes)";
}

std::string Shown(const std::optional<std::string>& value) {
  return value ? Shown(*value) : "nothing";
}

const FamilyContents& FamilyOf(const Contents& contents,
                               const std::string& name) {
  static const FamilyContents kNone;
  const auto found = contents.find(name);
  return found == contents.end() ? kNone : found->second;
}

std::optional<std::string> ValueOf(const FamilyContents& entries,
                                   const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? std::nullopt
                                : std::optional(found->second);
}

std::set<std::string> KeysOf(const Contents& contents,
                             const std::string& family) {
  std::set<std::string> keys;
  for (const auto& [key, value] : FamilyOf(contents, family)) {
    keys.insert(key);
  }
  return keys;
}

// Returns the first difference as text, or "" if both are equal.
std::string DifferenceOf(const Contents& expected, const Contents& found) {
  for (const auto& [name, entries] : expected) {
    if (!found.contains(name)) {
      return "column family " + name + " is missing";
    }
    std::set<std::string> keys = KeysOf(expected, name);
    keys.merge(KeysOf(found, name));
    for (const std::string& key : keys) {
      const auto wanted = ValueOf(entries, key);
      const auto is = ValueOf(found.at(name), key);
      if (wanted != is) {
        return "column family " + name + ", key " + rocksdb::Slice(key)
                   .ToString(key.size() > 24) + ": expected " +
               Shown(wanted) + ", found " + Shown(is);
      }
    }
  }
  for (const auto& [name, entries] : found) {
    if (!expected.contains(name)) {
      return "column family " + name + " is unexpected";
    }
  }
  return "";
}

}  // namespace

std::optional<Contents> ContentsOf(const std::string& path,
                                   const Families& families) {
  if (!std::filesystem::exists(path + "/CURRENT")) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  REQUIRE_OK(rocksdb::DB::ListColumnFamilies({}, path, &names));
  Families there;
  for (const auto& family : families) {
    if (std::find(names.begin(), names.end(), family.name) != names.end()) {
      there.push_back(family);
    }
  }
  REQUIRE(there.size() == names.size());
  rocksdb::DBOptions options;
  options.info_log = std::make_shared<SilentLogger>();
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  REQUIRE_OK(rocksdb::DB::OpenForReadOnly(options, path, there, &handles,
                                          IntoDb(&db)));
  Contents contents;
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    FamilyContents& entries = contents[handle->GetName()];
    rocksdb::ReadOptions all;
    all.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(all, handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      entries[it->key().ToString()] = it->value().ToString();
    }
    REQUIRE_OK(it->status());
  }
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    REQUIRE_OK(db->DestroyColumnFamilyHandle(handle));
  }
  return contents;
}

Contents ContentsAfter(const RefreshAsked& asked, const Families& known,
                       const std::optional<Contents>& before,
                       const Contents& source) {
  Contents after;
  if (before && !asked.replaces_all) {
    after = *before;
  }
  after["default"];  // every database has it
  const std::vector<std::string>& names = asked.selection.families;
  if (asked.drops_missing && names.empty()) {
    std::erase_if(after, [&source](const auto& family) {
      return !source.contains(family.first);
    });
  }
  for (const auto& family : known) {
    if (!source.contains(family.name) ||
        (!names.empty() && std::find(names.begin(), names.end(),
                                     family.name) == names.end())) {
      continue;
    }
    FamilyContents& entries = after[family.name];
    const auto is_asked = [&](const auto& entry) {
      return IsInside(asked.selection.interval, family.options.comparator,
                      entry.first);
    };
    std::erase_if(entries, is_asked);
    for (const auto& entry : source.at(family.name)) {
      if (is_asked(entry)) {
        entries.insert(entry);
      }
    }
  }
  return after;
}

void RequireSame(const std::string& when, const Contents& expected,
                 const Contents& found) {
  const std::string difference = DifferenceOf(expected, found);
  if (!difference.empty()) {
    RC_FAIL(when + ": " + difference);
  }
}

Contents WithoutEmptyValues(Contents contents) {
  for (auto& [name, entries] : contents) {
    std::erase_if(entries,
                  [](const auto& entry) { return entry.second.empty(); });
  }
  return contents;
}

}  // namespace sstferry::test
