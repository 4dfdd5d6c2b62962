// What an unfinished pull is bound to: whether a command is about the same
// one, and whether the source still has what it was about.
#pragma once

#include <string>

#include "pipeline/target/journal/journal_state.h"
#include "pipeline/target/session/source_session.h"
#include "sstferry/options.h"

namespace sstferry {

// The first record of a journal.
JournalTransfer MakeJournalHead(const PullOptions& options,
                                const std::string& mode,
                                const OpenRequest& asked,
                                const SourcePlan& plan);

// kRefused, with a sentence and what to type, when the command asks for
// something else than the unfinished pull in `dir`.
[[nodiscard]] rocksdb::Status CheckSameRequest(const PullOptions& options,
                                               const std::string& mode,
                                               const JournalTransfer& head,
                                               const std::string& dir);
// The same when the source that answered is another.
[[nodiscard]] rocksdb::Status CheckSameSource(const PullOptions& options,
                                              const SourcePlan& plan,
                                              const JournalTransfer& head,
                                              const std::string& dir);
// Of a source that goes on with the transfer: kRefused when column families'
// options are not what they were, kSnapshotGone when the ranges are not.
[[nodiscard]] rocksdb::Status CheckSamePlan(const SourcePlan& plan,
                                            const JournalState& unfinished,
                                            const std::string& dir);

// As --carry takes it.
const char* CarryText(CarryMode mode);

// What the source had announced.
SourcePlan PlanOf(const JournalState& unfinished);

// False when the machine went down since, and nothing was synced before.
bool SurvivedReboots(const JournalTransfer& head);
// As if the machine had been started again; empty: as it is.
void TEST_SetBootId(const std::string& id);

}  // namespace sstferry
