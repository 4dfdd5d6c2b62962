#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/catch.h"

extern char** environ;

namespace sstferry {

Process::Process(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment) {
  int pipes[2][2];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(pipe2(pipes[i], O_CLOEXEC) == 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[i][1], 1 + i);
  }
  std::vector<std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    settings.push_back(*variable);
  }
  for (const auto& [name, value] : environment) {
    settings.push_back(name + "=" + value);
  }
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  for (const std::string& setting : settings) {
    envp.push_back(const_cast<char*>(setting.c_str()));
  }
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const int error = posix_spawn(&pid_, argv[0], &actions, nullptr,
                                argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  for (int i = 0; i < 2; ++i) {
    close(pipes[i][1]);
    streams_[i].fd = pipes[i][0];
    streams_[i].reader = std::thread([this, i] { Read(&streams_[i]); });
  }
  if (error != 0) {
    pid_ = -1;
  }
  REQUIRE(error == 0);
}

Process::~Process() {
  if (pid_ > 0 && !reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (Stream& stream : streams_) {
    if (stream.reader.joinable()) {
      stream.reader.join();
    }
    close(stream.fd);
  }
}

void Process::Read(Stream* stream) {
  char buffer[4096];
  while (true) {
    const ssize_t got = read(stream->fd, buffer, sizeof(buffer));
    std::lock_guard<std::mutex> lock(mu_);
    if (got <= 0) {
      stream->closed = true;
    } else {
      stream->text.append(buffer, static_cast<size_t>(got));
    }
    changed_.notify_all();
    if (got <= 0) {
      return;
    }
  }
}

bool Process::WaitFor(const Stream& stream, const std::string& text,
                      std::chrono::seconds limit) {
  std::unique_lock<std::mutex> lock(mu_);
  const auto found = [&] {
    return stream.text.find(text) != std::string::npos;
  };
  changed_.wait_for(lock, limit, [&] { return found() || stream.closed; });
  return found();
}

bool Process::WaitForOut(const std::string& text, std::chrono::seconds limit) {
  return WaitFor(streams_[0], text, limit);
}

bool Process::WaitForErr(const std::string& text, std::chrono::seconds limit) {
  return WaitFor(streams_[1], text, limit);
}

bool Process::WaitForBytesIn(const std::string& path) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  REQUIRE(fd >= 0);
  pollfd ended{fd, POLLIN, 0};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool found = false;
  do {
    std::error_code error;
    found = std::filesystem::exists(path, error) &&
            !std::filesystem::is_empty(path, error) && !error;
  } while (!found && poll(&ended, 1, 1) == 0 &&
           std::chrono::steady_clock::now() < limit);
  close(fd);
  return found;
}

void Process::Signal(int number) { REQUIRE(kill(pid_, number) == 0); }

int Process::Wait(std::chrono::milliseconds limit) {
  if (reaped_) {
    return exit_code_;
  }
  // The descriptor of a process becomes readable when the process ends.
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  REQUIRE(fd >= 0);
  pollfd ended{fd, POLLIN, 0};
  const int ready = poll(&ended, 1, static_cast<int>(limit.count()));
  close(fd);
  if (ready <= 0) {
    return -1;
  }
  int status = 0;
  REQUIRE(waitpid(pid_, &status, 0) == pid_);
  reaped_ = true;
  exit_code_ =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (Stream& stream : streams_) {
    stream.reader.join();
  }
  return exit_code_;
}

std::string Process::out() const {
  std::lock_guard<std::mutex> lock(mu_);
  return streams_[0].text;
}

std::string Process::err() const {
  std::lock_guard<std::mutex> lock(mu_);
  return streams_[1].text;
}

std::vector<std::string> Sstferry(std::vector<std::string> arguments) {
  const char* binary = std::getenv("SSTFERRY_TEST_BINARY");
  arguments.insert(arguments.begin(),
                   binary != nullptr ? binary : SSTFERRY_BINARY);
  return arguments;
}

std::string OutputOf(const std::vector<std::string>& arguments, int code) {
  Process process(Sstferry(arguments));
  const int ended = process.Wait();
  INFO(process.out() << process.err());
  REQUIRE(ended == code);
  return process.out();
}

std::vector<std::string> CaseOfThisProgram(const std::string& name) {
  return {"/proc/self/exe", name};
}

}  // namespace sstferry
