//===- ParcAttrs.cpp - Attributes of the parc dialect ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Syntax, verification and small queries of shardings.
///
//===----------------------------------------------------------------------===//

#include "Parc/Parc.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::parc;

#define GET_ATTRDEF_CLASSES
#include "Parc/ParcAttrs.cpp.inc"

void ParcDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Parc/ParcAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// `{"tp", "dp" : 16}`: axes, then the grain.
static ParseResult parseAxes(AsmParser &parser,
                             SmallVectorImpl<StringAttr> &axes,
                             int64_t *grain) {
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return success();
  do {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
  } while (succeeded(parser.parseOptionalComma()));
  if (grain && succeeded(parser.parseOptionalColon()) &&
      parser.parseInteger(*grain))
    return failure();
  return parser.parseRBrace();
}

static void printAxes(AsmPrinter &printer, ArrayRef<StringAttr> axes,
                      int64_t grain = 1) {
  printer << '{';
  llvm::interleaveComma(axes, printer, [&](StringAttr axis) {
    printer.printString(axis.getValue());
  });
  if (grain != 1)
    printer << " : " << grain;
  printer << '}';
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  int64_t grain = 1;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseAxes(parser, axes, &grain) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    axes, grain);
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, getAxes(), getGrain());
  printer << '>';
}

/// `partial sum {"tp"}`, the comma before it read.
static ParseResult parsePartial(AsmParser &parser, ReductionKind &kind,
                                SmallVectorImpl<StringAttr> &axes) {
  StringRef keyword;
  if (parser.parseKeyword("partial") || parser.parseKeyword(&keyword))
    return failure();
  std::optional<ReductionKind> parsed = symbolizeReductionKind(keyword);
  if (!parsed)
    return parser.emitError(parser.getCurrentLocation(),
                            "expected sum, max or min, got ")
           << keyword;
  kind = *parsed;
  return parseAxes(parser, axes, nullptr);
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(loc); };
  SmallVector<DimShardingAttr> dims;
  auto parseDim = [&]() -> ParseResult {
    SmallVector<StringAttr> axes;
    int64_t grain = 1;
    if (parseAxes(parser, axes, &grain))
      return failure();
    auto dim = DimShardingAttr::getChecked(emitError, parser.getContext(),
                                           ArrayRef<StringAttr>(axes), grain);
    dims.push_back(dim);
    return success(dim != nullptr);
  };
  ReductionKind kind = ReductionKind::Sum;
  SmallVector<StringAttr> partial, flat;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    bool isFlat =
        flat.empty() && succeeded(parser.parseOptionalKeyword("flat"));
    if (isFlat ? parseAxes(parser, flat, nullptr)
               : parsePartial(parser, kind, partial))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked(emitError, parser.getContext(),
                    ArrayRef<DimShardingAttr>(dims), kind,
                    ArrayRef<StringAttr>(partial), ArrayRef<StringAttr>(flat));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](DimShardingAttr dim) {
    printAxes(printer, dim.getAxes(), dim.getGrain());
  });
  printer << ']';
  if (isPartial()) {
    printer << ", partial " << stringifyReductionKind(getKind()) << ' ';
    printAxes(printer, getPartial());
  }
  if (isFlat()) {
    printer << ", flat ";
    printAxes(printer, getFlat());
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult
DimShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<StringAttr> axes, int64_t grain) {
  if (grain < 1)
    return emitError() << "expected a grain of at least 1, got " << grain;
  llvm::StringSet<> seen;
  for (StringAttr axis : axes)
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "axis '" << axis.getValue()
                         << "' splits one dimension twice; remove one";
  return success();
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<DimShardingAttr> dims,
                                   ReductionKind kind,
                                   ArrayRef<StringAttr> partial,
                                   ArrayRef<StringAttr> flat) {
  llvm::StringMap<unsigned> seen;
  for (auto [index, dim] : llvm::enumerate(dims))
    for (StringAttr axis : dim.getAxes()) {
      auto [it, inserted] = seen.try_emplace(axis.getValue(), index);
      if (!inserted)
        return emitError() << "axis '" << axis.getValue()
                           << "' splits dimension " << it->second
                           << " and dimension " << index << "; remove one";
    }
  for (StringAttr axis : partial)
    if (!seen.try_emplace(axis.getValue(), dims.size()).second)
      return emitError() << "axis '" << axis.getValue()
                         << "' is partial and also splits a dimension, or is "
                            "listed twice; remove one";
  for (StringAttr axis : flat)
    if (!seen.try_emplace(axis.getValue(), dims.size()).second)
      return emitError() << "axis '" << axis.getValue()
                         << "' cuts the flat part and also splits a dimension, "
                            "is partial, or is listed twice; remove one";
  return success();
}

