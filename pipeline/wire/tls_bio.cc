#include "pipeline/wire/tls_bio.h"

#include <cerrno>

namespace sstferry {
namespace {

int ReadSocket(BIO* bio, char* buffer, int capacity) {
  auto* const io = static_cast<SocketIo*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  int error = 0;
  const size_t got =
      io->socket->ReadSome(buffer, static_cast<size_t>(capacity), &error);
  if (error == EAGAIN) {
    BIO_set_retry_read(bio);
    return -1;
  }
  io->error = error;
  io->ended = error == 0 && got == 0;
  return error == 0 ? static_cast<int>(got) : -1;
}

int WriteSocket(BIO* bio, const char* data, int bytes) {
  auto* const io = static_cast<SocketIo*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  int error = 0;
  const iovec part = {const_cast<char*>(data), static_cast<size_t>(bytes)};
  const size_t written =
      io->socket->WriteSome(&part, 1, io->more_follows, &error);
  if (error == 0) {
    return static_cast<int>(written);
  }
  if (error == EAGAIN) {
    BIO_set_retry_write(bio);
  } else {
    io->error = error;
  }
  return -1;
}

long ControlSocket(BIO* bio, int command, long number, void* pointer) {
  if (command == BIO_CTRL_EOF) {
    return static_cast<SocketIo*>(BIO_get_data(bio))->ended ? 1 : 0;
  }
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* SocketMethod() {
  // This object is never deleted, because connections may be used after static
  // objects are destroyed.
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* const method = BIO_meth_new(
        BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sstferry socket");
    if (method != nullptr) {
      BIO_meth_set_read(method, ReadSocket);
      BIO_meth_set_write(method, WriteSocket);
      BIO_meth_set_ctrl(method, ControlSocket);
    }
    return method;
  }();
  return made;
}

}  // namespace

BIO* NewSocketBio(SocketIo* io) {
  const BIO_METHOD* const method = SocketMethod();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio != nullptr) {
    BIO_set_data(bio, io);
    BIO_set_init(bio, 1);
  }
  return bio;
}

}  // namespace sstferry
