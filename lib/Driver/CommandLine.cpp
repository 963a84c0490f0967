//===- CommandLine.cpp - What was typed -----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tables of verbs and flags, and the parser.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/CommandLine.h"
#include "parc/Pipeline/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

namespace {

constexpr unsigned bit(Verb verb) { return 1u << static_cast<unsigned>(verb); }
constexpr unsigned kPlans =
    bit(Verb::Compile) | bit(Verb::Run) | bit(Verb::Show) | bit(Verb::Explain);
constexpr unsigned kBuilds = kPlans | bit(Verb::Import);
constexpr unsigned kAny = ~0u;

struct FlagSpec {
  StringLiteral name;
  bool takesValue;
  unsigned verbs;
};

constexpr FlagSpec kFlags[] = {
    {"mesh", true, kPlans},
    {"batch", true, kBuilds},
    {"seq", true, kBuilds},
    {"micro-batches", true, kPlans},
    {"schedule", true, kPlans},
    {"dtype", true, kBuilds},
    {"rank-order", true, kPlans},
    {"plan", true, kBuilds},
    {"o", true, bit(Verb::Compile) | bit(Verb::Import)},
    {"force", false, bit(Verb::Compile) | bit(Verb::Import)},
    {"stop-after", true, bit(Verb::Compile)},
    {"dump-phases", true, bit(Verb::Compile) | bit(Verb::Run)},
    {"json", false, kAny},
    {"color", true, kAny},
    {"q", false, kAny},
    {"v", false, kAny},
    {"help", false, kAny},
    {"steps", true, bit(Verb::Run)},
    {"weights", true, bit(Verb::Run)},
    {"inputs", true, bit(Verb::Run)},
    {"seed", true, bit(Verb::Run)},
    {"save", true, bit(Verb::Run)},
    {"exact", false, bit(Verb::Run)},
    {"lr", true, kPlans},
    {"beta1", true, kPlans},
    {"beta2", true, kPlans},
    {"eps", true, kPlans},
    {"weight-decay", true, kPlans},
    {"clip", true, kPlans},
    {"sp", false, kPlans},
    {"cp-kind", true, kPlans},
    {"cp-split", true, kPlans},
    {"ep", true, kPlans},
    {"moe", true, kBuilds},
    {"moe-buffer-factor", true, kBuilds},
    {"capacity-factor", true, kBuilds},
    {"moe-scope", true, kBuilds},
    {"zero", true, kPlans},
    {"zero-group", true, kPlans},
    {"rank", true, bit(Verb::Show)},
    {"stage", true, bit(Verb::Show)},
};

struct VerbSpec {
  StringLiteral name;
  Verb verb;
  bool takesModel;
};

constexpr VerbSpec kVerbs[] = {
    {"compile", Verb::Compile, true}, {"import", Verb::Import, true},
    {"run", Verb::Run, true},         {"show", Verb::Show, true},
    {"explain", Verb::Explain, true}, {"version", Verb::Version, false},
    {"doctor", Verb::Doctor, false},  {"help", Verb::Help, false},
};

const FlagSpec *findFlag(StringRef name) {
  const auto *found =
      llvm::find_if(kFlags, [&](const FlagSpec &f) { return f.name == name; });
  return found == std::end(kFlags) ? nullptr : found;
}

const VerbSpec *findVerb(StringRef name) {
  const auto *found =
      llvm::find_if(kVerbs, [&](const VerbSpec &v) { return v.name == name; });
  return found == std::end(kVerbs) ? nullptr : found;
}

std::string dashed(StringRef name) {
  return (name.size() == 1 ? "-" : "--") + name.str();
}

/// As a shell would take it back; control characters escaped.
std::string shellQuoted(StringRef text) {
  std::string safe = printable(text);
  bool plain = !safe.empty() && llvm::all_of(safe, [](char c) {
    return llvm::isAlnum(c) || StringRef("_-+=.,/:@%").contains(c);
  });
  if (plain)
    return safe;
  return "'" + safe + "'";
}

bool isNumberLike(StringRef text) {
  return text.size() > 1 && text[0] == '-' &&
         (llvm::isDigit(text[1]) || text[1] == '.');
}

} // namespace

