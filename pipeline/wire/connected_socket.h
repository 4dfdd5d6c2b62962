// A connected socket that any thread may close while others wait on it: what
// a plain and an encrypted connection have in common.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <mutex>
#include <string>

#include "pipeline/wire/patience.h"

namespace sstferry {

// A view of the first `count` buffers, as Asio wants a gather list.
struct GatherList {
  const boost::asio::const_buffer* first;
  size_t count;
  const boost::asio::const_buffer* begin() const { return first; }
  const boost::asio::const_buffer* end() const { return first + count; }
  using value_type = boost::asio::const_buffer;
  using const_iterator = const boost::asio::const_buffer*;
};

// Non-blocking calls first; poll(2), through Wait(), only when the kernel has
// nothing to give or no room.
//
// Threads: Close(), closed() and peer() from any thread at any time, all else
//   only inside an Inside that entered().
class ConnectedSocket {
 public:
  // Sets the socket non-blocking, without delay, with keepalive.
  ConnectedSocket(boost::asio::ip::tcp::socket socket,
                  const boost::asio::ip::tcp::endpoint& peer);
  ~ConnectedSocket() { Close(); }
  ConnectedSocket(const ConnectedSocket&) = delete;
  ConnectedSocket& operator=(const ConnectedSocket&) = delete;

  // Keeps the descriptor open while one call is inside.
  class Inside {
   public:
    explicit Inside(ConnectedSocket* socket);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    // False when Close() came first.
    bool entered() const { return entered_; }

   private:
    ConnectedSocket* const socket_;
    bool entered_;
  };

  // Bytes moved; 0 with would_block when there are none or is no room, with
  // eof when the peer has closed.
  size_t ReadSome(char* buffer, size_t capacity,
                  boost::system::error_code* error) {
    return socket_.read_some(boost::asio::buffer(buffer, capacity), *error);
  }
  size_t WriteSome(const GatherList& list, boost::system::error_code* error) {
    return socket_.write_some(list, *error);
  }
  // The same with MSG_MORE: more bytes follow at once.
  size_t WriteSomeOfMore(const char* data, size_t bytes,
                         boost::system::error_code* error);
  // Leaves the bytes where they are.
  size_t Peek(char* buffer, size_t capacity);

  // OK when one of `events` of poll(2) is there, or an error the next call
  // will show; otherwise what to return.
  [[nodiscard]] rocksdb::Status Wait(short events, const char* action,
                                     Patience* patience);
  // Until there is room to write, or *peer_ended: the peer has ended its side
  // and takes nothing more. Nobody here closes one direction and reads on, and
  // a kernel may keep a closed peer's full window, so that no room ever comes.
  [[nodiscard]] rocksdb::Status WaitToWrite(Patience* patience,
                                            bool* peer_ended);
  // What to return when a call failed.
  [[nodiscard]] rocksdb::Status Failed(
      const char* action, const boost::system::error_code& error);
  [[nodiscard]] rocksdb::Status ClosedStatus() const;

  // Wakes who is inside and tells the peer that no more will come.
  void Close();
  bool closed();
  const std::string& peer() const { return peer_; }

 private:
  void ReleaseIfUnused();  // under mu_

  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;

  std::mutex mu_;
  int calls_inside_ = 0;  // under mu_
  bool closed_ = false;   // under mu_
};

}  // namespace sstferry
