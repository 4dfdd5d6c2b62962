// The design that this project replaces, as a separate program:
//
//   N range iterators -> one bounded queue -> one sender -> one TCP socket
//     -> one receiver -> one bounded queue -> one writer, a Put per pair
//
//   bench_put_baseline source --db DIR --listen 127.0.0.1:0
//   bench_put_baseline target --dir DIR --connect HOST:PORT --lanes 4
//
// As in the original, every pair is copied into its own strings, is one item of
// a queue, and is one message on the wire and one Put without WAL. There is
// one socket and one writer, however many readers there are, and a flush at the
// end. The message has the original's format (two lengths, key, value, read
// with two recv calls), but is sent with one call instead of two, which favours
// the baseline. The end marker differs: the original's is an empty key, and its
// queue lets the marker overtake data. Because a contender must arrive
// complete, here the end is a length that no key can have, followed by the
// count, and both sides must agree on the count.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/support/database.h"
#include "benchmarks/support/flags.h"
#include "benchmarks/support/net.h"
#include "benchmarks/support/report.h"
#include "pipeline/base/rocksdb_compat.h"
#include "rocksdb/db.h"

namespace sstferry::bench {
namespace {

using rocksdb::Status;

constexpr size_t kQueuePairs = 8192;
constexpr uint32_t kEndOfStream = 0xffffffffu;
constexpr uint32_t kMaxFieldBytes = 1u << 30;

struct Pair {
  std::string key;
  std::string value;
};

// Passes pairs from many threads to one. Push waits while the queue is full,
// and returns false after Abandon(). Pop takes all pairs, and returns false at
// the end.
class PairQueue {
 public:
  bool Push(Pair&& pair) {
    std::unique_lock<std::mutex> lock(mutex_);
    not_full_.wait(lock,
                   [&] { return pairs_.size() < kQueuePairs || abandoned_; });
    if (abandoned_) return false;
    pairs_.push_back(std::move(pair));
    if (pairs_.size() == 1) not_empty_.notify_one();
    return true;
  }
  bool Pop(std::vector<Pair>* pairs) {
    pairs->clear();
    std::unique_lock<std::mutex> lock(mutex_);
    not_empty_.wait(lock, [&] { return !pairs_.empty() || ended_; });
    pairs->swap(pairs_);
    not_full_.notify_all();
    return !pairs->empty();
  }
  // Called after the last Push.
  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    not_empty_.notify_all();
  }
  // Called after the last Pop.
  void Abandon() {
    std::lock_guard<std::mutex> lock(mutex_);
    abandoned_ = true;
    not_full_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::vector<Pair> pairs_;
  bool ended_ = false;
  bool abandoned_ = false;
};

Status ReadPart(rocksdb::DB* db, const KeyRange& part, PairQueue* queue) {
  const rocksdb::Slice upper_bound(part.end);
  const auto it = NewRangeIterator(db, part, &upper_bound);
  for (; it->Valid(); it->Next()) {
    if (!queue->Push({it->key().ToString(), it->value().ToString()})) break;
  }
  return it->status();
}

Status SendPair(const Pair& pair, std::string* message, Socket* socket) {
  const uint32_t lengths[2] = {static_cast<uint32_t>(pair.key.size()),
                               static_cast<uint32_t>(pair.value.size())};
  message->assign(reinterpret_cast<const char*>(lengths), sizeof(lengths));
  message->append(pair.key);
  message->append(pair.value);
  return socket->SendAll(message->data(), message->size());
}

Status SendQueue(PairQueue* queue, Socket* socket, uint64_t* sent) {
  std::vector<Pair> pairs;
  std::string message;
  while (queue->Pop(&pairs)) {
    for (const Pair& pair : pairs) {
      const Status s = SendPair(pair, &message, socket);
      if (!s.ok()) return s;
      ++*sent;
    }
  }
  return Status::OK();
}

// Sends the count and requires the same one as the answer.
Status ReconcileAsSource(uint64_t sent, Socket* socket) {
  const uint32_t end[2] = {kEndOfStream, 0};
  Status s = socket->SendAll(end, sizeof(end));
  if (s.ok()) s = socket->SendAll(&sent, sizeof(sent));
  uint64_t written = 0;
  if (s.ok()) s = socket->ReceiveAll(&written, sizeof(written));
  if (s.ok() && written != sent) {
    s = Status::Corruption("sent " + std::to_string(sent) + ", written " +
                           std::to_string(written));
  }
  return s;
}

Status RunSource(const std::string& dir, const std::string& listen,
                 uint64_t* sent) {
  Socket listener, socket;
  Status s = Listen(listen, &listener);
  if (s.ok()) s = Accept(listener, &socket);
  uint32_t lanes = 0;
  if (s.ok()) s = socket.ReceiveAll(&lanes, sizeof(lanes));
  std::unique_ptr<rocksdb::DB> db;
  if (s.ok()) s = OpenReadOnly(dir, &db);
  if (!s.ok()) return s;
  const std::vector<KeyRange> parts = SplitByFiles(db.get(), lanes);
  PairQueue queue;
  std::vector<Status> read(parts.size());
  std::vector<std::thread> readers;
  std::atomic<size_t> running{parts.size()};
  for (size_t i = 0; i < parts.size(); ++i) {
    readers.emplace_back([&, i] {
      read[i] = ReadPart(db.get(), parts[i], &queue);
      if (--running == 0) queue.End();
    });
  }
  s = SendQueue(&queue, &socket, sent);
  queue.Abandon();
  for (std::thread& reader : readers) reader.join();
  for (const Status& one : read) {
    if (s.ok()) s = one;
  }
  return s.ok() ? ReconcileAsSource(*sent, &socket) : s;
}

Status ReceivePairs(Socket* socket, PairQueue* queue, uint64_t* announced) {
  while (true) {
    uint32_t lengths[2];
    Status s = socket->ReceiveAll(lengths, sizeof(lengths));
    if (!s.ok()) return s;
    if (lengths[0] == kEndOfStream) {
      return socket->ReceiveAll(announced, sizeof(*announced));
    }
    if (lengths[0] > kMaxFieldBytes || lengths[1] > kMaxFieldBytes) {
      return Status::Corruption("a length beyond 1 GiB");
    }
    std::string body(size_t{lengths[0]} + lengths[1], '\0');
    s = socket->ReceiveAll(body.data(), body.size());
    if (!s.ok()) return s;
    if (!queue->Push({body.substr(0, lengths[0]), body.substr(lengths[0])})) {
      return Status::Aborted("the writer stopped");
    }
  }
}

Status WriteQueue(PairQueue* queue, rocksdb::DB* db, uint64_t* written) {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  std::vector<Pair> pairs;
  while (queue->Pop(&pairs)) {
    for (const Pair& pair : pairs) {
      const Status s = db->Put(options, pair.key, pair.value);
      if (!s.ok()) {
        queue->Abandon();
        return s;
      }
      ++*written;
    }
  }
  return Status::OK();
}

Status RunTarget(const std::string& dir, const std::string& connect,
                 uint32_t lanes, uint64_t* written) {
  std::unique_ptr<rocksdb::DB> db;
  Status s = rocksdb::DB::Open(DatabaseOptions(), dir, IntoDb(&db));
  if (!s.ok()) return s;
  rocksdb::DB* const raw = db.get();
  Socket socket;
  s = Connect(connect, &socket);
  if (s.ok()) s = socket.SendAll(&lanes, sizeof(lanes));
  if (!s.ok()) return s;
  PairQueue queue;
  Status write;
  std::thread writer([&] { write = WriteQueue(&queue, raw, written); });
  uint64_t announced = 0;
  s = ReceivePairs(&socket, &queue, &announced);
  queue.End();
  writer.join();
  if (!write.ok()) return write;
  if (s.ok()) s = db->Flush(rocksdb::FlushOptions());
  if (s.ok()) s = socket.SendAll(written, sizeof(*written));
  if (s.ok() && announced != *written) {
    s = Status::Corruption("announced " + std::to_string(announced) +
                           ", written " + std::to_string(*written));
  }
  const Status closed = db->Close();
  return s.ok() ? closed : s;
}

}  // namespace
}  // namespace sstferry::bench

int main(int argc, char** argv) {
  using namespace sstferry::bench;
  Flags flags(argc, argv);
  uint64_t entries = 0;
  rocksdb::Status s;
  Stopwatch watch;
  if (flags.role() == "source") {
    const std::string db = flags.Required("db");
    const std::string listen = flags.Text("listen", "127.0.0.1:0");
    flags.Done();
    s = RunSource(db, listen, &entries);
  } else if (flags.role() == "target") {
    const std::string dir = flags.Required("dir");
    const std::string connect = flags.Required("connect");
    const auto lanes = static_cast<uint32_t>(flags.Number("lanes", 4));
    flags.Done();
    s = RunTarget(dir, connect, lanes, &entries);
  } else {
    WrongUsage("the first argument is source or target");
  }
  Report report;
  report.Add("entries", entries);
  report.Add("seconds", watch.Seconds());
  return report.Finish(s);
}
