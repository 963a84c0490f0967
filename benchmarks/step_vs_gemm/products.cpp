//===- products.cpp - Records and replays matrix products -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The library's contract under another name, and one that records under its
/// own: the linker takes this one.
///
//===----------------------------------------------------------------------===//

#include "products.h"

#define contract contractOfLibrary
#include "lib/common/Contract.cpp"
#undef contract

#include <cstring>
#include <map>

using namespace parc;

namespace {
struct Product {
  AnyView c, a, b;
  std::string cDims, aDims, bDims;
  bool accumulate;
  std::vector<float> memory[3];
};
bool recording = false;
std::vector<Product> products;
} // namespace

namespace parc {
void contract(Rank &r, const AnyView &c, const char *cDims, const AnyView &a,
              const char *aDims, const AnyView &b, const char *bDims,
              bool accumulate) {
  if (recording)
    products.push_back({c, a, b, cDims, aDims, bDims, accumulate, {}});
  contractOfLibrary(r, c, cDims, a, aDims, b, bDims, accumulate);
}
} // namespace parc

void recordProducts(bool on) {
  recording = on;
  if (on)
    return;
  for (Product &p : products) {
    int number = 0;
    for (AnyView *view : {&p.c, &p.a, &p.b}) {
      std::vector<float> &memory = p.memory[number++];
      memory.resize(size_t(view->size()), 0.5f);
      *view = view->packed(memory.data());
    }
  }
}

int recordedProducts() { return int(products.size()); }

double recordedFlops() {
  double flops = 0;
  for (const Product &p : products) {
    std::map<char, double> sizes;
    for (auto [view, dims] : {std::pair(&p.a, &p.aDims), {&p.b, &p.bDims}})
      for (int d = 0; d < view->rank; ++d)
        sizes[(*dims)[size_t(d)]] = double(view->dims[d]);
    double product = 2;
    for (auto &[letter, size] : sizes)
      product *= size;
    flops += product;
  }
  return flops;
}

void replayProducts(Rank &r) {
  for (Product &p : products)
    contractOfLibrary(r, p.c, p.cDims.c_str(), p.a, p.aDims.c_str(), p.b,
                      p.bDims.c_str(), p.accumulate);
}
