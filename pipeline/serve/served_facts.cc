#include "pipeline/serve/served_facts.h"

#include <algorithm>
#include <ctime>

#include "format/limits.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/serve/served_databases.h"
#include "rocksdb/db.h"

namespace sstferry {

FactsReply FactsOf(ServedDatabase database, const FactsRequest& request,
                   const std::string& snapshot_dir) {
  if (database.db != nullptr) {
    database.directory = database.db->GetName();
  }
  DatabaseFacts facts;
  const rocksdb::Status status =
      DescribeDatabase(database,
                       {SnapshotDirOf(database, snapshot_dir),
                        request.families, request.for_pull, request.application},
                       &facts);
  FactsReply reply;
  if (!status.ok()) {
    reply.problem = MessageOf(status);
    return reply;
  }
  const auto now = static_cast<uint64_t>(std::time(nullptr));
  reply.families = facts.families;
  reply.files = facts.files;
  reply.bytes = facts.bytes;
  reply.sequence = facts.sequence;
  reply.chunk_bytes = facts.chunk_bytes;
  reply.no_clone = facts.no_clone;
  if (facts.database_id.size() <= kMaxIdentifierBytes) {
    reply.database_id = facts.database_id;
  }
  HealthFile fault;
  const Status known = ReadKnownFault(database.directory, &fault);
  if (!known.ok()) {
    reply.problem = MessageOf(known);
  } else if (fault.fault != ReplicaFault::kNone) {
    reply.problem = "it is a replica, and " + FaultSentence(fault);
  }
  reply.age_seconds = now - std::min(now, facts.written_seconds);
  return reply;
}

}  // namespace sstferry
