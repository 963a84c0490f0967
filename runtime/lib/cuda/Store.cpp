//===- Store.cpp - Key-value store for start-up ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A request is one connection: an operation byte, two lengths, the bytes. The
/// server keeps the connection of a get open until the key is set.
///
//===----------------------------------------------------------------------===//

#include "Store.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace parc {
namespace cuda {

Store::~Store() = default;

namespace {

Status missing(const std::string &key, double seconds) {
  return Status(Code::Timeout,
                "communicator " + key + ": its first member did not come in " +
                    std::to_string(seconds) + " s",
                "start as many processes as the mesh has ranks");
}

class LocalStore : public Store {
public:
  Status set(const std::string &key, const std::string &value) override {
    std::lock_guard<std::mutex> lock(mutex);
    values[key] = value;
    changed.notify_all();
    return Status();
  }
  Status get(const std::string &key, std::string &value,
             double seconds) override {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::duration<double>(seconds),
                          [&] { return values.count(key) != 0; }))
      return missing(key, seconds);
    value = values[key];
    return Status();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

bool sendAll(int fd, const void *data, size_t n) {
  const char *p = static_cast<const char *>(data);
  while (n > 0) {
    ssize_t k = ::send(fd, p, n, MSG_NOSIGNAL);
    if (k <= 0)
      return false;
    p += k;
    n -= size_t(k);
  }
  return true;
}

bool receiveAll(int fd, void *data, size_t n) {
  char *p = static_cast<char *>(data);
  while (n > 0) {
    ssize_t k = ::recv(fd, p, n, 0);
    if (k <= 0)
      return false;
    p += k;
    n -= size_t(k);
  }
  return true;
}

bool sendText(int fd, const std::string &text) {
  uint32_t n = uint32_t(text.size());
  return sendAll(fd, &n, 4) && sendAll(fd, text.data(), n);
}

bool receiveText(int fd, std::string &text) {
  uint32_t n = 0;
  if (!receiveAll(fd, &n, 4) || n > (1u << 20)) // no honest text is longer
    return false;
  text.resize(n);
  return receiveAll(fd, &text[0], n);
}

void limitReceive(int fd, double seconds) {
  timeval t = {time_t(seconds), 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

class TcpStore : public Store {
public:
  TcpStore(std::string host, int port) : host(std::move(host)), port(port) {}
  ~TcpStore() override {
    if (listener < 0)
      return;
    ::shutdown(listener, SHUT_RDWR);
    server.join();
    ::close(listener);
  }

  Status listen() {
    // IPv6 takes IPv4 as well; some machines have only the latter.
    if (!listenOn(AF_INET6) && !listenOn(AF_INET))
      return failed("listen");
    server = std::thread([this] { serve(); });
    return Status();
  }

  Status set(const std::string &key, const std::string &value) override {
    int fd = -1;
    PARC_TRY(connect(fd));
    char reply = 0;
    bool good = sendAll(fd, "s", 1) && sendText(fd, key) &&
                sendText(fd, value) && receiveAll(fd, &reply, 1);
    ::close(fd);
    return good ? Status() : failed("set");
  }
  Status get(const std::string &key, std::string &value,
             double seconds) override {
    int fd = -1;
    PARC_TRY(connect(fd));
    limitReceive(fd, seconds + 1);
    bool good = sendAll(fd, "g", 1) && sendText(fd, key) && sendText(fd, "") &&
                receiveText(fd, value);
    ::close(fd);
    return good ? Status() : missing(key, seconds);
  }

private:
  bool listenOn(int family) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    int one = 1, zero = 0;
    if (getaddrinfo(nullptr, std::to_string(port).c_str(), &hints, &found) != 0)
      return false;
    int fd = ::socket(family, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    bool good = fd >= 0 && ::bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                ::listen(fd, 1024) == 0;
    freeaddrinfo(found);
    if (good)
      listener = fd;
    else if (fd >= 0)
      ::close(fd);
    return good;
  }
  Status failed(const char *what) const {
    return Status(Code::IoError,
                  std::string(what) + " at " + host + ":" +
                      std::to_string(port) + ": " + strerror(errno),
                  "set MASTER_ADDR to rank 0's host and PARC_PORT to a free "
                  "port, the same for all processes");
  }

  /// Rank 0 may start later than others: tries for a minute.
  Status connect(int &out) const {
    for (int attempt = 0; attempt < 600; ++attempt) {
      addrinfo hints = {}, *found = nullptr;
      hints.ai_socktype = SOCK_STREAM;
      if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints,
                      &found) == 0) {
        for (addrinfo *a = found; a; a = a->ai_next) {
          int fd = ::socket(a->ai_family, SOCK_STREAM, 0);
          if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            freeaddrinfo(found);
            out = fd;
            return Status();
          }
          if (fd >= 0)
            ::close(fd);
        }
        freeaddrinfo(found);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return failed("connect");
  }

  void serve() {
    std::map<std::string, std::string> values;
    std::map<std::string, std::vector<int>> waiting;
    for (;;) {
      int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
        continue;
      if (fd < 0)
        break; // the destructor shut the listener down
      limitReceive(fd, 5);
      char op = 0;
      std::string key, value;
      bool good = receiveAll(fd, &op, 1) && receiveText(fd, key) &&
                  receiveText(fd, value);
      if (good && op == 'g' && !values.count(key)) {
        waiting[key].push_back(fd);
        continue;
      }
      if (good && op == 'g') {
        sendText(fd, values[key]);
      } else if (good && op == 's') {
        values[key] = value;
        for (int other : waiting[key]) {
          sendText(other, value);
          ::close(other);
        }
        waiting.erase(key);
        sendAll(fd, "k", 1);
      }
      ::close(fd);
    }
    for (auto &[key, sockets] : waiting)
      for (int fd : sockets)
        ::close(fd);
  }

  std::string host;
  int port;
  int listener = -1;
  std::thread server;
};

} // namespace

std::unique_ptr<Store> makeLocalStore() {
  return std::make_unique<LocalStore>();
}

Status makeTcpStore(const std::string &host, int port, bool server,
                    std::unique_ptr<Store> &out) {
  auto store = std::make_unique<TcpStore>(host, port);
  if (server)
    PARC_TRY(store->listen());
  out = std::move(store);
  return Status();
}

} // namespace cuda
} // namespace parc
