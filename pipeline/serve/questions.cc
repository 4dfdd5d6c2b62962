#include "pipeline/serve/questions.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "format/limits.h"
#include "pipeline/serve/served_facts.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Finds the database of that name, or all databases that the peer may read if
// the name is empty.
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

Status TellNames(const SessionHost& host, Channel* channel) {
  ListReply reply;
  const std::shared_ptr<const ServedSet> set = host.databases->AfterNow();
  reply.file_system = set->file_system;
  for (const ServedDatabase& database : set->databases) {
    if (reply.names.size() < kMaxServedDatabases &&
        host.databases->MayRead(database.name, channel->identity())) {
      reply.names.push_back(database.name);
    }
  }
  return channel->SendMessage(FrameType::kListReply, reply);
}

// Returns the followers of databases with these names, sorted by lag, the
// largest first.
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
  Status status = Decode(frame.payload, &request);
  if (status.ok()) status = FindNames(host, *channel, request.database, &names);
  return status.ok()
             ? channel->SendMessage(
                   FrameType::kStatusReply,
                   StatusReply{host.store->List(names, channel->identity()),
                               FollowersOf(host, names)})
             : status;
}

Status TellFacts(const SessionHost& host, const Frame& frame,
                 Channel* channel) {
  FactsRequest request;
  ServedDatabase database;
  Status status = Decode(frame.payload, &request);
  if (status.ok()) {
    status = host.find_database(request.database, channel->identity(),
                                &database);
  }
  return status.ok()
             ? channel->SendMessage(
                   FrameType::kFactsReply,
                   FactsOf(database, request, host.options->snapshot_dir))
             : status;
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
      return TellNames(host, channel);
  }
}

}  // namespace sstferry
