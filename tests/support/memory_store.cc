#include "tests/support/memory_store.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>

#include "format/end_state.h"

namespace sstferry {
namespace {

constexpr size_t kKnownChanges = 256;

struct Object {
  std::string bytes;
  UnixSeconds modified = 0;
};
using ObjectPointer = std::shared_ptr<const Object>;

struct Upload {
  std::string key;
  UnixSeconds begun = 0;
};

StoreResult ReadAll(const ByteSource& source, std::string* bytes) {
  constexpr size_t kPiece = 1u << 20;
  std::string scratch;
  while (bytes->size() < source.size()) {
    rocksdb::Slice piece;
    const size_t n =
        std::min<uint64_t>(kPiece, source.size() - bytes->size());
    const rocksdb::Status read =
        source.Read(bytes->size(), n, &scratch, &piece);
    if (!read.ok()) {
      return {StoreCode::kCaller, read};
    }
    bytes->append(piece.data(), piece.size());
  }
  return {};
}

}  // namespace

struct MemoryStore::State {
  mutable std::mutex mu;
  MemoryStoreRules rules;
  UnixSeconds now = 1'800'000'000;
  uint64_t next_upload = 1;
  int clients = 0;
  std::map<std::string, ObjectPointer> objects;
  std::map<uint64_t, Upload> uploads;  // by number
  // The last changes, oldest first: a key and the object before the change.
  std::deque<std::pair<std::string, ObjectPointer>> changes;

  void Change(const std::string& key, ObjectPointer object) {
    auto found = objects.find(key);
    changes.emplace_back(key, found == objects.end() ? nullptr : found->second);
    if (changes.size() > kKnownChanges) {
      changes.pop_front();
    }
    if (object == nullptr) {
      objects.erase(key);
    } else {
      objects[key] = std::move(object);
    }
  }
  void Store(const std::string& key, std::string bytes) {
    Change(key, std::make_shared<Object>(Object{std::move(bytes), now}));
  }
  std::map<std::string, ObjectPointer> Before(size_t stale_changes) const {
    std::map<std::string, ObjectPointer> seen = objects;
    size_t left = stale_changes;
    for (auto it = changes.rbegin(); it != changes.rend() && left > 0;
         ++it, --left) {
      if (it->second == nullptr) {
        seen.erase(it->first);
      } else {
        seen[it->first] = it->second;
      }
    }
    return seen;
  }
};

class MemoryStoreClient : public ObjectStore {
 public:
  MemoryStoreClient(std::shared_ptr<MemoryStore::State> state, int client,
                    StoreHook hook, UnixSeconds clock_ahead)
      : state_(std::move(state)),
        client_(client),
        hook_(std::move(hook)),
        clock_ahead_(clock_ahead) {}

  void Cancel() override { cancelled_ = true; }
  const std::string& place() const override { return place_; }

  StoreResult Now(UnixSeconds* now) override {
    return Call(StoreCallKind::kNow, "", {}, [&](const StoreCall&) {
      *now = state_->now;
      return StoreResult{};
    });
  }

  UnixSeconds SigningTime() const override {
    std::lock_guard<std::mutex> guard(state_->mu);
    return state_->now + clock_ahead_;
  }

  // A put in pieces is one call, at its end. If this call does not arrive, the
  // upload stays.
  StoreResult Put(const PutRequest& request) override {
    if (!IsStoreKey(request.key)) {
      return StoreError(StoreCode::kInternal,
                        "not a valid key of a store: " + request.key);
    }
    const bool in_pieces = request.piece_bytes != 0;
    uint64_t upload = 0;
    if (in_pieces) {
      std::lock_guard<std::mutex> guard(state_->mu);
      upload = state_->next_upload++;
      state_->uploads[upload] = {request.key, state_->now};
    }
    std::string bytes;
    bool is_intact = true;
    StoreResult read = PutPieces(
        request, [&](uint64_t, const ByteSource& source,
                     const Sha256Digest& sha256) {
          std::string piece;
          StoreResult result = ReadAll(source, &piece);
          is_intact &= Sha256Of(piece) == sha256;
          bytes += piece;
          return result;
        });
    if (!read.ok()) {
      std::lock_guard<std::mutex> guard(state_->mu);
      state_->uploads.erase(upload);
      return read;
    }
    return Call(
        StoreCallKind::kPut, request.key, request.signed_at,
        [&](const StoreCall&) {
          const bool is_there = state_->uploads.erase(upload) != 0;
          if (in_pieces && !is_there) {
            return Error(StoreCode::kAbsent, request.key);
          }
          if (!is_intact) {
            return Error(StoreCode::kDamaged, request.key);
          }
          if (request.if_absent && Refuses(request.key)) {
            return Error(StoreCode::kExists, request.key);
          }
          state_->Store(request.key, bytes);
          return StoreResult{};
        });
  }

