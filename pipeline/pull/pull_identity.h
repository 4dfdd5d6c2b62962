// Checks that a command asks for the same transfer as an unfinished pull, and
// that the source still offers the same snapshot and plan.
#pragma once

#include <string>

#include "pipeline/pull/journal_state.h"
#include "pipeline/pull/source_session.h"
#include "sstferry/options.h"

namespace sstferry {

// Returns the first record of a journal.
JournalTransfer MakeJournalHead(const PullOptions& options,
                                const std::string& mode,
                                const OpenRequest& asked,
                                const Plan& plan);

// Compares the command's request with the request of the unfinished pull in
// `dir`.
//   kRefused  they differ; the message has the field and suggests --restart
[[nodiscard]] rocksdb::Status CheckSameRequest(const PullOptions& options,
                                               const std::string& mode,
                                               const JournalTransfer& head,
                                               const std::string& dir);
// Compares the source that answered with the source of the unfinished pull.
//   kRefused  they differ
[[nodiscard]] rocksdb::Status CheckSameSource(const PullOptions& options,
                                              const Plan& plan,
                                              const JournalTransfer& head,
                                              const std::string& dir);
// Compares the plan of a source that resumes the transfer with the journal's.
// An archive accepts every request to resume, because it retains no snapshots:
// only this comparison finds out whether the set is the same.
//   kSnapshotGone  the database, the snapshot or the plan differs
[[nodiscard]] rocksdb::Status CheckSamePlan(const Plan& plan,
                                            const JournalState& unfinished);

// Returns false if the pull's chunks may be lost: the machine restarted since
// the pull began, and the pull did not sync its chunks.
bool SurvivedReboots(const JournalTransfer& head);
// Sets the boot id that this process uses; empty: the machine's.
void TEST_SetBootId(const std::string& id);

}  // namespace sstferry