StringRef mlir::parc::driver::verbName(Verb verb) {
  for (const VerbSpec &spec : kVerbs)
    if (spec.verb == verb)
      return spec.name;
  return "parc";
}

ArrayRef<StringRef> mlir::parc::driver::showTopics() {
  static const StringRef topics[] = {"comms", "layouts", "schedule", "groups",
                                     "config"};
  return topics;
}

namespace mlir::parc::driver {

/// One run over the arguments.
class CommandLineParser {
public:
  CommandLineParser(ArrayRef<StringRef> arguments, Reporter &reporter)
      : reporter(reporter), arguments(arguments) {
    line.echo = "parc";
    for (StringRef argument : arguments) {
      offsets.push_back(line.echo.size() + 1);
      line.echo += " " + shellQuoted(argument);
    }
  }

  std::optional<CommandLine> run();

private:
  Place place(size_t index, size_t offset = 0,
              std::optional<size_t> length = std::nullopt) const;
  std::nullopt_t fail(const Place &where, const Twine &message,
                      StringRef name = "usage");
  bool readFlag(size_t &index);
  bool readWords();
  bool readTopic();
  bool checkVerb();
  void suggest(StringRef text, ArrayRef<StringRef> known, StringRef prefix,
               const Twine &otherwise);

  Reporter &reporter;
  ArrayRef<StringRef> arguments;
  SmallVector<size_t> offsets;
  CommandLine line;
  SmallVector<Word> words;
};

} // namespace mlir::parc::driver

Place CommandLineParser::place(size_t index, size_t offset,
                               std::optional<size_t> length) const {
  Place place{"<command line>", 1, 1, 1, line.echo};
  if (index >= arguments.size()) {
    place.column = static_cast<unsigned>(line.echo.size() + 1);
    return place;
  }
  size_t begin = offsets[index];
  if (line.echo[begin] == '\'')
    ++begin;
  place.column = static_cast<unsigned>(begin + offset + 1);
  place.length =
      std::max<size_t>(1, length.value_or(arguments[index].size() - offset));
  return place;
}

std::nullopt_t CommandLineParser::fail(const Place &where, const Twine &message,
                                       StringRef name) {
  reporter.error(where, message, name);
  return std::nullopt;
}

void CommandLineParser::suggest(StringRef text, ArrayRef<StringRef> known,
                                StringRef prefix, const Twine &otherwise) {
  StringRef near = nearestName(text, known);
  // Swapped letters count twice in an edit distance, and are the usual slip.
  auto sorted = [](StringRef word) {
    std::string letters = word.str();
    llvm::sort(letters);
    return letters;
  };
  for (StringRef name : known)
    if (near.empty() && sorted(name) == sorted(text))
      near = name;
  if (near.empty())
    reporter.help(otherwise);
  else
    reporter.help("did you mean '" + prefix + near + "'?");
}

