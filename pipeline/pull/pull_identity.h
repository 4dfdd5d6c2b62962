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
//   kRefused  they differ; the message names the field and suggests --restart
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
// Compares the plan of a source that resumes the transfer with the journal's
// plan. An archive keeps no snapshots, so it accepts every request to resume.
// Only this comparison shows whether the archive's set is still the same.
//   kSnapshotGone  the database, the snapshot or the plan differs
[[nodiscard]] rocksdb::Status CheckSamePlan(const Plan& plan,
                                            const JournalState& unfinished);

// Returns false if chunks of the unfinished pull may be lost. They may be lost
// if the pull did not sync them and the machine has restarted since the pull
// began.
bool SurvivedReboots(const JournalTransfer& head);
// Sets the boot id that this process uses. If `id` is empty, the process uses
// the machine's boot id.
void TEST_SetBootId(const std::string& id);

}  // namespace sstferry
