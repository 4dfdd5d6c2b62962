#include "pipeline/follow/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace sstferry {

DirectoryWatch::DirectoryWatch()
    : inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

void DirectoryWatch::Add(const std::string& directory) {
  if (inotify_.is_open() &&
      inotify_add_watch(inotify_.get(), directory.c_str(),
                        IN_MODIFY | IN_CREATE | IN_MOVED_TO) >= 0) {
    ++watched_;
  }
}

bool DirectoryWatch::Wait(std::chrono::milliseconds limit) {
  if (!is_watching()) {
    return true;
  }
  pollfd wanted = {inotify_.get(), POLLIN, 0};
  if (poll(&wanted, 1, static_cast<int>(limit.count())) <= 0) {
    return true;
  }
  alignas(inotify_event) char events[16384];
  bool has_names = false;
  for (;;) {
    const ssize_t bytes = read(inotify_.get(), events, sizeof(events));
    if (bytes <= 0) {
      return has_names;
    }
    for (ssize_t at = 0; at < bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      has_names |= (event->mask & (IN_CREATE | IN_MOVED_TO | IN_Q_OVERFLOW)) != 0;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

}  // namespace sstferry
