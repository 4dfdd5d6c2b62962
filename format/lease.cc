#include "format/lease.h"

#include <algorithm>

#include "format/message_fields.h"
#include "format/sealed_record.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

template <typename A, FieldsOf<Lease> M>
void Fields(A& a, M& m) {
  a.Id("transfer_id", m.transfer_id);
  a.Bytes("database", m.database, kMaxDatabaseNameBytes);
  a.Bytes("directory", m.directory, kMaxPathBytes);
  Fields(a, m.request);
  Fields(a, m.target);
  a.Bytes("owner_subject", m.owner_subject, kMaxMessageTextBytes);
  a.List("owner_names", m.owner_names, kMaxOwnerNames, 4,
         [](auto& archive, auto& item) {
           archive.Bytes("name", item, kMaxIdentifierBytes);
         });
  Number(a, "plan_lanes", m.plan_lanes, kMaxLanes, 1);
  a.Bytes("source_database_id", m.source_database_id, kMaxIdentifierBytes);
  Number(a, "snapshot_sequence", m.snapshot_sequence);
  a.Bool("read_only", m.read_only);
  Number(a, "wal_bytes", m.wal_bytes);
  a.Digest("plan", m.plan);
  Number(a, "pinned_bytes", m.pinned_bytes);
  Number(a, "created_seconds", m.created_seconds);
  Number(a, "renewed_seconds", m.renewed_seconds);
  Number(a, "ttl_seconds", m.ttl_seconds, kMaxLeaseSeconds);
  Number(a, "readers", m.readers);
}

namespace {

// Returns true if all fields are within their maximums. The fields from
// certificates and paths have no natural maximum.
bool Fits(const Lease& lease) {
  return lease.directory.size() <= kMaxPathBytes &&
         lease.owner_subject.size() <= kMaxMessageTextBytes &&
         lease.owner_names.size() <= kMaxOwnerNames &&
         std::all_of(lease.owner_names.begin(), lease.owner_names.end(),
                     [](const std::string& name) {
                       return name.size() <= kMaxIdentifierBytes;
                     });
}

}  // namespace

Status EncodeLease(const Lease& lease, std::string* out) {
  if (!Fits(lease)) {
    return MakeStatus(EndState::kRefused,
                      "lease: the target's certificate or the source's path "
                      "is too long to be recorded");
  }
  std::string payload;
  Encode(lease, &payload);
  if (payload.size() > kMaxLeasePayloadBytes) {
    return MakeStatus(EndState::kRefused,
                      "lease: expected a record of at most " +
                          std::to_string(kMaxLeasePayloadBytes) +
                          " bytes, found " + std::to_string(payload.size()));
  }
  SealFile(kLeaseMagic, payload, out);
  return Status::OK();
}

Status DecodeLease(const Slice& file, Lease* lease) {
  return UnsealRecord(kLeaseMagic, kMaxLeasePayloadBytes, file, lease);
}

uint64_t LeaseSecondsLeft(const Lease& lease, uint64_t now_seconds,
                          uint64_t max_ttl_seconds) {
  const uint64_t ttl = std::min(lease.ttl_seconds, max_ttl_seconds);
  if (now_seconds <= lease.renewed_seconds) {
    return ttl;
  }
  const uint64_t passed = now_seconds - lease.renewed_seconds;
  return passed >= ttl ? 0 : ttl - passed;
}

}  // namespace sstferry
