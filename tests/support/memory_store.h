// A store in memory for tests: one server, and clients that a test can stop,
// delay or mislead before each of their calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/archive/store.h"

namespace sstferry {

// The rules of a server; a test may change them between calls.
struct MemoryStoreRules {
  // False: `if_absent` is ignored, as some stores do.
  bool honours_if_absent = true;
  // False: a signature of any age is accepted.
  bool checks_signatures = true;
  UnixSeconds signature_seconds = 15 * 60;
  uint32_t max_page = kMaxStorePage;  // entries of one List()
  std::set<std::string> cold;  // keys that lists show as cold
  bool gives_cold_back = false;  // false: objects of these keys are unreadable
  std::set<std::string> restored;  // cold keys that are readable, as lists show
  std::set<std::string> hidden;    // unreadable keys that no list shows as cold
};

enum class StoreCallKind : uint8_t {
  kNow, kPut, kGet, kHead, kList, kDelete, kRemoveUploads,
};

// A call that a client has made and signed, but that has not arrived yet.
struct StoreCall {
  StoreCallKind kind;
  std::string key;  // kDelete: the first; lists: the prefix
  int client = 0;
  uint64_t number = 0;  // counts this client's calls, from 0
  // Set by the hook: a list misses this many of the last changes.
  size_t stale_changes = 0;
  // Set by the hook: the client slept before it signed the call. False: if it
  // slept, it did so after it signed, so the signature may be too old.
  bool slept_before_signing = false;
  // Set by the hook: the first byte of a get is wrong.
  bool flips_bit = false;
};

enum class CallFate : uint8_t {
  kArrives,
  kNeverArrives,  // kUnreachable, and nothing happened
  kAnswerLost,    // the call took effect; kUnreachable
  kThrottled,
  kDenied,        // and nothing happened
  kRepeatDenied,  // the call took effect; its answer was lost, and when it was
                  // repeated, it was denied
  kAbsent,        // and nothing happened
};
// Runs before each call, in the caller's thread and without a lock: a test may
// block here, or run other clients. To stop a client for good, a test returns
// kNeverArrives for all of its later calls.
using StoreHook = std::function<CallFate(StoreCall* call)>;

// The server. Threads: any.
class MemoryStore {
 public:
  explicit MemoryStore(MemoryStoreRules rules = {});
  ~MemoryStore();
  MemoryStoreRules& rules();

  // Makes a client. `clock_ahead`: how far its clock is ahead of the server's.
  std::unique_ptr<ObjectStore> NewClient(StoreHook hook = nullptr,
                                         UnixSeconds clock_ahead = 0);

  UnixSeconds now() const;
  void Advance(UnixSeconds seconds);

  // Returns the stored objects, without a client's call.
  std::map<std::string, std::string> Objects() const;
  bool Has(const std::string& key) const;
  // Imitate bit rot: replace the bytes of a key, or remove them.
  void Overwrite(const std::string& key, const std::string& bytes);
  void Erase(const std::string& key);
  // Returns the number of puts in pieces that began and did not end.
  size_t uploads() const;

 private:
  friend class MemoryStoreClient;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sstferry
