// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: what a function returns that can be expected to fail (a file, a vendor library).
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace gpudiag {

/// What was found, where, and what to do about it; for people.
struct Error {
  std::string message;
};

/// A value or the reason why there is none. For failures that are part of ordinary life; a bug is
/// an assertion instead.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_{std::move(value)} {}
  Result(Error error) : content_{std::move(error)} {}

  bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }

  /// Only where ok().
  T& value() { return std::get<T>(content_); }
  const T& value() const { return std::get<T>(content_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Only where not ok().
  const Error& error() const { return std::get<Error>(content_); }

 private:
  std::variant<T, Error> content_;
};

}  // namespace gpudiag
