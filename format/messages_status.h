// Messages about a source's retained snapshots, databases and transfer slots.
// See format/messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/messages_any.h"

namespace sstferry {

// Asks for the source's retained snapshots and its followers.
struct StatusRequest {
  static constexpr char kName[] = "StatusRequest";

  std::string database;  // NAME; empty: all databases that the sender may read
  friend bool operator==(const StatusRequest&, const StatusRequest&) = default;
};

// The snapshots and followers of the databases that the requesting target may
// read.
struct StatusReply {
  static constexpr char kName[] = "StatusReply";

  std::vector<RetainedSnapshot> snapshots;
  std::vector<FollowerState> followers;
  friend bool operator==(const StatusReply&, const StatusReply&) = default;
};

// Requests the size and age of a served database. Before a pull, also requests
// the facts by which the target chooses the method of the pull.
struct FactsRequest {
  static constexpr char kName[] = "FactsRequest";

  std::string database;               // NAME
  std::vector<std::string> families;  // the families to count; empty: all
  bool for_pull = false;  // the reply must include chunk_bytes and no_clone
  // RocksDB release of the application that will open the files; empty: any.
  std::string application;
  friend bool operator==(const FactsRequest&, const FactsRequest&) = default;
};

// Size and age of a database according to its MANIFEST. Its WALs may contain
// newer writes.
struct FactsReply {
  static constexpr char kName[] = "FactsReply";

  uint64_t families = 0;
  uint64_t files = 0;  // tables and blob files
  uint64_t bytes = 0;  // size of these files
  uint64_t sequence = 0;
  uint64_t age_seconds = 0;  // since the last write
  // Estimated size of chunks built from these files, without obsolete data. 0:
  // not requested.
  uint64_t chunk_bytes = 0;
  std::string database_id;  // empty: the database has no id
  std::string problem;  // why a pull would fail now; empty: no problem is known
  // Why these files cannot be cloned; empty: no known reason, or not requested.
  std::string no_clone;
  friend bool operator==(const FactsReply&, const FactsReply&) = default;
};

// Asks the source to pin several databases as nearly at one moment as possible.
struct PinRequest {
  static constexpr char kName[] = "PinRequest";

  std::vector<std::string> names;
  friend bool operator==(const PinRequest&, const PinRequest&) = default;
};

// Result for one database of a PinRequest. Its point in time is between
// begin_micros and end_micros. All databases of one reply use the same clock.
struct PinnedDatabase {
  uint64_t begin_micros = 0;
  uint64_t end_micros = 0;
  // Seconds since 1970. Snapshots of this database have this value as
  // Opened::taken_seconds.
  uint64_t taken_seconds = 0;
  std::string problem;  // why the database is not pinned; empty: it is pinned
  friend bool operator==(const PinnedDatabase&,
                         const PinnedDatabase&) = default;
};

// Has one entry for each name in the request, in the same order. To open the
// pinned files of a database, a target sends an OpenRequest with kShare and
// with this id as named_transfer.
struct PinReply {
  static constexpr char kName[] = "PinReply";

  TransferId id{};
  std::vector<PinnedDatabase> databases;
  friend bool operator==(const PinReply&, const PinReply&) = default;
};

struct PinEnd {
  static constexpr char kName[] = "PinEnd";

  TransferId id{};       // id of a PinReply
  std::string database;  // empty: all databases
  friend bool operator==(const PinEnd&, const PinEnd&) = default;
};

// Sent instead of Opened if all transfer slots of the source are in use. The
// target reconnects and retries after retry_after_millis.
struct Busy {
  static constexpr char kName[] = "Busy";

  uint32_t retry_after_millis = 0;
  friend bool operator==(const Busy&, const Busy&) = default;
};

}  // namespace sstferry
