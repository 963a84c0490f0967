//===- Mesh.cpp - Named axes of devices -----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Construction, parsing and printing of meshes.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Mesh.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace mlir::parc {
namespace {

constexpr StringLiteral exampleHelp =
    "write tp=8,pp=16,dp=4, or 8x16x4 for tp x pp x dp";

std::nullopt_t fail(TextError &error, size_t offset, size_t length,
                    const Twine &message, const Twine &help = exampleHelp) {
  error.message = message.str();
  error.help = help.str();
  error.offset = offset;
  error.length = length;
  return std::nullopt;
}

/// A part of the parsed text with its place in it.
struct Piece {
  StringRef text;
  size_t offset;

  Piece trimmed() const {
    StringRef left = text.ltrim(' ');
    return {left.rtrim(' '), offset + (text.size() - left.size())};
  }
};

SmallVector<Piece> splitAt(StringRef text, char separator) {
  SmallVector<Piece> pieces;
  for (size_t begin = 0;;) {
    size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(Piece{text.slice(begin, end), begin}.trimmed());
    if (end == text.size())
      return pieces;
    begin = end + 1;
  }
}

bool isNumber(StringRef text) {
  return !text.empty() && all_of(text, [](char c) { return isDigit(c); });
}

/// Reads the size of axis `name`; errors point at `piece`.
std::optional<int64_t> parseSize(Piece piece, StringRef name,
                                 TextError &error) {
  StringRef text = piece.text;
  bool negative = text.starts_with("-");
  if (!isNumber(negative ? text.drop_front() : text)) {
    std::string got = text.empty() ? "nothing" : quoted(text);
    return fail(error, piece.offset, text.size(),
                "expected a size for axis '" + name + "', got " + got);
  }
  int64_t size = 0;
  if (negative || text.ltrim('0').empty())
    return fail(error, piece.offset, text.size(),
                "expected a size of at least 1 for axis '" + name + "', got " +
                    text.take_front(24),
                "leave the axis out, or give it size 1");
  if (text.getAsInteger(10, size) || size > Mesh::maxDevices)
    return fail(error, piece.offset, text.size(),
                "size of axis '" + name + "' is too large: expected at most " +
                    Twine(Mesh::maxDevices) + ", got " + text.take_front(24) +
                    (text.size() > 24 ? "..." : ""),
                "a mesh has at most " + Twine(Mesh::maxDevices) + " devices");
  return size;
}

/// Says that the axes up to the failing one need too many devices.
std::string productText(ArrayRef<MeshAxis> axes) {
  std::string text;
  for (const MeshAxis &axis : axes)
    text += (text.empty() ? "" : " * ") + axis.name + "=" +
            std::to_string(axis.size);
  return text;
}

/// Maps an error of Mesh::get, an axis index, onto the text.
std::optional<Mesh> getAt(ArrayRef<MeshAxis> axes, ArrayRef<Piece> pieces,
                          TextError &error) {
  std::optional<Mesh> mesh = Mesh::get(axes, error);
  if (!mesh && error.offset < pieces.size()) {
    Piece piece = pieces[error.offset];
    error.offset = piece.offset;
    error.length = piece.text.size();
  }
  return mesh;
}

std::optional<Mesh> parseShort(StringRef text, TextError &error) {
  static constexpr StringLiteral names[] = {"tp", "pp", "dp"};
  SmallVector<Piece> pieces = splitAt(text, 'x');
  if (pieces.size() > std::size(names)) {
    Piece extra = pieces[std::size(names)];
    return fail(error, extra.offset, text.size() - extra.offset,
                "expected three sizes, tp x pp x dp, got " +
                    Twine(pieces.size()),
                "name the axes to give more, as in tp=8,pp=16,dp=4,cp=2");
  }
  if (pieces.size() < std::size(names))
    return fail(error, 0, text.size(),
                "expected three sizes, tp x pp x dp, got " +
                    Twine(pieces.size()));
  SmallVector<MeshAxis> axes;
  for (auto [piece, name] : zip_equal(pieces, names)) {
    std::optional<int64_t> size = parseSize(piece, name, error);
    if (!size)
      return std::nullopt;
    axes.push_back({name.str(), *size});
  }
  return getAt(axes, pieces, error);
}

std::nullopt_t unknownAxis(TextError &error, Piece name) {
  ArrayRef<StringRef> known = Mesh::commandLineAxes();
  std::string help = "known axes: " + join(known, ", ");
  if (name.text == "sp")
    help = "sp reuses the ranks of tp and has no size of its own";
  else if (name.text == "ep")
    help = "ep is a second view of the ranks of tp, cp and dp, no mesh axis";
  else if (StringRef near = nearestName(name.text, known); !near.empty())
    help = "did you mean '" + near.str() + "'? " + help;
  return fail(error, name.offset, name.text.size(),
              "unknown mesh axis " + quoted(name.text), help);
}

/// Reads one `name=size`.
std::optional<MeshAxis> parseNamedAxis(Piece piece, TextError &error) {
  if (piece.text.empty())
    return fail(error, piece.offset, 0, "expected axis=size, got nothing");
  size_t equal = piece.text.find('=');
  if (equal == StringRef::npos)
    return fail(error, piece.offset, piece.text.size(),
                "expected axis=size, got " + quoted(piece.text));
  Piece name = Piece{piece.text.take_front(equal), piece.offset}.trimmed();
  Piece size = Piece{piece.text.drop_front(equal + 1), piece.offset + equal + 1}
                   .trimmed();
  if (name.text.empty())
    return fail(error, name.offset, 1, "expected an axis name before '='");
  if (!is_contained(Mesh::commandLineAxes(), name.text))
    return unknownAxis(error, name);
  std::optional<int64_t> value = parseSize(size, name.text, error);
  if (!value)
    return std::nullopt;
  return MeshAxis{name.text.str(), *value};
}

std::optional<Mesh> parseNamed(StringRef text, TextError &error) {
  SmallVector<Piece> pieces = splitAt(text, ',');
  SmallVector<MeshAxis> axes;
  for (Piece piece : pieces) {
    std::optional<MeshAxis> axis = parseNamedAxis(piece, error);
    if (!axis)
      return std::nullopt;
    axes.push_back(std::move(*axis));
    // Checked here, so that the first error in the text is the one reported.
    if (axes.size() < pieces.size() && !getAt(axes, pieces, error))
      return std::nullopt;
  }
  return getAt(axes, pieces, error);
}

} // namespace