bool CommandLineParser::readFlag(size_t &index) {
  StringRef argument = arguments[index];
  auto [head, value] = argument.split('=');
  StringRef name = head.ltrim('-');
  bool isLong = head.starts_with("--");
  if (name == "h" && !isLong)
    name = "help";
  const FlagSpec *spec = findFlag(name);
  if (!spec || (spec->name.size() == 1) == isLong) {
    fail(place(index, 0, head.size()), "unknown flag " + quoted(head),
         "unknown-flag");
    SmallVector<StringRef> names;
    for (const FlagSpec &flag : kFlags)
      if (flag.name.size() > 1)
        names.push_back(flag.name);
    if (spec)
      reporter.help("did you mean '" + dashed(spec->name) + "'?");
    else
      suggest(name, names, "--", "parc --help lists the flags");
    return false;
  }
  if (line.given.count(spec->name.str())) {
    fail(place(index, 0, head.size()),
         "flag '" + dashed(spec->name) + "' is given twice");
    return false;
  }
  Word word;
  word.place = place(index, 0, head.size());
  if (!spec->takesValue && head.size() != argument.size()) {
    fail(place(index, head.size()),
         "flag '" + dashed(spec->name) + "' takes no value");
    return false;
  }
  if (spec->takesValue && head.size() != argument.size()) {
    word.text = value.str();
    word.place = place(index, head.size() + 1);
  } else if (spec->takesValue) {
    bool isValue = index + 1 < arguments.size() &&
                   (!arguments[index + 1].starts_with("-") ||
                    isNumberLike(arguments[index + 1]));
    if (!isValue) {
      fail(place(index, 0, head.size()),
           "flag '" + dashed(spec->name) + "' needs a value, got " +
               (index + 1 < arguments.size() ? quoted(arguments[index + 1])
                                             : std::string("nothing")));
      return false;
    }
    ++index;
    word.text = arguments[index].str();
    word.place = place(index);
  }
  line.given.emplace(spec->name.str(), std::move(word));
  return true;
}

bool CommandLineParser::readTopic() {
  if (words.empty()) {
    fail(place(arguments.size()), "expected what to show");
    reporter.help("parc show " + llvm::join(showTopics(), "|") + " MODEL");
    return false;
  }
  line.topic = words.front().text;
  if (!llvm::is_contained(showTopics(), line.topic)) {
    fail(words.front().place, "cannot show " + quoted(line.topic));
    suggest(line.topic, showTopics(), "",
            "topics: " + llvm::join(showTopics(), ", "));
    return false;
  }
  words.erase(words.begin());
  return true;
}

bool CommandLineParser::readWords() {
  if (line.has("help"))
    return true;
  line.verb = Verb::Compile;
  const VerbSpec *spec = words.empty() ? nullptr : findVerb(words[0].text);
  if (spec) {
    line.verb = spec->verb;
    words.erase(words.begin());
  } else if (!words.empty() && words[0].text != "-" &&
             !llvm::sys::fs::exists(words[0].text)) {
    SmallVector<StringRef> names;
    for (const VerbSpec &verb : kVerbs)
      names.push_back(verb.name);
    StringRef text = words[0].text;
    StringRef near = nearestName(text, names);
    bool isPath = text.contains('/') || text.contains('.');
    // A second word means that the first was meant as a verb.
    if (!isPath && (!near.empty() || words.size() > 1)) {
      fail(words[0].place, "unknown verb " + quoted(text), "unknown-verb");
      suggest(text, names, "parc ", "parc --help lists the verbs");
      return false;
    }
  }
  if (line.verb == Verb::Show && !readTopic())
    return false;
  bool takesModel = spec ? spec->takesModel : true;
  if (line.verb == Verb::Explain && words.empty()) {
    fail(place(arguments.size()), "expected what to explain");
    reporter.help("parc explain MODEL NAME, or parc explain ERROR");
    return false;
  }
  if (takesModel && words.empty()) {
    fail(place(arguments.size()), "expected a model");
    reporter.help("a .mlir file, a config.json or its folder, or '-'");
    return false;
  }
  if (takesModel) {
    line.model = words.front();
    words.erase(words.begin());
  }
  if (line.verb == Verb::Explain && !words.empty()) {
    line.name = words.front();
    words.erase(words.begin());
  }
  if (words.empty())
    return true;
  fail(words.front().place, "unexpected argument " + quoted(words[0].text));
  return false;
}

bool CommandLineParser::checkVerb() {
  for (auto &[name, word] : line.given) {
    const FlagSpec *spec = findFlag(name);
    if (line.verb == Verb::Help || (spec->verbs & bit(line.verb)))
      continue;
    fail(word.place,
         "'parc " + verbName(line.verb) + "' takes no '" + dashed(name) + "'");
    SmallVector<StringRef> takers;
    for (const VerbSpec &verb : kVerbs)
      if (verb.takesModel && (spec->verbs & bit(verb.verb)))
        takers.push_back(verb.name);
    reporter.help("flag of: " + llvm::join(takers, ", "));
    return false;
  }
  return true;
}

