// What a target remembers of its last transfer (format/record/cover_file.h): read
// before a refresh, judged by what became of the target since, written after.
// A table file never changes, so that the same files are the same entries;
// sequences and levels prove nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/record/cover_file.h"
#include "pipeline/target/database/live_tables.h"
#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/session/source_session.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/options.h"

namespace sstferry {

// The id that a target knows its source by: the operator's word, where a
// source has none that lasts.
std::string SourceIdOf(const PullOptions& options, const SourcePlan& plan);

// *found is false when there is no record. Corruption: it is damaged.
[[nodiscard]] rocksdb::Status ReadCovers(rocksdb::FileSystem* file_system,
                                         const std::string& dir, bool* found,
                                         CoverFile* covers);

// Durably. A record that would be too large is written without its covers.
[[nodiscard]] rocksdb::Status WriteCovers(rocksdb::FileSystem* file_system,
                                          const std::string& dir,
                                          CoverFile covers);

// A family of a target as a refresh found it.
struct JudgedFamily {
  std::string name;
  const rocksdb::Comparator* order = nullptr;
  std::vector<LiveTable> tables;
};

struct JudgedTarget {
  CoverFile record;  // its covers doubted by what is there now
  std::vector<JudgedFamily> families;
};

// Doubts, in `judged`, the covers of these families which were doubted when
// `record` was written, or whose interval is not met by exactly the files that
// met it then. All of them where it is the record of another database.
// REQUIRES: memtables were flushed, or are told as FamilyHandle::unflushed.
[[nodiscard]] rocksdb::Status JudgeCovers(
    const CoverFile& record, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, JudgedTarget* judged);

// The outermost keys of tables, which may be those of tombstones.
void SetOutermost(const rocksdb::Comparator* order,
                  const std::vector<LiveTable>& tables,
                  std::optional<std::string>* first,
                  std::optional<std::string>* last);

// What to tell the source: outermost keys, where last-level files end, and what
// is remembered. An operator who adopts a target does not know where its data
// came from: then nothing is, but where --source-id says that it is the same.
void DescribeTarget(const PullOptions& options, const JudgedTarget& judged,
                    TargetMemory* memory);

// Every other one goes until a source takes them: they only help.
void ThinBounds(std::vector<TargetBound>* bounds);

// What to remember once the transfer of `plan` has succeeded, of which
// `families` are those of the plan, by index. Outside of what was asked for the
// judgement stays, and so does all that is recorded of other families.
// Without `journal`: nobody else could write since the target was judged, and
// nothing that this process did drops entries, so that what was compared or
// sent holds. With it: only where the files are those that were judged and the
// journal's chunks.
[[nodiscard]] rocksdb::Status RecordCovers(
    const PullOptions& options, const SourcePlan& plan, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, const JudgedTarget& judged,
    const JournalState* journal, CoverFile* covers);

// Brings the files that `covers` knows of up to date, after a compaction of
// our own. Where they are others now, covers are doubted unless `alone`: nobody
// else could have made them.
[[nodiscard]] rocksdb::Status RecordTables(
    bool alone, rocksdb::DB* db, const std::vector<FamilyHandle>& families,
    CoverFile* covers);

// Doubts what meets a range of the plan that was not found equal: by range id.
void DoubtUnequal(const SourcePlan& plan,
                  const std::vector<FamilyHandle>& families,
                  const std::vector<bool>& equal, CoverFile* covers);

}  // namespace sstferry
