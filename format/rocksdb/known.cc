#include "format/rocksdb/known.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>

#include "format/rocksdb/known_table.h"

namespace sstferry {
namespace {

KnownName NameOf(std::string_view word, KnownKind kind,
                 const known_table::NameRow& row) {
  KnownName known;
  known.kind = kind;
  const size_t equals = std::min(word.find('='), word.size());
  known.name = word.substr(0, equals);
  if (equals < word.size()) {
    uint32_t number = 0;
    std::from_chars(word.data() + equals + 1, word.data() + word.size(),
                    number);
    known.number = number;
  }
  known.since = row.since;
  known.until = row.until;
  known.effects = &row.effects;
  return known;
}

std::vector<KnownName> AllNames() {
  std::vector<KnownName> all;
  for (const known_table::KnownRows& kind : known_table::kAllRows) {
    for (const known_table::NameRow& row : kind.rows) {
      std::string_view rest = row.names;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(' '), rest.size());
        all.push_back(NameOf(rest.substr(0, end), kind.kind, row));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
  }
  return all;
}

using NameMap = std::unordered_map<std::string_view, const KnownName*>;

const NameMap& NamesOf(KnownKind kind) {
  static const std::vector<NameMap> maps = [] {
    std::vector<NameMap> all(std::size(known_table::kAllRows));
    for (const KnownName& known : KnownNames()) {
      all[static_cast<size_t>(known.kind)].emplace(known.name, &known);
    }
    return all;
  }();
  return maps[static_cast<size_t>(kind)];
}

RocksDbRelease FirstWith(KnownKind kind, std::string_view name) {
  const KnownName* const known = FindKnown(kind, name);
  return known == nullptr || known->since == kOldestKnown ? RocksDbRelease()
                                                          : known->since;
}

constexpr KnownKind kOptionKinds[] = {
    KnownKind::kDatabaseOption, KnownKind::kFamilyOption,
    KnownKind::kBlockTableOption, KnownKind::kPlainTableOption,
    KnownKind::kCuckooTableOption};

}  // namespace

const std::vector<KnownName>& KnownNames() {
  static const std::vector<KnownName> all = AllNames();
  return all;
}

const KnownName* FindKnown(KnownKind kind, std::string_view name) {
  const NameMap& names = NamesOf(kind);
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

std::optional<KnownKind> OptionsOfSection(std::string_view title) {
  if (title == "DBOptions") return KnownKind::kDatabaseOption;
  if (title == "CFOptions") return KnownKind::kFamilyOption;
  if (title == "TableOptions/BlockBasedTable") {
    return KnownKind::kBlockTableOption;
  }
  if (title == "TableOptions/PlainTable") return KnownKind::kPlainTableOption;
  if (title == "TableOptions/CuckooTable") return KnownKind::kCuckooTableOption;
  return std::nullopt;
}

bool HasKnownMembers(std::string_view option) {
  return option.ends_with("compression_opts") ||
         option.starts_with("compaction_options_") ||
         option == "metadata_cache_options" || option == "cache_usage_options";
}

// If a name belongs to several kinds of options, the later of their first
// releases is returned. For example, experimental_mempurge_threshold was first
// a database option and then a family option. OPTIONS files have it as the
// family option.
RocksDbRelease FirstWithOption(const std::string& name) {
  RocksDbRelease first;
  for (const KnownKind kind : kOptionKinds) {
    first = std::max(first, FirstWith(kind, name));
  }
  return first;
}

RocksDbRelease FirstWithOptionMember(const std::string& name) {
  return FirstWith(KnownKind::kOptionMember, name);
}

RocksDbRelease FirstWithOptionValue(const std::string& value) {
  return FirstWith(KnownKind::kOptionValue, value);
}

}  // namespace sstferry
