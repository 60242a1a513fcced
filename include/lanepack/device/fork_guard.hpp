#pragma once

/// @file
/// Tells an object that lives on threads that it is in a forked child, where those are missing.

#include <string>

#include <unistd.h>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>

namespace lanepack::inline LANEPACK_ABI {

namespace detail {

/// Remembers the process that made it.
///
/// A child has copies of locks that nobody will ever open, so owners ask before they touch one, and
/// let go of what they own without destroying it.
class fork_guard {
 public:
  [[nodiscard]] bool in_child() const noexcept { return ::getpid() != owner_; }

  /// @throws  state_error in a forked child.
  void check(const char* who) const {
    if (in_child()) refuse(who);
  }

 private:
  [[noreturn]] LANEPACK_COLD void refuse(const char* who) const {
    throw_state_error(std::string(who) + ": made by process " + std::to_string(owner_) +
                      " and used in process " + std::to_string(::getpid()) +
                      ", expected one made after the fork");
  }

  pid_t owner_ = ::getpid();
};

}  // namespace detail

}  // namespace lanepack::inline LANEPACK_ABI