LogicalResult ShardingAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() == getDims().size())
    return success();
  return emitError() << "expected a sharding of " << shape.size()
                     << " dimensions, got " << getDims().size();
}

LogicalResult WhyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              StringRef text, StringRef value,
                              RankedTensorType type, ShardingAttr from,
                              ShardingAttr to, std::optional<int64_t> bytes,
                              ArrayRef<StringAttr> because) {
  if (!from != !to)
    return emitError() << "expected 'from' and 'to' together, got only '"
                       << (from ? "from" : "to") << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

bool WhyAttr::isPlain() const {
  return getValue().empty() && !getType() && !getFrom() && !getBytes() &&
         getBecause().empty();
}

WhyAttr WhyAttr::withMove(ShardingAttr from, ShardingAttr to,
                          std::optional<int64_t> bytes) const {
  return get(getContext(), getText(), getValue(), getType(), from, to, bytes,
             getBecause());
}

WhyAttr WhyAttr::mergedWith(WhyAttr other) const {
  // Names are listed once, in the order of merging.
  std::string value = getValue().str();
  SmallVector<StringRef> names;
  getValue().split(names, ", ");
  if (!other.getValue().empty() && !llvm::is_contained(names, other.getValue()))
    value += (value.empty() ? "" : ", ") + other.getValue().str();
  llvm::SmallSetVector<StringAttr, 4> because(getBecause().begin(),
                                              getBecause().end());
  because.insert_range(other.getBecause());
  std::optional<int64_t> bytes;
  if (getBytes() && other.getBytes())
    bytes = *getBytes() + *other.getBytes();
  bool alike = getFrom() == other.getFrom() && getTo() == other.getTo();
  return get(getContext(), getText(), value,
             getType() == other.getType() ? getType() : RankedTensorType(),
             alike ? getFrom() : ShardingAttr(),
             alike ? getTo() : ShardingAttr(), bytes, because.getArrayRef());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

ShardingAttr ShardingAttr::replicated(MLIRContext *context, int64_t rank) {
  SmallVector<DimShardingAttr> dims(
      rank, DimShardingAttr::get(context, ArrayRef<StringAttr>{}, 1));
  return get(context, dims, ReductionKind::Sum, ArrayRef<StringAttr>{});
}

bool ShardingAttr::isReplicated() const {
  return !isPartial() && !isFlat() &&
         llvm::all_of(getDims(), [](DimShardingAttr d) { return d.empty(); });
}

ShardingAttr ShardingAttr::withoutPartial() const {
  return get(getContext(), getDims(), ReductionKind::Sum,
             ArrayRef<StringAttr>{}, getFlat());
}

ShardingAttr ShardingAttr::withPartial(ReductionKind kind,
                                       ArrayRef<StringAttr> axes) const {
  return get(getContext(), getDims(), axes.empty() ? ReductionKind::Sum : kind,
             axes, getFlat());
}

ShardingAttr ShardingAttr::withFlat(ArrayRef<StringAttr> axes) const {
  return get(getContext(), getDims(), getKind(), getPartial(), axes);
}

bool ShardingAttr::splits(StringRef axis) const {
  auto names = [&](StringAttr a) { return a == axis; };
  return llvm::any_of(getFlat(), names) ||
         llvm::any_of(getDims(), [&](DimShardingAttr dim) {
           return llvm::any_of(dim.getAxes(), names);
         });
}

ShardingAttr mlir::parc::getSharding(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_if_present<ShardingAttr>(tensor.getEncoding())
                : nullptr;
}

RankedTensorType mlir::parc::withSharding(RankedTensorType type,
                                          ShardingAttr sharding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               sharding);
}