  StoreResult GetUnproven(const GetRequest& request,
                          const ObjectSink& sink) override {
    ObjectPointer object;
    StoreResult got = Call(
        StoreCallKind::kGet, request.key, {}, [&](const StoreCall& call) {
          const MemoryStoreRules& rules = state_->rules;
          const bool is_cold = rules.cold.count(request.key) != 0 &&
                               rules.restored.count(request.key) == 0 &&
                               !rules.gives_cold_back;
          if (is_cold || rules.hidden.count(request.key) != 0) {
            return Error(StoreCode::kCold, request.key);
          }
          StoreResult found = Find(request.key, &object);
          if (found.ok() && call.flips_bit && !object->bytes.empty()) {
            Object wrong = *object;
            wrong.bytes[0] = static_cast<char>(wrong.bytes[0] ^ 1);
            object = std::make_shared<Object>(std::move(wrong));
          }
          return found;
        });
    if (!got.ok()) {
      return got;
    }
    const uint64_t size = object->bytes.size();
    const uint64_t left = request.offset > size ? 0 : size - request.offset;
    const uint64_t n = request.bytes.value_or(left);
    if (n > left || request.offset > size ||
        (!request.bytes.has_value() && n > request.max_bytes)) {
      return Error(StoreCode::kDamaged, request.key);
    }
    constexpr uint64_t kPiece = 64u << 10;
    for (uint64_t at = 0; at < n; at += kPiece) {
      const rocksdb::Status taken = sink(
          rocksdb::Slice(object->bytes.data() + request.offset + at,
                         std::min(kPiece, n - at)));
      if (!taken.ok()) {
        return {StoreCode::kCaller, taken};
      }
    }
    return {};
  }

  StoreResult HeadUnproven(const std::string& key, ObjectInfo* info) override {
    return Call(StoreCallKind::kHead, key, {}, [&](const StoreCall&) {
      ObjectPointer object;
      StoreResult found = Find(key, &object);
      if (found.ok()) {
        *info = InfoOf(key, *object);
      }
      return found;
    });
  }

  StoreResult List(const std::string& prefix, const std::string& after,
                   ListPage* page) override {
    *page = {};
    return Call(StoreCallKind::kList, prefix, {}, [&](const StoreCall& call) {
      const std::map<std::string, ObjectPointer> seen =
          state_->Before(call.stale_changes);
      const uint32_t most = std::min(state_->rules.max_page, kMaxStorePage);
      for (auto it = after < prefix ? seen.lower_bound(prefix)
                                    : seen.upper_bound(after);
           it != seen.end() && it->first.starts_with(prefix); ++it) {
        if (page->objects.size() + page->foreign == most) {
          page->more = true;
          break;
        }
        page->next = it->first;
        if (IsStoreKey(it->first)) {
          page->objects.push_back(InfoOf(it->first, *it->second));
        } else {
          page->foreign++;
        }
      }
      if (!page->more) {
        page->next.clear();
      }
      return StoreResult{};
    });
  }

  StoreResult Delete(const std::vector<std::string>& keys) override {
    if (keys.size() > kMaxStorePage) {
      return Error(StoreCode::kInternal, "more keys than kMaxStorePage");
    }
    return Call(StoreCallKind::kDelete, keys.empty() ? "" : keys.front(), {},
                [&](const StoreCall&) {
                  for (const std::string& key : keys) {
                    if (state_->objects.count(key) != 0) {
                      state_->Change(key, nullptr);
                    }
                  }
                  return StoreResult{};
                });
  }

  StoreResult RemoveUploads(
      UnixSeconds before,
      const std::function<bool(const std::string& key)>& may_remove,
      uint64_t* removed) override {
    return Call(StoreCallKind::kRemoveUploads, "", {}, [&](const StoreCall&) {
      *removed += std::erase_if(state_->uploads, [&](const auto& entry) {
        const Upload& upload = entry.second;
        return upload.begun < before && may_remove(upload.key);
      });
      return StoreResult{};
    });
  }

