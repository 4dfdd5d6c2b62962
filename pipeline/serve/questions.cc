#include "pipeline/serve/questions.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "format/end_state.h"
#include "format/limits.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/serve/served_databases.h"
#include "rocksdb/db.h"
#include "sstferry/source.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Sets *names to `database`, or to all databases that the peer may read if
// `database` is empty. Returns the errors of SessionHost::find_database.
Status FindNames(const SessionHost& host, const Channel& channel,
                 const std::string& database, std::set<std::string>* names) {
  ServedDatabase named;
  Status status;
  if (!database.empty()) {
    status = host.find_database(database, channel.identity(), &named);
  }
  const std::shared_ptr<const ServedSet> set = host.databases->Now();
  for (const ServedDatabase& served : set->databases) {
    if (status.ok() &&
        host.databases->MayRead(served.name, channel.identity()) &&
        (database.empty() || database == served.name)) {
      names->insert(served.name);
    }
  }
  return status;
}

// Lists the databases of the set that the peer may read. request.known are the
// databases of which the peer has copies. If one of these is not listed but may
// still exist, marks the list as incomplete, and sets *why to its name and the
// reason.
ListReply ListFor(const SessionHost& host, const ListRequest& request,
                  const PeerIdentity* peer, const ServedSet& set,
                  std::string* why) {
  why->clear();
  ListReply reply;
  reply.file_system = set.file_system;
  reply.is_complete = set.is_complete;
  for (const ServedDatabase& database : set.databases) {
    if (!host.databases->MayRead(database.name, peer)) {
      continue;
    }
    if (reply.names.size() == kMaxServedDatabases) {
      reply.is_complete = false;
      break;
    }
    reply.names.push_back(database.name);
  }
  for (const std::string& name : request.known) {
    const bool is_served = set.Find(name) != nullptr;
    const bool is_hidden = is_served && !host.databases->MayRead(name, peer);
    if (is_hidden || (!is_served && set.others.contains(name))) {
      reply.is_complete = false;
      *why = name + ", of which a target has a copy, is " +
             (is_hidden ? "hidden from it (serve --allow)"
                        : "a directory or a link without a database now (is a "
                          "volume not mounted?)");
    }
  }
  return reply;
}

// Answers a ListRequest. If the list is incomplete, searches for databases once
// more, because the first search may have met a half removed database.
Status TellNames(const SessionHost& host, const Frame& frame,
                 Channel* channel) {
  ListRequest request;
  RETURN_IF_ERROR(Decode(frame.payload, &request));
  ListReply reply;
  std::string why;
  std::shared_ptr<const ServedSet> set;
  for (int looks = 0; looks < 2 && !reply.is_complete; ++looks) {
    set = host.databases->AfterNow();
    reply = ListFor(host, request, channel->identity(), *set, &why);
  }
  if (!why.empty()) {
    host.log_peer(why);
  }
  if (reply.names.empty() && !set->databases.empty()) {
    return MakeStatus(EndState::kDenied,
                      "serves nothing to " + NameOfPeer(channel->identity()) +
                          " (serve --allow)");
  }
  return channel->SendMessage(FrameType::kListReply, reply);
}

// Returns the followers of the databases with these names. The follower with
// the largest lag is the first.
std::vector<FollowerState> FollowersOf(const SessionHost& host,
                                       const std::set<std::string>& names) {
  std::vector<FollowerState> all;
  if (host.follow == nullptr) {
    return all;
  }
  for (const FollowedState& followed : host.follow->state()) {
    for (const FollowerState& follower : followed.followers) {
      if (names.contains(follower.database)) all.push_back(follower);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const FollowerState& a, const FollowerState& b) {
                     return a.behind_millis > b.behind_millis;
                   });
  all.resize(std::min<size_t>(all.size(), kMaxReportedFollowers));
  return all;
}

Status TellStatus(const SessionHost& host, const Frame& frame,
                  Channel* channel) {
  StatusRequest request;
  std::set<std::string> names;
  RETURN_IF_ERROR(Decode(frame.payload, &request));
  RETURN_IF_ERROR(FindNames(host, *channel, request.database, &names));
  return channel->SendMessage(
      FrameType::kStatusReply,
      StatusReply{host.store->List(names, channel->identity()),
                  FollowersOf(host, names)});
}

// Reads the size and other facts of a database, for a FactsRequest.
// `snapshot_dir` is ServeOptions::snapshot_dir.
FactsReply FactsOf(ServedDatabase database, const FactsRequest& request,
                   const std::string& snapshot_dir) {
  if (database.db != nullptr) {
    database.directory = database.db->GetName();
  }
  DatabaseFacts facts;
  const Status status = DescribeDatabase(
      database,
      {SnapshotDirOf(database, snapshot_dir), request.families,
       request.for_pull, request.application},
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

Status TellFacts(const SessionHost& host, const Frame& frame,
                 Channel* channel) {
  FactsRequest request;
  ServedDatabase database;
  RETURN_IF_ERROR(Decode(frame.payload, &request));
  RETURN_IF_ERROR(host.find_database(request.database, channel->identity(),
                                     &database));
  return channel->SendMessage(
      FrameType::kFactsReply,
      FactsOf(database, request, host.options->snapshot_dir));
}

}  // namespace

Status AnswerQuestion(const SessionHost& host, const Frame& frame,
                      Channel* channel) {
  switch (frame.type) {
    case FrameType::kStatusRequest:
      return TellStatus(host, frame, channel);
    case FrameType::kFactsRequest:
      return TellFacts(host, frame, channel);
    default:
      return TellNames(host, frame, channel);
  }
}

}  // namespace sstferry
