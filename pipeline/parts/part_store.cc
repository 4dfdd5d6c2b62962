#include "pipeline/parts/part_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <utility>

#include "pipeline/base/start_thread.h"
#include "pipeline/parts/unit_sender.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Number of chunks that a builder builds ahead of its fastest reader.
constexpr uint64_t kAhead = 2;
// Maximum time between two calls of PartRead::cancelled_in_wait while a lane
// waits for a builder.
constexpr std::chrono::milliseconds kLook{200};
constexpr size_t kReadBytes = 512u << 10;

int OpenNameless(const std::string& directory) {
  const int file =
      OpenLinked(directory, O_TMPFILE | O_RDWR, 0600).Release();
  if (file >= 0) {
    return file;
  }
  std::string name = directory + "/chunk-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) {
    unlink(name.c_str());
  }
  return named;
}

}  // namespace

bool SpoolBudget::HasRoomLocked(uint64_t bytes) const {
  return files_ < max_files_ && bytes_ + bytes <= max_bytes_;
}

bool SpoolBudget::HasRoom(uint64_t bytes) const {
  std::lock_guard<std::mutex> lock(mu_);
  return HasRoomLocked(bytes);
}

bool SpoolBudget::LacksFiles() const {
  std::lock_guard<std::mutex> lock(mu_);
  return files_ >= max_files_;
}

bool SpoolBudget::Reserve(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  const bool has_room = HasRoomLocked(bytes);
  if (has_room) {
    bytes_ += bytes;
    ++files_;
  }
  return has_room;
}

void SpoolBudget::Change(int64_t bytes, int64_t files) {
  std::lock_guard<std::mutex> lock(mu_);
  bytes_ += static_cast<uint64_t>(bytes);
  files_ += static_cast<uint64_t>(files);
}

uint64_t SpoolBudget::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return bytes_;
}

uint64_t SpoolBudget::files() const {
  std::lock_guard<std::mutex> lock(mu_);
  return files_;
}

void SpoolBudget::Join(PartStore* store) {
  std::lock_guard<std::mutex> lock(stores_mu_);
  stores_.push_back(store);
}

void SpoolBudget::Leave(PartStore* store) {
  std::lock_guard<std::mutex> lock(stores_mu_);
  stores_.erase(std::find(stores_.begin(), stores_.end(), store));
}