std::optional<CommandLine> CommandLineParser::run() {
  bool onlyWords = false;
  for (size_t index = 0; index < arguments.size(); ++index) {
    StringRef argument = arguments[index];
    if (!onlyWords && argument == "--") {
      onlyWords = true;
    } else if (!onlyWords && argument.size() > 1 && argument.starts_with("-")) {
      if (!readFlag(index))
        return std::nullopt;
    } else {
      words.push_back({argument.str(), place(index)});
    }
  }
  if (!readWords() || !checkVerb())
    return std::nullopt;
  return std::move(line);
}

std::optional<CommandLine> CommandLine::parse(ArrayRef<StringRef> arguments,
                                              Reporter &reporter) {
  return CommandLineParser(arguments, reporter).run();
}

bool CommandLine::hasFlag(StringRef name) { return findFlag(name) != nullptr; }

const Word *CommandLine::flag(StringRef name) const {
  auto found = given.find(name.str());
  return found == given.end() ? nullptr : &found->second;
}

StringRef mlir::parc::driver::helpText() {
  return R"(parc MODEL [options]                    short for: parc compile MODEL
parc compile MODEL [-o out]             partition, schedule, emit
parc import  MODEL [-o model.mlir]      read only; print what was understood
parc run     MODEL [--steps 1]          all ranks as threads, beside the unpartitioned model
parc show    comms|layouts|schedule|groups|config MODEL|OUT [--rank N] [--stage N]
parc explain MODEL|OUT NAME             why this is sent, what would send less
parc explain ERROR                      the long form of a message, with an example
parc version | parc doctor              doctor: what was found here, what works without the rest

MODEL   .mlir, config.json or its folder, '-'; told apart by content

Layout (each is a key of plan.toml; a flag wins)                                     [default]
  --mesh tp=8,pp=16,dp=4 | 8x16x4                                     [the model's, else 1x1x1]
  --sp                       sequence parallel on tp                                       [off]
  --cp-kind ring|all-gather|ulysses    by bytes among those legal                         [auto]
  --cp-split balanced|contiguous   equal work under a causal mask                     [balanced]
  --ep N                     experts over cp, then dp; needs --sp where tp > 1               [1]
  --schedule gpipe|1f1b                                                                  [1f1b]
  --batch N  --seq N         global sequences; tokens each         [4*pp*dp; min(max, 8192)]
  --micro-batches N          per replica                              [one sequence in each]
  --dtype bf16|f32|f64                                                         [the model's]
  --zero 0|1|2|3             1 moves what 0 moves, and holds less            [1 if dp > 1]
  --zero-group N             split in groups of N, copies across                   [dp x cp]
  --rank-order tp-cp-dp-pp   fastest first                                     [tp-cp-dp-pp]
  --lr --beta1 --beta2 --eps --weight-decay --clip          [1e-2 0.9 0.95 1e-8 0.1 off]
  --moe dropless|capacity    capacity: what exceeds an expert's share is dropped    [dropless]
  --moe-buffer-factor X --capacity-factor X   over the balanced load    [2, small batches all; 1.25]
  --moe-scope sequence|micro-batch|global   of capacity and the balance loss           [sequence]
  --plan FILE                                                  [plan.toml beside the model]
Output
  -o PATH                    replaced whole if parc made it, else needs --force        [out]
  --stop-after PHASE         model annotated differentiated sharded local staged scheduled
  --dump-phases DIR          one file a phase
Run
  --steps N --seed N --weights FILE --inputs FILE --save FILE
  --exact                    as well modulo 2^61-1, where equal means equal
Everywhere
  --json  --color auto|always|never  -q  -v  --help

Exit status: 0 done; 1 model or declaration wrong; 2 command line not understood, no such file;
4 not equal; 70 parc's own fault.
)";
}