 private:
  ObjectInfo InfoOf(const std::string& key, const Object& object) const {
    return {key, object.bytes.size(), object.modified,
            state_->rules.cold.count(key) != 0,
            state_->rules.restored.count(key) != 0};
  }
  StoreResult Error(StoreCode code, const std::string& key) const {
    return StoreError(code, Describe(key));
  }
  bool Refuses(const std::string& key) const {
    return state_->rules.honours_if_absent && state_->objects.count(key) != 0;
  }
  StoreResult Find(const std::string& key, ObjectPointer* object) const {
    auto found = state_->objects.find(key);
    if (found == state_->objects.end()) {
      return Error(StoreCode::kAbsent, key);
    }
    *object = found->second;
    return {};
  }
  // Signs a call, asks the hook for its fate, and runs `effect` on the server
  // if the call arrives.
  template <typename Effect>
  StoreResult Call(StoreCallKind kind, const std::string& key,
                   std::optional<UnixSeconds> signed_at, Effect effect) {
    UnixSeconds signature = signed_at.value_or(SigningTime());
    StoreCall call{kind, key, client_, calls_++, 0, false, false};
    const CallFate fate = hook_ ? hook_(&call) : CallFate::kArrives;
    if (cancelled_) {
      return Error(StoreCode::kCancelled, key);
    }
    if (fate == CallFate::kNeverArrives) {
      return Error(StoreCode::kUnreachable, key);
    }
    if (fate == CallFate::kThrottled) {
      return Error(StoreCode::kThrottled, key);
    }
    if (fate == CallFate::kDenied) {
      return Error(StoreCode::kDenied, key);
    }
    if (fate == CallFate::kAbsent) {
      return Error(StoreCode::kAbsent, key);
    }
    if (call.slept_before_signing && !signed_at.has_value()) {
      signature = SigningTime();
    }
    std::lock_guard<std::mutex> guard(state_->mu);
    const UnixSeconds age = state_->now - signature;
    if (state_->rules.checks_signatures &&
        std::max(age, -age) > state_->rules.signature_seconds) {
      return Error(StoreCode::kSignatureRefused, key);
    }
    StoreResult result = effect(call);
    if (fate == CallFate::kRepeatDenied) {
      return Error(StoreCode::kDenied, key);
    }
    return fate == CallFate::kAnswerLost
               ? Error(StoreCode::kUnreachable, key)
               : std::move(result);
  }

  const std::shared_ptr<MemoryStore::State> state_;
  const int client_;
  const StoreHook hook_;
  const UnixSeconds clock_ahead_;
  const std::string place_ = "memory:";
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> cancelled_{false};
};

MemoryStore::MemoryStore(MemoryStoreRules rules)
    : state_(std::make_shared<State>()) {
  state_->rules = rules;
}
MemoryStore::~MemoryStore() = default;

MemoryStoreRules& MemoryStore::rules() { return state_->rules; }

std::unique_ptr<ObjectStore> MemoryStore::NewClient(StoreHook hook,
                                                    UnixSeconds clock_ahead) {
  std::lock_guard<std::mutex> guard(state_->mu);
  return std::make_unique<MemoryStoreClient>(state_, state_->clients++,
                                             std::move(hook), clock_ahead);
}

UnixSeconds MemoryStore::now() const {
  std::lock_guard<std::mutex> guard(state_->mu);
  return state_->now;
}

void MemoryStore::Advance(UnixSeconds seconds) {
  std::lock_guard<std::mutex> guard(state_->mu);
  state_->now += seconds;
}

std::map<std::string, std::string> MemoryStore::Objects() const {
  std::lock_guard<std::mutex> guard(state_->mu);
  std::map<std::string, std::string> objects;
  for (const auto& [key, object] : state_->objects) {
    objects[key] = object->bytes;
  }
  return objects;
}

bool MemoryStore::Has(const std::string& key) const {
  std::lock_guard<std::mutex> guard(state_->mu);
  return state_->objects.count(key) != 0;
}

void MemoryStore::Overwrite(const std::string& key, const std::string& bytes) {
  std::lock_guard<std::mutex> guard(state_->mu);
  state_->Store(key, bytes);
}

void MemoryStore::Erase(const std::string& key) {
  std::lock_guard<std::mutex> guard(state_->mu);
  state_->Change(key, nullptr);
}

size_t MemoryStore::uploads() const {
  std::lock_guard<std::mutex> guard(state_->mu);
  return state_->uploads.size();
}

}  // namespace sstferry
