#include "pipeline/parts/sink_file_system.h"

#include "format/end_state.h"
#include "rocksdb/io_status.h"

namespace sstferry {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Converts a Status to the IOStatus that RocksDB expects. The message keeps the
// end state as its prefix.
IOStatus ToIOStatus(const rocksdb::Status& status) {
  return status.ok() ? IOStatus::OK()
                     : rocksdb::status_to_io_status(rocksdb::Status(status));
}

class SinkFile : public FSWritableFile {
 public:
  explicit SinkFile(ChunkSink* sink) : sink_(sink) {}

  IOStatus Append(const Slice& data, const IOOptions&,
                  IODebugContext*) override {
    size_ += data.size();
    return ToIOStatus(sink_->Append(data));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&,
                  IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return size_;
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  ChunkSink* const sink_;
  uint64_t size_ = 0;
};

class SinkFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit SinkFileSystem(ChunkSink* sink)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), sink_(sink) {}

  const char* Name() const override { return "sstferry.SinkFileSystem"; }

  IOStatus NewWritableFile(const std::string&, const FileOptions&,
                           std::unique_ptr<FSWritableFile>* file,
                           IODebugContext*) override {
    *file = std::make_unique<SinkFile>(sink_);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string&, const IOOptions&,
                      IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string&,
                      const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("rename on a sink", from);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>*,
                               IODebugContext*) override {
    return IOStatus::NotSupported("read from a sink", name);
  }
  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>*,
                             IODebugContext*) override {
    return IOStatus::NotSupported("read from a sink", name);
  }

 private:
  ChunkSink* const sink_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> MakeSinkFileSystem(ChunkSink* sink) {
  return std::make_shared<SinkFileSystem>(sink);
}

}  // namespace sstferry
