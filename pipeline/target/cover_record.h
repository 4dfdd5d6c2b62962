// What a target remembers of its last transfer (format/cover_file.h): read
// before a refresh, judged by what became of the target since, written after.
#pragma once

#include <string>
#include <vector>

#include "format/cover_file.h"
#include "pipeline/options.h"
#include "pipeline/target/live_tables.h"
#include "pipeline/target/source_session.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"

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

// What to tell the source of these families: their outermost keys, which may
// be those of tombstones, where their last-level files end, and what is
// remembered of them. A cover is doubted
// if a file over it is not of the record, unless nothing was written to the
// database since (its sequence is the recorded one, and the file was not
// ingested). REQUIRES: memtables were flushed.
[[nodiscard]] rocksdb::Status JudgeCovers(
    const CoverFile& record, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, TargetMemory* memory);

// Every other one goes until a source takes them: they only help.
void ThinBounds(std::vector<TargetBound>* bounds);

// What to remember once the transfer of `plan` has succeeded. `families` are
// the plan's, by index; `before` is the record until then, of which everything
// outside of what was asked for stays.
[[nodiscard]] rocksdb::Status RecordCovers(
    const PullOptions& options, const SourcePlan& plan, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, const CoverFile& before,
    CoverFile* covers);

// Brings the files that `covers` knows of up to date, after a compaction of
// our own.
[[nodiscard]] rocksdb::Status RecordTables(
    const Selection& selection, rocksdb::DB* db,
    const std::vector<FamilyHandle>& families, CoverFile* covers);

}  // namespace sstferry