std::optional<Mesh> Mesh::get(ArrayRef<MeshAxis> axes, TextError &error) {
  int64_t devices = 1;
  for (auto [index, axis] : enumerate(axes)) {
    if (index >= maxAxes)
      return fail(error, index, 0,
                  "expected at most " + Twine(maxAxes) + " mesh axes, got " +
                      Twine(axes.size()));
    if (axis.name.empty())
      return fail(error, index, 0,
                  "expected a name for mesh axis " + Twine(index));
    if (axis.size < 1)
      return fail(error, index, 0,
                  "expected a size of at least 1 for axis " +
                      quoted(axis.name) + ", got " + Twine(axis.size));
    for (const MeshAxis &earlier : axes.take_front(index))
      if (earlier.name == axis.name)
        return fail(error, index, 0,
                    "mesh axis " + quoted(axis.name) + " is given twice: " +
                        Twine(earlier.size) + " and " + Twine(axis.size),
                    "give each axis once");
    // Division, so that no product can overflow.
    if (axis.size > maxDevices / devices)
      return fail(error, index, 0,
                  "mesh needs too many devices: expected at most " +
                      Twine(maxDevices) + ", got " +
                      productText(axes.take_front(index + 1)),
                  "make an axis smaller");
    devices *= axis.size;
  }
  Mesh mesh;
  mesh.meshAxes.assign(axes.begin(), axes.end());
  return mesh;
}

ArrayRef<StringRef> Mesh::commandLineAxes() {
  static constexpr StringRef names[] = {"tp", "cp", "dp", "pp"};
  return names;
}

std::optional<Mesh> Mesh::parse(StringRef text, TextError &error) {
  if (text.trim(' ').empty())
    return fail(error, 0, text.size(), "expected a mesh, got nothing");
  // A size first means the short form; `-` so that -1x2x3 is read as sizes.
  char first = text.ltrim(' ').front();
  bool isShort = (isDigit(first) || first == '-') && !text.contains('=');
  return isShort ? parseShort(text, error) : parseNamed(text, error);
}

std::optional<size_t> Mesh::indexOf(StringRef name) const {
  for (auto [index, axis] : enumerate(meshAxes))
    if (axis.name == name)
      return index;
  return std::nullopt;
}

int64_t Mesh::size(StringRef name) const {
  std::optional<size_t> index = indexOf(name);
  return index ? meshAxes[*index].size : 1;
}

int64_t Mesh::devices() const {
  int64_t devices = 1;
  for (const MeshAxis &axis : meshAxes)
    devices *= axis.size;
  return devices;
}

std::string Mesh::str() const {
  std::string text;
  for (const MeshAxis &axis : meshAxes)
    text +=
        (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

} // namespace mlir::parc
