//===- FilesTest.cpp - JSON, safetensors and token files ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What readers accept, and the exact reason why they refuse the rest.
///
//===----------------------------------------------------------------------===//

#include "parc/json.h"
#include "parc/safetensors.h"
#include "parc/tokens.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace parc;

namespace {

/// A file in the tests' temporary folder, gone with the object.
struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string &bytes = "") {
    static int number = 0;
    path = ::testing::TempDir() + "parc_files_test_" +
           std::to_string(getpid()) + "_" + std::to_string(number++);
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
};

std::string withHeader(const std::string &json, size_t dataBytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += char(uint64_t(json.size()) >> (8 * i));
  return bytes + json + std::string(dataBytes, '\1');
}

struct Hostile {
  const char *name;
  std::string bytes;
  const char *message; ///< Part of it, after the path.
};

class HostileFiles : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFiles, AreRefusedByName) {
  TemporaryFile file(GetParam().bytes);
  SafetensorsFile reader;
  Status status = reader.open(file.path);
  EXPECT_EQ(status.code(), Code::BadFile);
  EXPECT_EQ(status.message().rfind(file.path + ": ", 0), 0u);
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.text();
  EXPECT_TRUE(reader.tensors().empty());
}

std::string one(const std::string &dtype, const std::string &shape,
                const std::string &offsets, size_t dataBytes = 16) {
  return withHeader("{\"w\":{\"dtype\":" + dtype + ",\"shape\":" + shape +
                        ",\"data_offsets\":" + offsets + "}}",
                    dataBytes);
}

std::string pair(const std::string &a, const std::string &b) {
  return withHeader(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" + a +
          "},\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
          "\"data_offsets\":" +
          b + "}}",
      16);
}

