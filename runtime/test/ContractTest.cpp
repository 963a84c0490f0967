//===- ContractTest.cpp - Products by letters, shared values --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// contract against a loop over all letters, in whole numbers so that sums are
/// exact; values give their block back once, with their last share.
///
//===----------------------------------------------------------------------===//

#include "parc/contract.h"
#include "TestWorld.h"
#include "parc/value.h"

#include <map>

using namespace parc;
using namespace parc::test;

namespace {

using Sizes = std::map<char, int64_t>;

std::vector<int64_t> shapeOf(const std::string &dims, const Sizes &sizes) {
  std::vector<int64_t> shape;
  for (char letter : dims)
    shape.push_back(sizes.at(letter));
  return shape;
}

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Row-major place of the element that the letters' values name.
int64_t placeOf(const std::string &dims, const Sizes &sizes, const Sizes &at) {
  int64_t place = 0;
  for (char letter : dims)
    place = place * sizes.at(letter) + at.at(letter);
  return place;
}

std::vector<double> numbers(int64_t count, int64_t step) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(double((i * step + 3) % 11) - 5);
  return values;
}

void check(const std::string &c, const std::string &a, const std::string &b,
           const Sizes &sizes, bool accumulate) {
  Status status = runWorld(Backend::host, 1, [&](Rank &r) {
    auto av = numbers(countOf(shapeOf(a, sizes)), 7);
    auto bv = numbers(countOf(shapeOf(b, sizes)), 5);
    auto cv = numbers(countOf(shapeOf(c, sizes)), 3);
    std::vector<double> expected(cv.size(), 0.0);
    if (accumulate)
      expected = cv;
    int64_t all = 1;
    for (auto &[letter, size] : sizes)
      all *= size;
    for (int64_t i = 0; i < all; ++i) {
      Sizes at;
      int64_t rest = i;
      for (auto &[letter, size] : sizes) {
        at[letter] = rest % size;
        rest /= size;
      }
      expected[size_t(placeOf(c, sizes, at))] +=
          av[size_t(placeOf(a, sizes, at))] * bv[size_t(placeOf(b, sizes, at))];
    }
    contract(r, View<double>(cv.data(), shapeOf(c, sizes)), c.c_str(),
             View<double>(av.data(), shapeOf(a, sizes)), a.c_str(),
             View<double>(bv.data(), shapeOf(b, sizes)), b.c_str(), accumulate);
    EXPECT_EQ(cv, expected) << a << ", " << b << " -> " << c;
    return r.status();
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Contract, AgreesWithALoop) {
  Sizes sizes = {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 5}, {'e', 6}, {'f', 2}};
  auto only = [&](const std::string &letters) {
    Sizes some;
    for (char letter : letters)
      some[letter] = sizes[letter];
    return some;
  };
  for (bool accumulate : {false, true}) {
    // A linear layer, and its gradients.
    check("abc", "abd", "cd", only("abcd"), accumulate);
    check("abd", "abc", "cd", only("abcd"), accumulate);
    check("cd", "abc", "abd", only("abcd"), accumulate);
    // Grouped attention: scores, context, and the sum over a group's heads.
    check("abcde", "adbcf", "aebf", sizes, accumulate);
    check("adbcf", "abcde", "aebf", sizes, accumulate);
    check("aebf", "abcde", "adbcf", sizes, accumulate);
    // Factors in the other order, rows in another order than memory.
    check("ba", "ca", "bc", only("abc"), accumulate);
  }
}

TEST(Contract, SizesOfOneAndNone) {
  for (int64_t size : {0, 1}) {
    check("abc", "abd", "cd", {{'a', 1}, {'b', 3}, {'c', 2}, {'d', size}},
          false);
    check("abc", "abd", "cd", {{'a', size}, {'b', 3}, {'c', 2}, {'d', 4}},
          true);
  }
}

TEST(Contract, SizesThatDiffer) {
  Status status = runWorld(Backend::host, 1, [&](Rank &r) {
    std::vector<double> v(6);
    contract(r, View<double>(v.data(), {2, 3}), "ab",
             View<double>(v.data(), {2, 3}), "ac",
             View<double>(v.data(), {3, 2}), "bc");
    return r.status();
  });
  EXPECT_NE(status.text().find("contract: sizes do not fit ac, bc -> ab"),
            std::string::npos)
      << status.text();
}

TEST(Value, GivesItsBlockBackWithTheLastShare) {
  Pool pool;
  Store store(pool);
  int64_t sizes[] = {2, 3};
  {
    Value<float> x(AnyValue::make(store, DType::f32, sizes, 2));
    EXPECT_TRUE(x.alone());
    Value<float> y = x.reshape({6});
    EXPECT_FALSE(x.alone());
    x.release();
    EXPECT_TRUE(y.alone());
    EXPECT_GT(pool.inUse(), 0u);
    Value<float> &same = y;
    y = same;
    EXPECT_TRUE(y.alone());
    y = Value<float>();
    EXPECT_EQ(pool.inUse(), 0u);
  }
  // The second of the same size takes what the first gave back.
  size_t before = pool.allocations();
  Value<float> z(AnyValue::make(store, DType::f32, sizes, 2));
  EXPECT_EQ(pool.allocations(), before);
}

} // namespace