// Skips a store whose mu_ is locked. The thread that holds this mu_ may be
// waiting for stores_mu_, so waiting for mu_ could deadlock.
bool SpoolBudget::FreeElsewhere(const PartStore* wanting, uint64_t bytes) {
  const bool by_files = LacksFiles();
  const auto has = [by_files](const PartStore* store) {
    return by_files ? store->files() : store->bytes();
  };
  const uint64_t wants = has(wanting) + (by_files ? 1 : bytes);
  std::lock_guard<std::mutex> lock(stores_mu_);
  // Reads each number once, because other threads change it during the sort.
  std::vector<std::pair<uint64_t, PartStore*>> larger;
  for (PartStore* store : stores_) {
    const uint64_t number = has(store);
    if (store != wanting && number >= wants) {
      larger.emplace_back(number, store);
    }
  }
  std::sort(larger.begin(), larger.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  for (const auto& [number, store] : larger) {
    const std::unique_lock<std::mutex> of_store(store->mu_, std::try_to_lock);
    if (of_store.owns_lock() && store->FreeOldest()) {
      return true;
    }
  }
  return false;
}

// The file of one chunk in a spool. If the disk is full, keeps the rest of the
// chunk in memory, unless it is too large. A chunk of which lanes have already
// sent the start can then be completed. Threads: one appends; any thread may
// read.
class PartStore::File {
 public:
  using Piece = std::shared_ptr<const std::string>;

  // REQUIRES: the budget already counts one file and `reserved` bytes.
  File(int file, uint64_t reserved, std::shared_ptr<SpoolBudget> budget,
       std::shared_ptr<Usage> usage)
      : file_(file),
        budget_(std::move(budget)),
        usage_(std::move(usage)),
        counted_(reserved) {
    ++usage_->files;
  }
  ~File() {
    usage_->bytes -= bytes_;
    --usage_->files;
    budget_->Change(-static_cast<int64_t>(counted_), -1);
  }

  // Appends bytes to the file. Keeps the last `newest_bytes` bytes in memory,
  // too. Returns false if the disk is full and more than `max_memory_bytes`
  // bytes would have to stay in memory.
  bool Append(const Slice& data, uint64_t newest_bytes,
              uint64_t max_memory_bytes) {
    Slice rest = data;
    while (!rest.empty() && !in_memory_) {
      const ssize_t done =
          pwrite(file_.get(), rest.data(), rest.size(),
                 static_cast<off_t>(bytes_ + data.size() - rest.size()));
      if (done < 0 && errno == EINTR) {
        continue;
      }
      if (done <= 0) {
        on_disk_ = bytes_ + data.size() - rest.size();
        break;
      }
      rest.remove_prefix(static_cast<size_t>(done));
    }
    Piece piece = std::make_shared<const std::string>(data.ToString());
    std::lock_guard<std::mutex> lock(mu_);
    if (memory_.size() + rest.size() > max_memory_bytes) {
      return false;
    }
    if (!rest.empty()) {
      in_memory_ = true;
      memory_.append(rest.data(), rest.size());
    }
    newest_.push_back(std::move(piece));
    kept_bytes_ += data.size();
    while (kept_bytes_ > newest_bytes) {
      kept_bytes_ -= newest_.front()->size();
      newest_.pop_front();
    }
    bytes_ += data.size();
    usage_->bytes += data.size();
    if (bytes_ > counted_) {
      Count(bytes_);
    }
    return true;
  }
  // Gives unneeded reserved bytes back to the budget. REQUIRES: the last byte
  // was appended.
  void Settle() { Count(bytes_); }
  // Drops the newest bytes from memory. The builder calls this function when it
  // begins its next chunk or ends.
  void DropNewest() {
    std::lock_guard<std::mutex> lock(mu_);
    newest_.clear();
    kept_bytes_ = 0;
  }

  uint64_t bytes() const { return bytes_; }
  bool disk_failed() const { return in_memory_; }

  // Returns the piece in memory that contains the byte at offset `at`, and sets
  // *begin to the offset of the piece. Returns null if the piece is no longer
  // in memory.
  Piece Newest(uint64_t at, uint64_t* begin) const {
    std::lock_guard<std::mutex> lock(mu_);
    *begin = bytes_;
    for (auto piece = newest_.rbegin(); piece != newest_.rend(); ++piece) {
      *begin -= (*piece)->size();
      if (*begin <= at) {
        return *piece;
      }
    }
    return nullptr;
  }

  Status Read(uint64_t at, size_t size, std::string* out) const {
    if (in_memory_) {
      std::lock_guard<std::mutex> lock(mu_);
      if (at >= on_disk_) {
        out->assign(memory_, at - on_disk_, size);
        return Status::OK();
      }
      size = std::min<uint64_t>(size, on_disk_ - at);
    }
    out->resize(size);
    const ssize_t done =
        pread(file_.get(), out->data(), size, static_cast<off_t>(at));
    out->resize(static_cast<size_t>(std::max<ssize_t>(done, 0)));
    return done > 0 ? Status::OK()
                    : ErrnoStatus(EndState::kSourceError, "cannot read",
                                  "a spooled chunk", done < 0 ? errno
                                                                     : EIO);
  }

 private:
  void Count(uint64_t bytes) {
    budget_->Change(static_cast<int64_t>(bytes) -
                        static_cast<int64_t>(counted_),
                    0);
    counted_ = bytes;
  }

  const Descriptor file_;
  const std::shared_ptr<SpoolBudget> budget_;
  const std::shared_ptr<Usage> usage_;
  uint64_t counted_;  // bytes counted in budget_
  std::atomic<uint64_t> bytes_{0};  // changed under mu_
  mutable std::mutex mu_;
  std::deque<Piece> newest_;   // under mu_; the pieces just before bytes_
  uint64_t kept_bytes_ = 0;    // under mu_; bytes in `newest_`
  std::atomic<bool> in_memory_{false};  // memory_ has the rest
  uint64_t on_disk_ = 0;
  std::string memory_;  // under mu_
};

// One chunk in a spool. REQUIRES for every access: the store's mu_ is locked,
// except for functions of `file`, which has its own lock.
struct PartStore::Chunk {
  ChunkBegin begin;
  std::optional<std::string> after;  // PartRequest::after of requests for it
  std::shared_ptr<File> file;
  uint64_t bytes = 0;      // bytes that lanes can read
  std::optional<ChunkEnd> end;  // set when the chunk is complete
  // An error if the builder ended in the middle of the chunk. No other builder
  // will continue the chunk.
  Status abandoned;
  int readers = 0;
  uint64_t used = 0;
};

// One part: its chunks in order, and the state of its builder. REQUIRES for
// every access: the store's mu_ is locked.
struct PartStore::Spool {
  std::map<uint64_t, ChunkPtr> chunks;  // by ordinal
  bool builds = false;   // a builder is running
  bool gives_up = false; // no lane reads: it will end
  uint64_t next_ordinal = 0;            // of the builder's next chunk
  std::optional<std::string> next_after;
  // True if a builder has reached the end of the part: the part has no entry
  // after next_after.
  bool ended = false;
  Status failed;                        // error that ended the builder
  std::list<uint64_t> readers;          // next chunk of each lane
  // Notified when a member of this struct or of a chunk changes.
  std::condition_variable changed;
  std::thread thread;

  // Returns true if the builder will make the requested chunk next. Compares
  // the keys after which both chunks begin, too, because equal ordinals do not
  // prove that the chunks are equal. For example, a target that lost a chunk
  // receives smaller chunks, and its fifth chunk may begin where another
  // target's second chunk begins.
  bool IsNext(const PartRequest& request) const {
    return next_ordinal == request.received.chunks &&
           next_after == request.after;
  }
  bool TooFarAhead(uint64_t ordinal) const {
    const auto furthest = std::max_element(readers.begin(), readers.end());
    return furthest != readers.end() && ordinal > *furthest + kAhead;
  }
};

// Writes the chunks of one part into the part's spool, on a thread of the
// store.
class PartStore::Builder : public ChunkSink {
 public:
  Builder(PartStore* store, Spool* part) : store_(store), part_(part) {}

  void Run(const BuildChunks& build, const PartRequest& from) {
    const Status status =
        build(from, [this] { return IsUnwanted(); }, nullptr, this);
    std::lock_guard<std::mutex> lock(store_->mu_);
    if (chunk_ != nullptr) {
      chunk_->file->DropNewest();
    }
    if (chunk_ != nullptr && !chunk_->end) {
      chunk_->abandoned =
          has_no_room_ ? MakeStatus(EndState::kDeadPeer,
                                    "spool: the source's disk is full, and the "
                                    "chunk is too large to stay in memory")
                       : status;
      part_->chunks.erase(chunk_->begin.ordinal);
    }
    chunk_.reset();  // the last reader frees the space
    if (status.ok()) {
      part_->ended = true;
    } else if (!has_no_room_ && !part_->gives_up) {
      part_->failed = status;
    }
    part_->builds = false;
    --store_->builders_;
    part_->changed.notify_all();
  }

  Status Begin(const ChunkBegin& begin) override {
    std::unique_lock<std::mutex> lock(store_->mu_);
    part_->changed.wait(lock, [this, &begin] {
      return LooksUnwanted() || !part_->TooFarAhead(begin.ordinal);
    });
    if (part_->gives_up) {
      return MakeStatus(EndState::kCancelled,
                        "spool: stopped, because no lane reads the chunk");
    }
    const PartStoreOptions& options = store_->options_;
    const bool has_room = store_->MakeRoom(/*reserve=*/true);
    const int file = has_room ? OpenNameless(options.directory) : -1;
    if (file < 0) {
      if (has_room) {
        options.budget->Change(-static_cast<int64_t>(options.chunk_bytes), -1);
      }
      has_no_room_ = true;
      return MakeStatus(EndState::kNoSpace, "spool: no space left");
    }
    if (chunk_ != nullptr) {
      chunk_->file->DropNewest();
    }
    chunk_ = std::make_shared<Chunk>();
    chunk_->begin = begin;
    chunk_->after = part_->next_after;
    chunk_->file = std::make_shared<File>(file, options.chunk_bytes,
                                          options.budget, store_->usage_);
    part_->chunks[begin.ordinal] = chunk_;
    part_->changed.notify_all();
    return Status::OK();
  }

  Status Append(const Slice& data) override {
    const bool taken = chunk_->file->Append(
        data, store_->options_.newest_bytes,
        store_->options_.max_memory_bytes);
    std::lock_guard<std::mutex> lock(store_->mu_);
    if (!taken) {
      has_no_room_ = true;
      store_->gave_up_ = true;
      return MakeStatus(EndState::kNoSpace, "spool: no space left");
    }
    chunk_->bytes = chunk_->file->bytes();
    part_->changed.notify_all();
    return Status::OK();
  }

  Status End(const ChunkEnd& end) override {
    ++store_->built_;
    store_->options_.budget->CountBuilt();
    chunk_->file->Settle();
    std::lock_guard<std::mutex> lock(store_->mu_);
    chunk_->end = end;
    chunk_->used = ++store_->uses_;
    has_no_room_ = chunk_->file->disk_failed();
    part_->next_ordinal = uint64_t{end.ordinal} + 1;
    part_->next_after = end.largest;
    part_->changed.notify_all();
    return has_no_room_ ? MakeStatus(EndState::kNoSpace,
                                     "spool: the disk is full")
                        : Status::OK();
  }

 private:
  bool IsUnwanted() {
    std::lock_guard<std::mutex> lock(store_->mu_);
    return LooksUnwanted();
  }
  // Returns true if the builder should end: no lane reads the part, or the
  // store is being destroyed. Then also sets gives_up, so that Join() lets no
  // lane wait for this builder. REQUIRES: the store's mu_ is locked.
  bool LooksUnwanted() {
    part_->gives_up = part_->gives_up || store_->stopping_ ||
                       part_->readers.empty();
    return part_->gives_up;
  }

  PartStore* const store_;
  Spool* const part_;
  ChunkPtr chunk_;
  bool has_no_room_ = false;
};

// Passes chunks that a lane builds for itself to the lane's sink. Stops the
// build before the next chunk if chunks can now be shared.
class PartStore::OwnLane : public ChunkSink {
 public:
  // If `stops` is true, this sink may stop the build. After each chunk,
  // *request asks for the chunks that follow.
  OwnLane(PartStore* store, bool stops, PartRequest* request, ChunkSink* sink)
      : store_(store), stops_(stops), request_(request), sink_(sink) {}

  Status Begin(const ChunkBegin& begin) override {
    stopped_ = stops_ && store_->is_shared();
    return stopped_ ? MakeStatus(EndState::kCancelled,
                                 "build: stopped for this lane alone, because "
                                 "other targets need the part, too")
                    : sink_->Begin(begin);
  }
  Status Append(const Slice& data) override { return sink_->Append(data); }
  Status End(const ChunkEnd& end) override {
    store_->options_.budget->CountBuilt();
    request_->received.chunks = uint64_t{end.ordinal} + 1;
    request_->after = end.largest;
    return sink_->End(end);
  }
  bool stopped() const { return stopped_; }

 private:
  PartStore* const store_;
  const bool stops_;
  PartRequest* const request_;
  ChunkSink* const sink_;
  bool stopped_ = false;
};

PartStore::PartStore(PartStoreOptions options)
    : options_(std::move(options)),
      usage_(std::make_shared<Usage>()) {
  options_.budget->Join(this);
}

PartStore::~PartStore() {
  options_.budget->Leave(this);
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  for (auto& item : parts_) {
    item.second->changed.notify_all();
    if (item.second->thread.joinable()) {
      item.second->thread.join();
    }
  }
}

// Removes chunks of other stores first if they use more room. Otherwise the
// many chunks of one plan could prevent another plan's targets from sharing
// chunks.
bool PartStore::MakeRoom(bool reserve) {
  const uint64_t bytes = options_.chunk_bytes;
  if (gave_up_ || bytes > options_.budget->max_bytes() ||
      (options_.free_bytes && options_.free_bytes() < 2 * bytes)) {
    return false;
  }
  while (!(reserve ? options_.budget->Reserve(bytes)
                   : options_.budget->HasRoom(bytes))) {
    if (!options_.budget->FreeElsewhere(this, bytes) && !FreeOldest()) {
      return false;
    }
  }
  return true;
}

bool PartStore::FreeOldest() {
  Spool* of = nullptr;
  ChunkPtr oldest;
  for (auto& item : parts_) {
    for (auto& [ordinal, chunk] : item.second->chunks) {
      if (chunk->end && chunk->readers == 0 &&
          (oldest == nullptr || chunk->used < oldest->used)) {
        oldest = chunk;
        of = item.second.get();
      }
    }
  }
  if (oldest != nullptr) {
    of->chunks.erase(oldest->begin.ordinal);
  }
  return oldest != nullptr;
}

PartStore::ChunkPtr PartStore::Find(Spool* part,
                                      const PartRequest& request) const {
  const auto found = part->chunks.find(request.received.chunks);
  return found != part->chunks.end() && found->second->after == request.after
             ? found->second
             : nullptr;
}

Status PartStore::Start(const PartRead& read, Spool* part) {
  if (part->thread.joinable()) {
    part->thread.join();  // it has ended: does not block
  }
  part->chunks.erase(part->chunks.lower_bound(read.request.received.chunks),
                      part->chunks.end());
  part->gives_up = false;
  part->failed = Status::OK();
  part->ended = false;
  part->next_ordinal = read.request.received.chunks;
  part->next_after = read.request.after;
  const Status status = StartThread(
      [this, part, build = read.build_for_all, from = read.request] {
        Builder(this, part).Run(build, from);
      },
      &part->thread);
  if (status.ok()) {
    part->builds = true;
    ++builders_;
  }
  return status;
}

// Returns the part's spool if the spool has the requested chunk, or a builder
// makes it. Starts a builder if necessary and possible. Otherwise returns null,
// and the caller must build the chunk itself.
PartStore::Spool* PartStore::Join(const PartRead& read) {
  std::unique_ptr<Spool>& part = parts_[read.request.part_id];
  if (part == nullptr) {
    part = std::make_unique<Spool>();
  }
  const bool has_it =
      Find(part.get(), read.request) != nullptr ||
      (part->IsNext(read.request) && (part->builds || part->ended));
  if (has_it && !part->gives_up) {
    return part.get();
  }
  if (part->builds || builders_ >= options_.max_builders ||
      !MakeRoom(/*reserve=*/false) ||
      !Start(read, part.get()).ok()) {
    return nullptr;
  }
  return part.get();
}

Status PartStore::Send(PartRead read, ChunkSink* sink) {
  if (read.part->kind == PartKind::kUnit) {
    // Send the whole unit if the target claims to have more bytes than the unit
    // has.
    const uint64_t first_byte = read.request.open_bytes;
    return SendUnit(read.unit, *read.part,
                    first_byte <= read.part->bytes ? first_byte : 0,
                    read.cancelled, sink, read.buffer);
  }
  // Do not share chunks with a target that requests another chunk size. A
  // target does so after it has lost a chunk.
  bool may_share = read.build_for_all != nullptr &&
                   read.request.chunk_bytes == 0;
  while (true) {
    if (may_share && is_shared()) {
      may_share = false;  // later chunks are built on this thread
      bool complete = false;
      const Status status = SendSpooled(&read, &complete, sink);
      if (!status.ok() || complete) {
        return status;
      }
    }
    const PartRequest from = read.request;
    OwnLane lane(this, may_share, &read.request, sink);
    const Status status =
        read.build(from, read.cancelled, read.on_progress, &lane);
    if (!lane.stopped()) {
      return status;
    }
  }
}

Status PartStore::SendSpooled(PartRead* read, bool* complete,
                              ChunkSink* sink) {
  *complete = false;
  std::unique_lock<std::mutex> lock(mu_);
  Spool* const part = Join(*read);
  if (part == nullptr) {
    return Status::OK();
  }
  part->readers.push_back(read->request.received.chunks);
  const auto here = std::prev(part->readers.end());
  Status status;
  bool joined_again = false;
  while (true) {
    status = SendNext(read, part, complete, &lock, sink);
    if (!status.ok() || *complete) {
      break;
    }
    if (read->request.received.chunks != *here) {
      *here = read->request.received.chunks;
      joined_again = false;
      part->changed.notify_all();
      continue;
    }
    // The builder has ended before it made this chunk. Try once to start a new
    // builder.
    if (joined_again || Join(*read) == nullptr) {
      break;
    }
    joined_again = true;
  }
  part->readers.erase(here);
  part->changed.notify_all();
  return status;
}

// Waits for the next chunk, and sends it. Sends nothing if the spool does not
// have the chunk and no builder will make it.
Status PartStore::SendNext(PartRead* read, Spool* part, bool* complete,
                           std::unique_lock<std::mutex>* lock,
                           ChunkSink* sink) {
  ChunkPtr chunk;
  const uint64_t ordinal = read->request.received.chunks;
  while (true) {
    chunk = Find(part, read->request);
    *complete = chunk == nullptr && part->ended && part->IsNext(read->request);
    const bool may_come =
        part->builds &&
        (part->next_ordinal < ordinal || part->IsNext(read->request));
    if (chunk != nullptr || *complete || !may_come) {
      break;
    }
    part->changed.wait_for(*lock, kLook);
    if (read->cancelled_in_wait()) {
      return MakeStatus(EndState::kCancelled, "build: stopped on request");
    }
  }
  if (chunk == nullptr) {
    return *complete ? Status::OK() : part->failed;
  }
  chunk->readers++;
  lock->unlock();
  Status status = SendChunk(*read, part, chunk, sink);
  lock->lock();
  chunk->readers--;
  chunk->used = ++uses_;
  if (status.ok()) {
    status = chunk->abandoned;
  }
  if (status.ok()) {
    ++sent_;
    options_.budget->CountSent();
    read->request.received.chunks = ordinal + 1;
    read->request.after = chunk->end->largest;
  }
  return status;
}

Status PartStore::SendChunk(const PartRead& read, Spool* part,
                             const ChunkPtr& chunk, ChunkSink* sink) {
  Status status = sink->Begin(chunk->begin);
  uint64_t at = 0;
  std::string buffer;
  std::optional<ChunkEnd> end;
  while (status.ok() && !end) {
    uint64_t bytes = 0;
    {
      std::unique_lock<std::mutex> lock(mu_);
      while (chunk->bytes <= at && !chunk->end && chunk->abandoned.ok()) {
        part->changed.wait_for(lock, kLook);
        if (read.cancelled_in_wait()) {
          return MakeStatus(EndState::kCancelled, "build: stopped on request");
        }
      }
      bytes = chunk->bytes;
      if (bytes <= at && !chunk->end) {
        return Status::OK();  // the caller checks chunk->abandoned
      }
      if (bytes == at) {
        end = chunk->end;
      }
    }
    while (status.ok() && at < bytes) {
      uint64_t begin = 0;
      const File::Piece newest = chunk->file->Newest(at, &begin);
      Slice piece;
      if (newest != nullptr) {
        piece = Slice(*newest);
        piece.remove_prefix(static_cast<size_t>(at - begin));
      } else {
        status = chunk->file->Read(
            at, static_cast<size_t>(std::min<uint64_t>(bytes - at, kReadBytes)),
            &buffer);
        piece = Slice(buffer);
      }
      if (status.ok()) {
        status = sink->Append(piece);
        at += piece.size();
      }
    }
  }
  if (status.ok()) {
    status = sink->End(*end);
  }
  if (status.ok() && read.on_progress) {
    read.on_progress(end->entries);
  }
  return status;
}

}  // namespace sstferry