const std::string HugeLength("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
const std::string LongerThanFile("\x40\0\0\0\0\0\0\0{}", 10);

INSTANTIATE_TEST_SUITE_P(
    Headers, HostileFiles,
    ::testing::Values(
        Hostile{"empty", "", "expected a file of at least 8 bytes, got 0"},
        Hostile{"short_length", "abc", "at least 8 bytes, got 3"},
        Hostile{"huge_header", HugeLength,
                "at most 104857600 bytes, got 92233"},
        Hostile{"header_past_end", LongerThanFile,
                "at most 2 bytes, the rest of the file, got 64"},
        Hostile{"no_header", withHeader("", 4),
                "header: at byte 0: expected a "
                "value, got the end"},
        Hostile{"no_json", withHeader("hello", 0), "expected a value, got 'h'"},
        Hostile{"truncated_json", withHeader("{\"w\":{", 0),
                "expected '\"', got the end"},
        Hostile{"trailing_json", withHeader("{} x", 0),
                "expected the end, got 'x'"},
        Hostile{"array", withHeader("[]", 0), "header: expected an object"},
        Hostile{"deep",
                withHeader("{\"w\":" + std::string(100, '[') +
                               std::string(100, ']') + "}",
                           0),
                "nested too deeply"},
        Hostile{"duplicate",
                withHeader("{\"w\":{\"dtype\":\"U8\",\"shape\":[0],"
                           "\"data_offsets\":[0,0]},\"w\":{\"dtype\":\"U8\","
                           "\"shape\":[0],\"data_offsets\":[0,0]}}",
                           0),
                "duplicate name \"w\""},
        Hostile{"duplicate_field",
                withHeader("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0),
                "duplicate name \"dtype\""},
        Hostile{"tensor_no_object", withHeader("{\"w\":3}", 0),
                "tensor \"w\": expected an object"},
        Hostile{"unknown_field", withHeader("{\"w\":{\"dtypo\":1}}", 0),
                "expected dtype, shape and data_offsets, got \"dtypo\""},
        Hostile{
            "unknown_dtype", one("\"F8_E4M3\"", "[4]", "[0,16]"),
            "tensor \"w\": expected a dtype among F64, F32, F16, BF16, I64, "
            "I32, U16, U8, got \"F8_E4M3\""},
        Hostile{"dtype_number", one("3", "[4]", "[0,16]"),
                "expected a string \"dtype\""},
        Hostile{"negative_size", one("\"F32\"", "[-4]", "[0,16]"),
                "integers of at least 0"},
        Hostile{"fractional_size", one("\"F32\"", "[4.5]", "[0,16]"),
                "integers of at least 0"},
        Hostile{"shape_text", one("\"F32\"", "\"4\"", "[0,16]"),
                "expected an array \"shape\""},
        Hostile{"overflow", one("\"F32\"", "[4294967296,4294967296]", "[0,16]"),
                "shape [4294967296, 4294967296] overflows"},
        Hostile{"overflow_to_fit",
                one("\"F32\"", "[4611686018427387904,4]", "[0,0]", 0),
                "overflows"},
        Hostile{"wrong_bytes", one("\"F32\"", "[3]", "[0,16]"),
                "tensor \"w\": expected 12 bytes for [3] F32, got 16"},
        Hostile{"offsets_past_end", one("\"F32\"", "[8]", "[0,32]"),
                "inside the 16 bytes of data, got [0, 32]"},
        Hostile{"offsets_reversed", one("\"F32\"", "[4]", "[16,0]"),
                "got [16, 0]"},
        Hostile{"offsets_negative", one("\"F32\"", "[4]", "[-16,0]"),
                "got [-16, 0]"},
        Hostile{"offsets_huge", one("\"F32\"", "[4]", "[0,1e30]"),
                "expected two integers"},
        Hostile{"offsets_three", one("\"F32\"", "[4]", "[0,8,16]"),
                "expected two integers"},
        Hostile{
            "overlap", pair("[0,8]", "[4,12]"),
            "tensor \"b\": overlaps another: expected data from byte 8, got "
            "4"},
        Hostile{"pair_short", pair("[0,8]", "[12,16]"),
                "tensor \"b\": expected 8 bytes for [2] F32, got 4"},
        Hostile{"hole", one("\"F32\"", "[2]", "[8,16]"),
                "tensor \"w\": leaves a gap: expected data from byte 0, got 8"},
        Hostile{"truncated_data", one("\"F32\"", "[4]", "[0,16]", 15),
                "inside the 15 bytes of data, got [0, 16]"},
        Hostile{"trailing_data", one("\"F32\"", "[4]", "[0,16]", 17),
                "expected 16 bytes of data after the header, got 17"},
        Hostile{"metadata", withHeader("{\"__metadata__\":{\"format\":1}}", 0),
                "expected strings in __metadata__"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Safetensors, MissingFileAndFolder) {
  SafetensorsFile a, b;
  EXPECT_EQ(a.open("/nonexistent/w").message(),
            "/nonexistent/w: No such file or directory");
  EXPECT_EQ(b.open(::testing::TempDir()).code(), Code::BadFile);
}

TEST(Safetensors, WritesSortedAndReadsBack) {
  TemporaryFile one, two;
  float w[] = {1, 2, 3, 4, 5, 6};
  int64_t ids[] = {7, -8};
  TensorData tw = {{"w", FileType::F32, {2, 3}}, w},
             ti = {{"ids \"x\"", FileType::I64, {2}}, ids},
             te = {{"empty", FileType::U8, {0, 3}}, nullptr};
  ASSERT_TRUE(writeSafetensors(one.path, {tw, ti, te}).ok());
  ASSERT_TRUE(writeSafetensors(two.path, {te, ti, tw}).ok());
  std::ifstream a(one.path), b(two.path);
  std::string x((std::istreambuf_iterator<char>(a)), {}),
      y((std::istreambuf_iterator<char>(b)), {});
  EXPECT_EQ(x, y); // the order of the call does not matter
  EXPECT_FALSE(std::ifstream(one.path + ".partial").good());
  SafetensorsFile f;
  Status status = f.open(one.path);
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_EQ(f.tensors().size(), 3u);
  EXPECT_EQ(f.tensors()[1].name, "ids \"x\"");
  double box[2];
  ASSERT_TRUE(f.read("w", {2, 3}, {0, 1}, {2, 1}, DType::f64, box).ok());
  EXPECT_EQ(box[0], 2);
  EXPECT_EQ(box[1], 5);
  int32_t i32[2];
  ASSERT_TRUE(f.read("ids \"x\"", {2}, DType::i32, i32).ok());
  EXPECT_EQ(i32[1], -8);
  Zp z[6];
  ASSERT_TRUE(f.read("w", {2, 3}, DType::zp, z).ok());
  EXPECT_EQ(z[5], Zp(6));
  EXPECT_EQ(f.read("w", {3, 2}, DType::f32, box).message(),
            one.path + ": tensor \"w\": expected shape [3, 2], got [2, 3]");
  EXPECT_EQ(f.read("v", {3}, DType::f32, box).message(),
            one.path + ": expected a tensor \"v\", got none");
  EXPECT_EQ(f.read("w", {2, 3}, DType::i32, box).message(),
            one.path + ": tensor \"w\": expected integers, got F32");
  EXPECT_EQ(f.read("w", {2, 3}, {0, 2}, {2, 2}, DType::f32, box).code(),
            Code::InvalidArgument);
}

TEST(Safetensors, ReadsEveryType) {
  // 1.0, then the smallest subnormal, in half precision.
  std::string data("\x00\x3c\x01\x00\x80\x3f\xff\x03", 8);
  std::string bytes = withHeader(
      "{\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[4,6]},"
      "\"u\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[6,8]},"
      "\"__metadata__\":{\"format\":\"pt\"}}",
      0);
  TemporaryFile file(bytes + data);
  SafetensorsFile f;
  Status status = f.open(file.path);
  ASSERT_TRUE(status.ok()) << status.text();
  float h[2], b;
  int64_t u[2];
  ASSERT_TRUE(f.read("h", {2}, DType::f32, h).ok());
  ASSERT_TRUE(f.read("b", {1}, DType::f32, &b).ok());
  ASSERT_TRUE(f.read("u", {2}, DType::i64, u).ok());
  EXPECT_EQ(h[0], 1.0f);
  EXPECT_EQ(h[1], 0x1p-24f);
  EXPECT_EQ(b, 1.0f);
  EXPECT_EQ(u[0], 255);
  EXPECT_EQ(f.metadata()[0].second, "pt");
}

TEST(Safetensors, BoxesMakeTheWhole) {
  TemporaryFile file;
  SafetensorsWriter writer(file.path, {{"w", FileType::F32, {3, 4}}});
  ASSERT_TRUE(writer.create().ok());
  float left[] = {0, 1, 4, 5, 8, 9}, right[] = {2, 3, 6, 7, 10, 11};
  ASSERT_TRUE(writer.writeBox("w", {0, 0}, {3, 2}, left).ok());
  ASSERT_TRUE(writer.writeBox("w", {0, 2}, {3, 2}, right).ok());
  EXPECT_EQ(writer.writeBox("w", {0, 3}, {3, 2}, right).code(),
            Code::InvalidArgument);
  EXPECT_EQ(writer.writeBox("v", {}, {}, right).code(), Code::InvalidArgument);
  ASSERT_TRUE(writer.commit().ok());
  SafetensorsFile f;
  ASSERT_TRUE(f.open(file.path).ok());
  float w[12];
  ASSERT_TRUE(f.read("w", {3, 4}, DType::f32, w).ok());
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(w[i], float(i));
}

TEST(Safetensors, TwiceOrUnwritableIsAnError) {
  float x = 0;
  TensorData t = {{"w", FileType::F32, {1}}, &x};
  TemporaryFile file;
  EXPECT_EQ(writeSafetensors(file.path, {t, t}).code(), Code::InvalidArgument);
  EXPECT_EQ(writeSafetensors("/nonexistent/w", {t}).code(), Code::IoError);
}

TEST(Json, ValuesAndEscapes) {
  json::Value v;
  Status status = json::parse(
      " {\"a\": [1, -2.5e1, true, null], \"\\u00e9\\ud83d\\ude00\\n\": \"x\"} ",
      v);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(v.get("a")->array[0].integer, 1);
  EXPECT_EQ(v.get("a")->array[1].number, -25);
  EXPECT_TRUE(v.get("a")->array[2].boolean);
  EXPECT_EQ(v.object[1].first, "\xc3\xa9\xf0\x9f\x98\x80\n");
  EXPECT_EQ(v.get("b"), nullptr);
  EXPECT_EQ(json::quote("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
  for (const char *bad : {"", "{", "[1,]", "{\"a\":1,}", "01", "1.", "-", "tru",
                          "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"", "\"\n\"",
                          "1 2", "{1:2}", "[1 2]", "+1", "NaN", "1e", "\"abc"})
    EXPECT_FALSE(json::parse(bad, v).ok()) << bad;
}

TEST(Tokens, WindowsDoNotDependOnTheMesh) {
  TemporaryFile file;
  std::vector<uint32_t> ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 65535};
  for (int width : {2, 4}) {
    ASSERT_TRUE(writeTokens(file.path, ids, width).ok());
    TokenFile tokens;
    Status status = tokens.open(file.path);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(tokens.count(), 10);
    EXPECT_EQ(tokens.windows(4), 2);
    int32_t x[4], y[4];
    tokens.sequence(1, 4, x, y);
    EXPECT_EQ(x[0], 4);
    EXPECT_EQ(y[3], 8);
    tokens.sequence(2, 4, x, y); // wraps around
    EXPECT_EQ(x[0], 0);
    EXPECT_EQ(tokens.windows(9), 1);
    EXPECT_TRUE(tokens.check(4, 65536).ok());
    EXPECT_NE(tokens.check(4, 100).message().find(
                  "below the vocabulary of 100, got 65535 at 9"),
              std::string::npos);
    EXPECT_FALSE(tokens.check(10, 65536).ok());
  }
}

TEST(Tokens, HostileFilesAreRefused) {
  auto message = [](const std::string &bytes) {
    TemporaryFile file(bytes);
    TokenFile tokens;
    return tokens.open(file.path).message().substr(file.path.size());
  };
  auto header = [](char width, char count) {
    return std::string("PARCTOK1") + width + std::string(7, '\0') + count +
           std::string(7, '\0');
  };
  EXPECT_EQ(message("PARC"), ": expected a file of at least 24 bytes");
  EXPECT_EQ(message(std::string(24, 'x')),
            ": expected a token file that begins with PARCTOK1");
  EXPECT_EQ(message(header(3, 0)), ": expected 2 or 4 bytes an id, got 3");
  EXPECT_EQ(message(header(2, 5) + "abcd"),
            ": expected 5 ids of 2 bytes after the header, got 4 bytes");
  EXPECT_EQ(message(header(2, 1) + "abc"),
            ": expected 1 ids of 2 bytes after the header, got 3 bytes");
}

} // namespace
